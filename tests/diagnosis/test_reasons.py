import numpy as np
import pytest
import torch
from made_outputs import by_hand
from numpy.testing import assert_allclose

from labelmend.decision.posterior import CORRECTED, FILLED, KEPT, REVIEW, Decision
from labelmend.diagnosis.conclude import (
    ANOTHER,
    FAR,
    NONE,
    REASONS,
    SCATTERED,
    SHORT,
    TWO,
    UNSURE,
    held_share,
    hold,
    least_fitting,
    misfit,
    outliers,
    reason_codes,
)


def names(codes):
    return [REASONS[code] for code in codes]


def two_classes(n=40, **changes):
    """Half of each of two of three classes, all clean, the features longer or shorter from sample to sample."""
    decided = np.arange(n) % 2
    graphs = np.where(np.arange(3) == decided[:, None], 0.9, 0.05)
    return by_hand(decided, decided, graphs, **{"length": 1 + np.linspace(0, 1, n), **changes})


def test_misfit_by_hand():
    # Three classes. The features are as long as -log says: half, a quarter and a quarter of the samples are as short;
    # the graphs see a third class around the last two; the last decision is unsure.
    graphs = [[0.9, 0.1, 0.0], [0.9, 0.1, 0.0], [0.5, 0.3, 0.2], [0.5, 0.3, 0.2]]
    confidence = np.array([1.0, 1.0, 1.0, 0.5])
    outputs = by_hand(
        np.zeros(4, int), np.zeros(4, int), graphs, length=np.array([4.0, 3.0, 2.0, 1.0]), confidence=confidence
    )
    short = -np.log([7 / 8, 5 / 8, 3 / 8, 1 / 8])  # the share that is shorter, and half of the sample itself
    scattered = -np.log([3 / 4, 3 / 4, 1 / 4, 1 / 4])
    unsure = -np.log([5 / 8, 5 / 8, 5 / 8, 1 / 8])
    signs = [(SHORT, short), (SCATTERED, scattered), (UNSURE, unsure)]
    assert_allclose(misfit(outputs), sum(weight * (sign - 1) for weight, sign in signs))


def test_short_features_a_third_class_and_an_unsure_decision_do_not_fit():
    outputs = two_classes(60)
    length, graphs, confidence = outputs.length.copy(), outputs.graphs.copy(), outputs.confidence.copy()
    length[10], graphs[12], confidence[14] = 0.1, [0.4, 0.3, 0.3], 0.6
    for sample in (16, 17):
        length[sample], graphs[sample], confidence[sample] = 0.5, [0.36, 0.32, 0.32], 0.5
    scores = misfit(type(outputs)(**{**vars(outputs), "length": length, "graphs": graphs, "confidence": confidence}))
    assert set(np.argsort(-scores)[:2]) == {16, 17}, "every sign speaks against them"
    assert {10, 12, 14} <= set(np.argsort(-scores)[:9])


def test_a_border_of_two_classes_is_no_misfit():
    outputs = two_classes(60)
    graphs = outputs.graphs.copy()
    graphs[20] = [0.5, 0.45, 0.05]
    border = misfit(type(outputs)(**{**vars(outputs), "graphs": graphs}))
    graphs[20] = [0.5, 0.3, 0.2]
    scattered = misfit(type(outputs)(**{**vars(outputs), "graphs": graphs}))
    assert border[20] < np.quantile(border, 0.8) < scattered[20]


def test_with_two_classes_rounding_is_no_sign():
    rng = np.random.default_rng(0)
    first = rng.random(50).astype(np.float32)
    graphs = np.stack([first, 1 - first], axis=1)
    outputs = by_hand(np.zeros(50, int), np.zeros(50, int), graphs.astype(np.float32))
    assert np.ptp(misfit(outputs)) == 0


@pytest.mark.parametrize(("noise_rate", "share"), [(0.0, 0.02), (0.25, 0.02), (0.3, 0.01), (0.35, 0.0), (0.8, 0.0)])
def test_fewer_are_held_back_where_labels_are_not_to_be_believed(noise_rate, share):
    assert held_share(0.02, noise_rate) == pytest.approx(share)


def test_what_is_usual_is_that_of_the_own_class():
    outputs = two_classes(80)
    length = np.where(outputs.decided == 1, 0.1, 1.0) * outputs.length  # everything in class 1 is short
    scores = misfit(type(outputs)(**{**vars(outputs), "length": length}))
    assert_allclose(scores[outputs.decided == 0].mean(), scores[outputs.decided == 1].mean(), atol=0.3)


def test_the_share_is_the_most_that_is_taken_and_fixed_samples_are_not():
    scores = np.array([5.0, 4.0, 3.0, 2.0, 1.0, -1.0, -2.0, -3.0, -4.0, -5.0])
    fixed = np.zeros(10, dtype=bool)
    assert np.flatnonzero(least_fitting(scores, fixed, 0.3)).tolist() == [0, 1, 2]
    fixed[1] = True
    assert np.flatnonzero(least_fitting(scores, fixed, 0.3)).tolist() == [0, 2, 3]
    assert np.flatnonzero(least_fitting(scores, fixed, 1.0)).tolist() == [0, 2, 3, 4]
    assert not least_fitting(scores, fixed, 0.0).any()


def test_outliers_lie_far_outside():
    graphs = np.full((5, 2), 0.5)
    outputs = by_hand([0, 0, 0, -1, -1], [1, 0, 0, 0, 0], graphs)
    scores = np.array([1.0, 1.0, FAR + 1, 1.0, FAR + 1])
    assert outliers(outputs, scores, 1.0).tolist() == [False, False, True, False, True]
    assert not outliers(outputs, scores, 0.0).any()


def test_every_reason_by_hand():
    graphs = [[0.9, 0.05, 0.05], [0.05, 0.9, 0.05], [0.5, 0.45, 0.05], [0.05, 0.5, 0.45], [0.34, 0.33, 0.33]]
    outputs = by_hand([0, 0, 1, 0, 0], [0, 1, 0, 1, 2], graphs)
    foreign = np.array([False, False, False, False, True])
    # The fourth is divided between two classes of which neither is its label: that is another class.
    assert names(reason_codes(outputs, foreign)) == ["", ANOTHER, TWO, ANOTHER, NONE]


def test_certain_labels_and_missing_ones_need_no_other_class():
    graphs = [[0.1, 0.9], [0.1, 0.9], [0.5, 0.5]]
    outputs = by_hand([0, -1, 0], [0, 1, 0], graphs, fixed=np.array([True, False, True]))
    assert names(reason_codes(outputs, np.zeros(3, dtype=bool))) == ["", "", ""]


def test_outliers_keep_their_label_for_review():
    given = torch.tensor([0, 0, 1, -1])
    probabilities = torch.tensor([[0.1, 0.9], [0.2, 0.8], [0.3, 0.7], [0.6, 0.4]])
    decision = Decision(
        torch.tensor([1, 1, 1, 0]),
        torch.tensor([0.9, 0.8, 0.7, 0.6]),
        torch.tensor([0, 0, 0, 1]),
        torch.tensor([CORRECTED, CORRECTED, KEPT, FILLED]),
        torch.tensor([0.1, 0.2, 0.7, 0.0]),
    )
    held = hold(decision, probabilities, given, np.array([True, False, True, True]))
    assert held.labels.tolist() == [0, 1, 1, 0]
    assert held.status.tolist() == [REVIEW, CORRECTED, REVIEW, FILLED]
    assert_allclose(held.confidence, [0.1, 0.8, 0.7, 0.6], rtol=1e-6)
    assert held.runner_up.tolist() == [1, 0, 0, 1]


def test_two_classes_need_both_shares():
    outputs = by_hand([0, 0], [0, 0], [[0.74, 0.26], [0.8, 0.2]], net=np.full((2, 2), 0.5))
    # sqrt(.74 x .5) : sqrt(.26 x .5) is .628 : .372 and sqrt(.8) : sqrt(.2) is .667 : .333: both divided.
    assert names(reason_codes(outputs, np.zeros(2, dtype=bool))) == [TWO, TWO]
    outputs = by_hand([0, 0], [0, 0], [[0.74, 0.26], [0.97, 0.03]], net=np.full((2, 2), 0.5))
    assert names(reason_codes(outputs, np.zeros(2, dtype=bool))) == [TWO, ""]
