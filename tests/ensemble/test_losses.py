import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck

import reference
from labelmend.config import BRANCH_LOSSES
from labelmend.ensemble import losses
from strategies import eighths, predictions

LABELS = torch.tensor([0, 1, 2, 1])
WEIGHTS = torch.tensor([0.9, 0.4, 0.0, 0.7], dtype=torch.float64)
KEPT = torch.tensor([True, False, True, False])


def double(values):
    return torch.as_tensor(values, dtype=torch.float64)


def random_logits(n=4, n_classes=3, seed=0):
    logits = torch.randn(n, n_classes, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return logits.requires_grad_()


def branch_loss(name, features, logits, labels=LABELS, kept=KEPT, weights=WEIGHTS):
    return losses.branch_loss(name, features, logits, labels, kept, weights, 2.0, 0.5, 3.0)


def test_weighted_cross_entropy_by_hand():
    # Probabilities 1/4 and 3/4 of class 0; the mean is over the batch, not over the weights.
    logits = double([[0, math.log(3)], [math.log(3), 0]])
    got = losses.weighted_cross_entropy(logits, torch.tensor([0, 0]), double([1.0, 0.5]))
    torch.testing.assert_close(got, double((math.log(4) + 0.5 * math.log(4 / 3)) / 2), rtol=0, atol=1e-12)


@given(predictions())
def test_weighted_cross_entropy_is_L_pseudo(batch):
    logits, labels, omega = batch
    got = losses.weighted_cross_entropy(double(logits), torch.as_tensor(labels), double(omega))
    np.testing.assert_allclose(got, reference.L_pseudo(reference.softmax(logits), labels, omega), rtol=0, atol=1e-10)


def test_noisy_weights_are_omega_where_kept_and_the_rest_where_changed():
    got = losses.noisy_weights(double([0.75, 0.75, 0.0]), torch.tensor([0, 1, 2]), torch.tensor([0, 2, 1]))
    assert got.tolist() == [0.75, 0.25, 1.0]


@given(predictions(), st.data())
def test_cross_entropy_with_noisy_weights_is_L_noisy(batch, draw):
    logits, given_labels, omega = batch
    corrected = np.array([draw.draw(st.integers(0, 2)) for _ in given_labels])
    labels = torch.as_tensor(given_labels)
    weights = losses.noisy_weights(double(omega), labels, torch.as_tensor(corrected))
    expected = reference.L_noisy(reference.softmax(logits), given_labels, corrected, omega)
    np.testing.assert_allclose(
        losses.weighted_cross_entropy(double(logits), labels, weights), expected, rtol=0, atol=1e-10
    )


def test_graph_smoothness_by_hand():
    # Two pairs of different label, (0, 1) at distance 5 and (0, 2) at distance 0; (1, 2) share a label.
    points, weights = double([[0, 0], [3, 4], [0, 0]]), double([1.0, 0.25, 0.04])
    got = losses.graph_smoothness(points, torch.tensor([0, 1, 1]), weights, scale=0.1)
    torch.testing.assert_close(got, double((0.5 * math.exp(-0.5) + 0.2) / 2), rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("distance", "forth", "back"),
    [
        ("kl", math.log(4 / 3) / 2, math.log(27 / 16) / 4),
        ("js", 3 / 2 * math.log(2) - 5 / 8 * math.log(5), 3 / 2 * math.log(2) - 5 / 8 * math.log(5)),
    ],
)
def test_divergences_by_hand(distance, forth, back):
    # p = (1/2, 1/2), q = (1/4, 3/4): KL(p|q) and KL(q|p) both count; JS is H(3/8, 5/8) - (H(p) + H(q)) / 2.
    points = double([[0.5, 0.5], [0.25, 0.75]])
    got = losses.graph_smoothness(points, torch.tensor([0, 1]), double([1, 1]), scale=2.0, distance=distance)
    torch.testing.assert_close(got, double((math.exp(-2 * forth) + math.exp(-2 * back)) / 2), rtol=0, atol=1e-12)


@pytest.mark.parametrize(("distance", "tolerance"), [("l2", 1e-5), ("kl", 1e-10), ("js", 1e-10)])
@given(batch=predictions(), scale=st.sampled_from([0.5, 2.0]))
def test_graph_smoothness_is_L_G(distance, tolerance, batch, scale):
    logits, labels, omega = batch
    p = reference.softmax(logits)
    got = losses.graph_smoothness(double(p), torch.as_tensor(labels), double(omega), scale, distance)
    np.testing.assert_allclose(got, reference.L_G(p, labels, omega, scale, distance), rtol=0, atol=tolerance)


@given(eighths((5, 3)), eighths(5, low=0))
def test_graph_smoothness_of_features_is_L_G_with_their_distance(features, omega):
    labels = np.array([0, 0, 1, 2, 1])
    got = losses.graph_smoothness(double(features), torch.as_tensor(labels), double(omega), 1.0)
    np.testing.assert_allclose(got, reference.L_G(features, labels, omega, 1.0, "l2"), rtol=0, atol=1e-5)


def test_graph_smoothness_of_one_label_is_zero_and_can_be_differentiated():
    points = random_logits(3)
    loss = losses.graph_smoothness(points, torch.tensor([1, 1, 1]), double([1, 1, 1]), 2.0)
    loss.backward()
    assert loss == 0
    assert (points.grad == 0).all()


@pytest.mark.parametrize("distance", ["l2", "kl", "js"])
def test_graph_smoothness_has_a_finite_gradient_at_equal_and_at_certain_points(distance):
    points = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]], requires_grad=True)
    losses.graph_smoothness(points, torch.tensor([0, 1, 1]), torch.ones(3), 2.0, distance).backward()
    assert torch.isfinite(points.grad).all()


def test_graph_smoothness_pushes_different_labels_apart_and_leaves_equal_ones_alone():
    points = double([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]).requires_grad_()
    losses.graph_smoothness(points, torch.tensor([0, 1, 1]), double([1, 1, 1]), 2.0).backward()
    assert points.grad[1, 0] < 0, "descending moves the second point away from the first"
    torch.testing.assert_close(points.grad[1, 1], double(0.0), rtol=0, atol=1e-12)
    torch.testing.assert_close(points.grad.sum(dim=0), double([0, 0]), rtol=0, atol=1e-12)


def test_cross_entropy_and_mae_by_hand():
    # p(label) = 1/4 for both; the first is kept: log 4, the second changed: 3/4, halved by its weight.
    logits = double([[0, math.log(3)], [0, math.log(3)]])
    got = losses.cross_entropy_and_mae(
        logits, torch.tensor([0, 0]), torch.tensor([True, False]), double([1.0, 0.5]), ce_factor=2.0, mae_factor=10.0
    )
    torch.testing.assert_close(got, double(2 * math.log(4) / 2 + 10 * 0.5 * 0.75 / 2), rtol=0, atol=1e-12)


@given(predictions(), st.data())
def test_the_loss_by_groups_is_the_one_of_the_text(batch, draw):
    logits, labels, _ = batch
    kept = np.array([draw.draw(st.booleans()) for _ in labels])
    goal = 0.75 * np.eye(3)[labels] + 0.25 * np.eye(3)[np.roll(labels, 1)]
    p = reference.softmax(logits)
    for found, squared in ((losses.split_mae, False), (losses.split_mse, True)):
        got = found(double(logits), double(goal), torch.as_tensor(kept), 2.0, 10.0)
        expected = reference.L_split(p, goal, kept, 2.0, 10.0, squared)
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-10)


@given(eighths((5, 3), low=-24, high=24))
def test_class_imbalance_is_that_of_the_reference(logits):
    expected = reference.class_imbalance(reference.softmax(logits))
    np.testing.assert_allclose(losses.class_imbalance(double(logits)), expected, rtol=0, atol=1e-9)


def test_confidence_by_hand():
    # Entropies log 2 and (log 4 - 3/4 log 3).
    logits = double([[0, 0], [0, math.log(3)]])
    expected = -(math.log(2) + math.log(4) - 0.75 * math.log(3)) / 2
    torch.testing.assert_close(losses.confidence(logits), double(expected), rtol=0, atol=1e-12)


def test_soft_label_loss_by_hand():
    logits, targets = double([[0, math.log(3)]]), double([[0.5, 0.5]])
    ce, mse = (math.log(4) + math.log(4 / 3)) / 2, 1 / 16
    got = losses.soft_label_loss(logits, targets, ce_factor=2.0, mse_factor=8.0)
    torch.testing.assert_close(got, double(2 * ce + 8 * mse), rtol=0, atol=1e-12)


@given(predictions())
def test_soft_cross_entropy_of_certain_targets_is_weighted_cross_entropy(batch):
    logits, labels, omega = double(batch[0]), torch.as_tensor(batch[1]), double(batch[2])
    targets = torch.nn.functional.one_hot(labels, 3).double()
    expected = losses.weighted_cross_entropy(logits, labels, omega)
    torch.testing.assert_close(losses.soft_cross_entropy(logits, targets, omega), expected, rtol=0, atol=1e-12)


def test_mix_by_hand():
    # Each with its neighbour in the batch, the first with the last.
    got = losses.mix(double([[0.0], [1.0], [4.0]]), double(0.75))
    torch.testing.assert_close(got, double([[1.0], [0.75], [3.25]]))


def test_consistency_by_hand():
    # The teacher gives 9/10 to class 0, 3/4 to class 1, 1/2 to both: only the first is surer than 0.8, and p(0) = 1/4.
    teacher = double([[math.log(9), 0], [0, math.log(3)], [0, 0]])
    logits = double([[0, math.log(3)]] * 3)
    got = losses.consistency(logits, teacher, 0.8)
    torch.testing.assert_close(got, double(math.log(4) / 3), rtol=0, atol=1e-12)
    got = losses.consistency(logits, teacher, 0.5)  # the second too, p(1) = 3/4; the third is not surer than that
    torch.testing.assert_close(got, double((math.log(4) + math.log(4 / 3)) / 3), rtol=0, atol=1e-12)


def test_consistency_with_an_unsure_teacher_is_zero_and_can_be_differentiated():
    logits = random_logits()
    loss = losses.consistency(logits, torch.zeros(4, 3, dtype=torch.float64), 0.8)
    loss.backward()
    assert loss == 0
    assert (logits.grad == 0).all()


def test_consistency_teaches_the_logits_and_not_the_teacher():
    logits, teacher = random_logits(), (9 * random_logits(seed=2)).detach().requires_grad_()
    losses.consistency(logits, teacher, 0.5).backward()
    assert (logits.grad != 0).any()
    assert teacher.grad is None


def test_branch_losses_by_name_are_the_losses_they_stand_for():
    features, logits = random_logits(n_classes=5, seed=1), random_logits()
    p, ones = logits.softmax(dim=1), torch.ones_like(WEIGHTS)
    expected = {
        "smoothness": losses.graph_smoothness(p, LABELS, WEIGHTS, 2.0, "l2"),
        "smoothness-unweighted": losses.graph_smoothness(p, LABELS, ones, 2.0, "l2"),
        "smoothness-features": losses.graph_smoothness(features, LABELS, ones, 2.0, "l2"),
        "smoothness-kl": losses.graph_smoothness(p, LABELS, WEIGHTS, 2.0, "kl"),
        "smoothness-js": losses.graph_smoothness(p, LABELS, WEIGHTS, 2.0, "js"),
        "cross-entropy": losses.weighted_cross_entropy(logits, LABELS, WEIGHTS),
        "cross-entropy-mae": losses.cross_entropy_and_mae(logits, LABELS, KEPT, WEIGHTS, 0.5, 3.0),
        "split": losses.split_mae(logits, double(np.eye(3)[LABELS]), KEPT, 0.5, 3.0),
    }
    assert set(expected) == set(BRANCH_LOSSES)
    assert len({round(value.item(), 9) for value in expected.values()}) == len(expected)
    for name, value in expected.items():
        torch.testing.assert_close(branch_loss(name, features, logits), value)


def test_an_unknown_branch_loss_is_an_error():
    with pytest.raises(KeyError, match="smooth"):
        branch_loss("smooth", random_logits(), random_logits())


@pytest.mark.parametrize("name", BRANCH_LOSSES)
def test_gradient_of_every_branch_loss(name):
    features, logits = random_logits(n_classes=5, seed=1), random_logits()
    assert gradcheck(lambda f, z: branch_loss(name, f, z), (features, logits))


@pytest.mark.parametrize(
    "loss",
    [
        lambda z: losses.weighted_cross_entropy(z, LABELS, WEIGHTS),
        lambda z: losses.soft_cross_entropy(z, random_logits(seed=2).detach().softmax(dim=1), WEIGHTS),
        lambda z: losses.soft_label_loss(z, random_logits(seed=2).detach().softmax(dim=1), 1.0, 10.0),
        lambda z: losses.split_mse(z, random_logits(seed=2).detach().softmax(dim=1), KEPT, 1.0, 10.0),
        losses.class_imbalance,
        losses.confidence,
        lambda z: losses.mix(z, double(0.3)),
        lambda z: losses.consistency(z, 3 * random_logits(seed=2).detach(), 0.7),
    ],
    ids=[
        "weighted_cross_entropy",
        "soft_cross_entropy",
        "soft_label_loss",
        "split_mse",
        "class_imbalance",
        "confidence",
        "mix",
        "consistency",
    ],
)
def test_gradient_of_the_losses_of_the_other_nets(loss):
    assert gradcheck(loss, (random_logits(),))
