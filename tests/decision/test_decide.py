"""From probabilities to labels: EM against a dense reference, statuses, and what must never happen."""

import numpy as np
import pytest
import torch
from hypothesis import given as for_any
from hypothesis import strategies as st
from torch.testing import assert_close

import reference
from labelmend.decision import posterior as stage


def noisy_problem(n: int, n_classes: int, noise: float, sharpness: float, seed: int = 0):
    """Probabilities that are right as often as they say, and labels flipped to the next class."""
    rng = np.random.default_rng(seed)
    predicted = rng.dirichlet(np.full(n_classes, 0.15), size=n)
    truth = np.array([rng.choice(n_classes, p=row) for row in predicted])
    flipped = rng.random(n) < noise
    labels = np.where(flipped, (truth + 1) % n_classes, truth)
    sharpened = predicted**sharpness
    sharpened /= sharpened.sum(axis=1, keepdims=True)
    return torch.tensor(sharpened), torch.tensor(labels), torch.tensor(truth)


def nobody(labels: torch.Tensor) -> torch.Tensor:
    return torch.zeros_like(labels, dtype=torch.bool)


def test_posterior_equals_the_dense_reference():
    predicted, labels, _ = noisy_problem(60, 4, 0.3, 1.0)
    labels[:5] = -1
    fixed = nobody(labels)
    fixed[10:13] = True
    found = stage.posterior(predicted, labels, fixed, n_passes=7)
    probabilities, transition = reference.em_posterior(
        predicted.numpy(), labels.numpy(), fixed.numpy(), 7, stage.PRIOR_ROWS, stage.FLOOR, stage.SCEPTICAL_BELOW
    )
    np.testing.assert_allclose(found.probabilities.numpy(), probabilities, rtol=1e-9)
    np.testing.assert_allclose(found.transition.numpy(), transition, rtol=1e-9)


def test_calibrated_probabilities_recover_the_transition_matrix_and_the_noise_rate():
    predicted, labels, truth = noisy_problem(6000, 4, 0.25, 1.0)
    found = stage.posterior(predicted, labels, nobody(labels))
    assert found.noise_rate == pytest.approx(0.25, abs=0.03)
    assert_close(found.transition.diagonal(), torch.full((4,), 0.75, dtype=torch.float64), atol=0.05, rtol=0)
    improved = (found.probabilities.argmax(dim=1) == truth).double().mean()
    assert improved > (predicted.argmax(dim=1) == truth).double().mean()
    assert improved > (labels == truth).double().mean()


def test_a_little_noise_is_held_for_none_and_much_is_believed():
    few, many = torch.tensor([[995.0, 5.0], [5.0, 995.0]]), torch.tensor([[800.0, 200.0], [200.0, 800.0]])
    believed = stage.sceptical(few)
    assert_close(believed.sum(dim=1), few.sum(dim=1))
    assert_close(believed[0, 1], torch.tensor(5 * 0.005**2 / (0.005**2 + 0.01**2)))
    assert_close(stage.sceptical(many), many, rtol=0.01, atol=0)


def test_trusted_samples_keep_their_label_with_certainty():
    predicted, labels, _ = noisy_problem(80, 3, 0.4, 1.0)
    fixed = nobody(labels)
    fixed[::4] = True
    found = stage.posterior(predicted, labels, fixed)
    assert_close(found.probabilities[fixed].argmax(dim=1), labels[fixed])
    assert_close(found.probabilities[fixed].amax(dim=1), torch.ones(20, dtype=torch.float64))


def test_unlabelled_samples_get_what_is_predicted_and_do_not_count():
    predicted, labels, _ = noisy_problem(200, 3, 0.2, 1.0)
    with_gap = torch.cat([labels, torch.full((50,), -1)])
    more = torch.cat([predicted, predicted[:50]])
    found = stage.posterior(more, with_gap, nobody(with_gap))
    assert_close(found.probabilities[200:], predicted[:50])
    alone = stage.posterior(predicted, labels, nobody(labels))
    assert found.noise_rate == pytest.approx(alone.noise_rate)
    assert_close(found.transition, alone.transition)


def test_blocks_of_rows_give_the_same_as_one_block(monkeypatch):
    predicted, labels, _ = noisy_problem(90, 5, 0.2, 1.0)
    whole = stage.posterior(predicted, labels, nobody(labels))
    monkeypatch.setattr(stage, "BLOCK_ENTRIES", 35)
    assert_close(stage.posterior(predicted, labels, nobody(labels)).probabilities, whole.probabilities)


def test_status_follows_label_confidence_and_given():
    probabilities = torch.tensor([[0.9, 0.1], [0.1, 0.9], [0.6, 0.4], [0.4, 0.6], [0.95, 0.05], [0.2, 0.8]])
    labels = torch.tensor([0, 0, 0, 0, -1, 0])
    alone = torch.tensor([False, False, False, False, False, True])
    decision = stage.decide(probabilities, probabilities.argmax(dim=1), labels, alone, review_below=0.7)
    names = [stage.STATUS_NAMES[code] for code in decision.status]
    assert names == ["kept", "corrected", "review", "review", "filled", "review"]
    assert decision.labels.tolist() == [0, 1, 0, 1, 0, 0]
    assert decision.runner_up.tolist() == [1, 0, 1, 0, 1, 1]
    assert_close(decision.confidence, torch.tensor([0.9, 0.9, 0.6, 0.6, 0.95, 0.2]))


def test_who_knows_nothing_is_uniform():
    assert_close(
        stage.as_distribution(torch.tensor([[0.0, 0.0], [1.0, 3.0]])), torch.tensor([[0.5, 0.5], [0.25, 0.75]])
    )


@for_any(st.floats(0.2, 5.0), st.integers(0, 5))
def test_powers_sharpen_and_keep_the_order(power, seed):
    predicted = torch.from_numpy(np.random.default_rng(seed).dirichlet(np.ones(4), size=6))
    sharpened = stage.weighted_product([predicted], [power])
    assert_close(sharpened.sum(dim=1), torch.ones(6, dtype=torch.float64))
    expected = predicted**power / (predicted**power).sum(dim=1, keepdim=True)
    assert_close(sharpened, expected, rtol=1e-4, atol=1e-5)


def test_agreement_counts_labelled_samples_only():
    predicted = torch.eye(3)[[0, 1, 2, 0]]
    assert stage.agreement(predicted, torch.tensor([0, 1, 1, -1])) == pytest.approx(2 / 3)


def test_certain_labels_do_not_make_the_others_seem_better():
    true = torch.arange(2000) % 4
    given = torch.where(torch.arange(2000) % 5 == 0, (true + 1) % 4, true)
    predicted = torch.full((2000, 4), 0.02)
    predicted[torch.arange(2000), true] = 0.94
    none = torch.zeros(2000, dtype=torch.bool)
    alone = stage.posterior(predicted, given, none)
    many = torch.arange(4).repeat(2000)  # as many again four times, all certain
    certain = torch.cat([none, torch.ones(len(many), dtype=torch.bool)])
    sure = torch.nn.functional.one_hot(many, 4).float()
    beside = stage.posterior(torch.cat([predicted, sure]), torch.cat([given, many]), certain)
    assert_close(beside.transition, alone.transition)
    assert_close(beside.probabilities[:2000], alone.probabilities)
    everyone = stage.posterior(predicted, true, ~none)
    assert_close(everyone.transition, torch.eye(4, dtype=torch.float64), atol=0.01, rtol=0)
