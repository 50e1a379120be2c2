"""The decision: EM against a dense reference, calibration, statuses, and what must never happen."""

import numpy as np
import pytest
import torch
from hypothesis import given as for_any
from hypothesis import strategies as st
from torch.testing import assert_close

import reference
from labelmend import decide as stage


def noisy_problem(n: int, n_classes: int, noise: float, sharpness: float, seed: int = 0):
    """A witness that is right in proportion to its own probabilities, and labels flipped to the next class."""
    rng = np.random.default_rng(seed)
    witness = rng.dirichlet(np.full(n_classes, 0.15), size=n)
    truth = np.array([rng.choice(n_classes, p=row) for row in witness])
    flipped = rng.random(n) < noise
    labels = np.where(flipped, (truth + 1) % n_classes, truth)
    sharpened = witness**sharpness
    sharpened /= sharpened.sum(axis=1, keepdims=True)
    return torch.tensor(sharpened), torch.tensor(labels), torch.tensor(truth)


def nobody(labels: torch.Tensor) -> torch.Tensor:
    return torch.zeros_like(labels, dtype=torch.bool)


def test_posterior_equals_the_dense_reference():
    witness, labels, _ = noisy_problem(60, 4, 0.3, 1.0)
    labels[:5] = -1
    fixed = nobody(labels)
    fixed[10:13] = True
    found = stage.posterior(witness, labels, fixed, n_passes=7)
    probabilities, transition = reference.em_posterior(
        witness.numpy(), labels.numpy(), fixed.numpy(), 7, stage.PRIOR_ROWS, stage.FLOOR, stage.SCEPTICAL_BELOW
    )
    np.testing.assert_allclose(found.probabilities.numpy(), probabilities, rtol=1e-9)
    np.testing.assert_allclose(found.transition.numpy(), transition, rtol=1e-9)


def test_a_calibrated_witness_recovers_the_transition_matrix_and_the_noise_rate():
    witness, labels, truth = noisy_problem(6000, 4, 0.25, 1.0)
    found = stage.posterior(witness, labels, nobody(labels))
    assert found.noise_rate == pytest.approx(0.25, abs=0.03)
    assert_close(found.transition.diagonal(), torch.full((4,), 0.75, dtype=torch.float64), atol=0.05, rtol=0)
    improved = (found.probabilities.argmax(dim=1) == truth).double().mean()
    assert improved > (witness.argmax(dim=1) == truth).double().mean()
    assert improved > (labels == truth).double().mean()


@pytest.mark.parametrize("sharpness", [0.4, 1.0, 2.5])
def test_calibration_undoes_a_wrong_sharpness(sharpness):
    witness, labels, truth = noisy_problem(6000, 4, 0.2, sharpness)
    says = witness.argmax(dim=1)
    error = float(((says != truth) & (says != labels)).double().mean())
    found = stage.calibrated_posterior(witness, error, labels, nobody(labels))
    assert found.noise_rate == pytest.approx(0.2, abs=0.03)


def test_calibration_counts_the_doubt_where_the_witness_contradicts_a_label():
    witness, labels, _ = noisy_problem(2000, 4, 0.2, 1.0)
    fixed = nobody(labels)
    fixed[:200], labels[200:300] = True, -1
    says = witness.argmax(dim=1)
    found = stage.calibrated_posterior(witness, 0.15, labels, fixed)
    doubt = 1 - found.probabilities.gather(1, says.unsqueeze(1)).squeeze(1)
    counted = (says != labels) & (labels >= 0) & ~fixed
    assert float(doubt[counted].sum()) / 1700 == pytest.approx(0.15, abs=0.005)


def test_errors_at_borders_leave_fewer_right_labels_to_contradict():
    witness, labels, _ = noisy_problem(2000, 4, 0.3, 1.0)
    says = witness.argmax(dim=1)
    for at_borders in (0.0, 0.6, 1.0):
        found = stage.calibrated_posterior(witness, 0.15, labels, nobody(labels), at_borders)
        doubt = 1 - found.probabilities.gather(1, says.unsqueeze(1)).squeeze(1)
        scarce = (1 - found.noise_rate) ** (stage.BORDER_POWER * at_borders**2)
        assert float(doubt[says != labels].sum()) / 2000 == pytest.approx(0.15 * scarce, abs=0.005)
    directly = stage.calibrated_posterior(witness, 0.15, says, nobody(labels), 1.0)
    assert_close(found.again(says).probabilities, directly.probabilities)


def test_without_errors_it_makes_no_difference_where_they_would_sit():
    witness, truth, _ = noisy_problem(3000, 4, 0.0, 1.0)
    error = float((witness.argmax(dim=1) != truth).double().mean())
    found = stage.calibrated_posterior(witness, error, truth, nobody(truth), 1.0)
    assert float((found.probabilities.argmax(dim=1) != truth).double().mean()) <= 0.005


def test_calibration_again_with_other_labels_counts_theirs():
    witness, labels, truth = noisy_problem(2000, 4, 0.2, 1.0)
    found = stage.calibrated_posterior(witness, 0.1, labels, nobody(labels))
    assert found.again is not None
    directly = stage.calibrated_posterior(witness, 0.1, truth, nobody(truth))
    assert_close(found.again(truth).probabilities, directly.probabilities)


def test_noise_can_be_measured_by_a_surer_witness_and_again_with_other_labels():
    witness, labels, _ = noisy_problem(2000, 4, 0.3, 0.7)
    fixed = nobody(labels)
    found = stage.posterior(witness, labels, fixed)
    surer = stage.posterior(stage.weighted_product([witness], [1.5]), labels, fixed)
    both = stage.with_noise_of(surer, found)
    assert_close(both.probabilities, found.probabilities)
    assert_close(both.transition, surer.transition)
    assert both.noise_rate == surer.noise_rate > found.noise_rate
    assert both.measured is surer
    other = labels.clone()
    other[::3] = (other[::3] + 1) % 4
    once_more = both.again(other)
    assert_close(once_more.probabilities, stage.posterior(witness, other, fixed).probabilities)
    assert once_more.noise_rate == surer.again(other).noise_rate > both.noise_rate


def test_a_witness_known_to_be_wrong_as_often_as_it_objects_changes_nothing():
    witness, truth, _ = noisy_problem(3000, 4, 0.0, 1.0)
    error = float((witness.argmax(dim=1) != truth).double().mean())
    found = stage.calibrated_posterior(witness, error, truth, nobody(truth))
    assert float((found.probabilities.argmax(dim=1) != truth).double().mean()) <= 0.005


def test_a_sample_without_a_label_gets_the_witness_as_sure_as_it_may_be():
    witness, labels, _ = noisy_problem(2000, 4, 0.2, 0.5)
    labels[1000:] = -1
    found = stage.calibrated_posterior(witness, 0.15, labels, nobody(labels)).probabilities
    expected = stage.weighted_product([witness], [stage.own_sharpness(witness, 0.15)])
    assert_close(found[1000:], expected[1000:])
    assert 1 - float(expected.amax(dim=1).mean()) == pytest.approx(0.15, abs=0.005)


def test_labels_that_hardly_contradict_a_witness_do_not_make_it_ignorant():
    witness, *_ = noisy_problem(2000, 4, 0.0, 1.0)
    says = witness.argmax(dim=1)
    found = stage.calibrated_posterior(witness, 0.2, says, nobody(says))
    assert found.witness is not None
    assert 1 - float(found.witness.amax(dim=1).mean()) == pytest.approx(1.5 * 0.2, abs=0.01)


def test_a_little_noise_is_held_for_none_and_much_is_believed():
    few, many = torch.tensor([[995.0, 5.0], [5.0, 995.0]]), torch.tensor([[800.0, 200.0], [200.0, 800.0]])
    believed = stage.sceptical(few)
    assert_close(believed.sum(dim=1), few.sum(dim=1))
    assert_close(believed[0, 1], torch.tensor(5 * 0.005**2 / (0.005**2 + 0.01**2)))
    assert_close(stage.sceptical(many), many, rtol=0.01, atol=0)


def test_trusted_samples_keep_their_label_with_certainty():
    witness, labels, _ = noisy_problem(80, 3, 0.4, 1.0)
    fixed = nobody(labels)
    fixed[::4] = True
    found = stage.posterior(witness, labels, fixed)
    assert_close(found.probabilities[fixed].argmax(dim=1), labels[fixed])
    assert_close(found.probabilities[fixed].amax(dim=1), torch.ones(20, dtype=torch.float64))


def test_unlabelled_samples_get_what_the_witness_says_and_do_not_count():
    witness, labels, _ = noisy_problem(200, 3, 0.2, 1.0)
    with_gap = torch.cat([labels, torch.full((50,), -1)])
    more = torch.cat([witness, witness[:50]])
    found = stage.posterior(more, with_gap, nobody(with_gap))
    assert_close(found.probabilities[200:], witness[:50])
    alone = stage.posterior(witness, labels, nobody(labels))
    assert found.noise_rate == pytest.approx(alone.noise_rate)
    assert_close(found.transition, alone.transition)


def test_blocks_of_rows_give_the_same_as_one_block(monkeypatch):
    witness, labels, _ = noisy_problem(90, 5, 0.2, 1.0)
    whole = stage.posterior(witness, labels, nobody(labels))
    monkeypatch.setattr(stage, "BLOCK_ENTRIES", 35)
    assert_close(stage.posterior(witness, labels, nobody(labels)).probabilities, whole.probabilities)


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


def test_witness_error_comes_from_the_view_that_agrees_least():
    graphs = torch.eye(2)[[0, 0, 0, 1, 1, 1, 1, 0]]
    asked = torch.tensor([0, 3, 5, 7])
    neighbors = torch.tensor([[1, 2, 3], [0, 1, 4], [3, 4, 6], [3, 4, 0]])  # say 0, 0, 1, 1: wrong about 3 and 7
    by_neighbors = 3 * 0.5**1.23  # (2 + 1) / (4 + 2)
    assert stage.witness_error(graphs, asked, neighbors, graphs) == pytest.approx(by_neighbors)
    net = torch.eye(2)[[0, 0, 0, 1, 1, 1, 1, 1]]
    assert stage.witness_error(graphs, asked, neighbors, net) == pytest.approx(by_neighbors)
    net = torch.eye(2)[[1, 1, 1, 1, 1, 1, 1, 1]]
    assert stage.witness_error(graphs, asked, neighbors, net) == pytest.approx(3 * (1.5 * 4 / 8) ** 1.23)


def test_a_witness_who_knows_nothing_is_uniform():
    assert_close(
        stage.as_distribution(torch.tensor([[0.0, 0.0], [1.0, 3.0]])), torch.tensor([[0.5, 0.5], [0.25, 0.75]])
    )


@for_any(st.floats(0.2, 5.0), st.integers(0, 5))
def test_powers_of_a_witness_sharpen_it_and_keep_its_order(power, seed):
    witness = torch.from_numpy(np.random.default_rng(seed).dirichlet(np.ones(4), size=6))
    sharpened = stage.weighted_product([witness], [power])
    assert_close(sharpened.sum(dim=1), torch.ones(6, dtype=torch.float64))
    expected = witness**power / (witness**power).sum(dim=1, keepdim=True)
    assert_close(sharpened, expected, rtol=1e-4, atol=1e-5)


def test_agreement_counts_labelled_samples_only():
    witness = torch.eye(3)[[0, 1, 2, 0]]
    assert stage.agreement(witness, torch.tensor([0, 1, 1, -1])) == pytest.approx(2 / 3)


def test_the_sharpness_is_searched_on_labels_in_no_pattern(monkeypatch):
    """Classes in turn, as many as the step between the labels searched would be: every class must be heard."""
    n = 4000
    true = torch.arange(n) % 4
    witness = torch.full((n, 4), 0.02)
    wrong = (true % 2 == 1) & (torch.arange(n) % 5 == 0)  # the witness is good on even classes only
    witness[torch.arange(n), torch.where(wrong, (true + 1) % 4, true)] = 0.94
    given = torch.where(torch.arange(n) % 7 == 0, (true + 2) % 4, true)
    given[::9] = -1
    fixed = torch.zeros(n, dtype=torch.bool)
    whole = stage.calibrated_posterior(witness, 0.1, given, fixed)
    monkeypatch.setattr(stage, "SEARCHED", 1000)
    part = stage.calibrated_posterior(witness, 0.1, given, fixed)
    assert_close(part.probabilities, whole.probabilities, atol=0.05, rtol=0)


def test_places_are_drawn_once_and_for_all():
    cpu = torch.device("cpu")
    assert_close(stage.draw(5, 9, cpu), torch.arange(5))
    drawn = stage.draw(1000, 100, cpu)
    assert_close(stage.draw(1000, 100, cpu), drawn)
    assert len(drawn.unique()) == 100
    assert bool((drawn.diff() > 0).all())
    assert len(drawn.diff().unique()) > 5


def test_certain_labels_do_not_make_the_others_seem_better():
    true = torch.arange(2000) % 4
    given = torch.where(torch.arange(2000) % 5 == 0, (true + 1) % 4, true)
    witness = torch.full((2000, 4), 0.02)
    witness[torch.arange(2000), true] = 0.94
    none = torch.zeros(2000, dtype=torch.bool)
    alone = stage.posterior(witness, given, none)
    many = torch.arange(4).repeat(2000)  # as many again four times, all certain
    certain = torch.cat([none, torch.ones(len(many), dtype=torch.bool)])
    sure = torch.nn.functional.one_hot(many, 4).float()
    beside = stage.posterior(torch.cat([witness, sure]), torch.cat([given, many]), certain)
    assert_close(beside.transition, alone.transition)
    assert_close(beside.probabilities[:2000], alone.probabilities)
    everyone = stage.posterior(witness, true, ~none)
    assert_close(everyone.transition, torch.eye(4, dtype=torch.float64), atol=0.01, rtol=0)
