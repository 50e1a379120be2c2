import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from told import by_hand, centred

from labelmend.decide import CORRECTED, FILLED, KEPT, REVIEW, Decision
from labelmend.trust.reasons import (
    ANOTHER,
    FAR,
    NONE,
    REASONS,
    TWO,
    UNSURE,
    held_share,
    hold,
    least_fitting,
    misfit,
    outliers,
    reason_codes,
)
from labelmend.trust.testimony import class_directions


def names(codes):
    return [REASONS[code] for code in codes]


def two_classes(n=40, **changes):
    """Half of each class, all clean, the net louder or softer from sample to sample."""
    decided = np.arange(n) % 2
    graphs = np.where(np.arange(2) == decided[:, None], 0.9, 0.1)
    loud = 1 + np.linspace(0, 1, n)[:, None]
    signs = np.where(np.arange(2) == decided[:, None], 1.0, -1.0)
    return by_hand(decided, decided, graphs, logits=signs * loud, reach=signs * loud + 1, **changes)


def test_misfit_by_hand():
    # Class 0 alone, four samples said clean; logits +-l and graphs (1, 0): the voice is -l = -1, -2, -3, -4.
    graphs, loud = np.tile([1.0, 0.0], (12, 1)), np.repeat([1.0, 2.0, 3.0, 4.0], 3)
    logits = np.stack([loud, -loud], axis=1)
    told = by_hand(np.zeros(12, int), np.zeros(12, int), graphs, logits=logits, reach=logits)
    usual = -loud
    one = np.quantile(usual, 0.75) - np.median(usual)
    assert_allclose(misfit(told), (usual - np.median(usual)) / one)


def test_a_net_that_whispers_a_graph_that_cannot_decide_and_a_quarrel_do_not_fit():
    told = two_classes(60)
    graphs, logits, reach = told.graphs.copy(), told.logits.copy(), told.reach.copy()
    logits[0], reach[0] = 0.0, 0.0
    graphs[2] = 0.5
    logits[4] = -logits[4]  # the net says the other class, the graphs do not
    told = type(told)(**{**vars(told), "graphs": graphs, "logits": logits, "reach": reach})
    scores = misfit(told)
    assert set(np.argsort(-scores)[:3]) == {0, 2, 4}
    assert abs(np.median(scores[5:])) < 1


def test_an_unsure_decision_fits_worse():
    sure, confidence = two_classes(), np.ones(40)
    confidence[0] = 0.95  # still looks clean, so what is usual stays the same
    difference = misfit(two_classes(confidence=confidence)) - misfit(sure)
    assert_allclose(difference, UNSURE * (1 - confidence), atol=1e-12)


@pytest.mark.parametrize(("noise_rate", "share"), [(0.0, 0.02), (0.25, 0.02), (0.3, 0.01), (0.35, 0.0), (0.8, 0.0)])
def test_fewer_are_held_back_where_labels_are_not_to_be_believed(noise_rate, share):
    assert held_share(0.02, noise_rate) == pytest.approx(share)


def test_what_is_usual_is_that_of_the_own_class():
    told = two_classes(80)
    quiet = np.where(told.decided == 1, 0.1, 1.0)[:, None]  # everybody in class 1 speaks softly
    told = type(told)(**{**vars(told), "logits": told.logits * quiet, "reach": told.reach * quiet})
    scores = misfit(told)
    assert_allclose(scores[told.decided == 0].mean(), scores[told.decided == 1].mean(), atol=0.3)


def test_the_share_is_the_most_that_is_taken_and_fixed_samples_are_not():
    scores = np.array([5.0, 4.0, 3.0, 2.0, 1.0, -1.0, -2.0, -3.0, -4.0, -5.0])
    fixed = np.zeros(10, dtype=bool)
    assert np.flatnonzero(least_fitting(scores, fixed, 0.3)).tolist() == [0, 1, 2]
    fixed[1] = True
    assert np.flatnonzero(least_fitting(scores, fixed, 0.3)).tolist() == [0, 2, 3]
    assert np.flatnonzero(least_fitting(scores, fixed, 1.0)).tolist() == [0, 2, 3, 4]
    assert not least_fitting(scores, fixed, 0.0).any()


def test_outliers_would_change_their_label_or_lie_far_outside():
    graphs = np.full((5, 2), 0.5)
    told = by_hand([0, 0, 0, -1, -1], [1, 0, 0, 0, 0], graphs)
    scores = np.array([1.0, 1.0, FAR + 1, 1.0, FAR + 1])
    assert outliers(told, scores, 1.0).tolist() == [True, False, True, False, True]
    assert not outliers(told, scores, 0.0).any()


def test_every_reason_by_hand():
    graphs = [[0.9, 0.05, 0.05], [0.05, 0.9, 0.05], [0.5, 0.45, 0.05], [0.05, 0.5, 0.45], [0.34, 0.33, 0.33]]
    told = by_hand([0, 0, 1, 0, 0], [0, 1, 0, 1, 2], graphs)
    foreign = np.array([False, False, False, False, True])
    # The fourth is divided between two classes of which neither is its label: that is another class.
    assert names(reason_codes(told, foreign)) == ["", ANOTHER, TWO, ANOTHER, NONE]


def test_certain_labels_and_missing_ones_need_no_other_class():
    graphs = [[0.1, 0.9], [0.1, 0.9], [0.5, 0.5]]
    told = by_hand([0, -1, 0], [0, 1, 0], graphs, fixed=np.array([True, False, True]))
    assert names(reason_codes(told, np.zeros(3, dtype=bool))) == ["", "", ""]


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


def test_directions_are_class_means_of_length_one():
    features = torch.tensor([[3.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
    found = class_directions(features, torch.tensor([0, 0, 1]), 3)
    assert_allclose(found, [[1, 0], [0, 1], [0, 0]])


def test_two_classes_need_both_shares():
    told = by_hand([0, 0], [0, 0], [[0.74, 0.26], [0.8, 0.2]], logits=centred([[1.0, 1.0], [1.0, 1.0]]))
    # sqrt(.74 x .5) : sqrt(.26 x .5) is .628 : .372 and sqrt(.8) : sqrt(.2) is .667 : .333: both divided.
    assert names(reason_codes(told, np.zeros(2, dtype=bool))) == [TWO, TWO]
    told = by_hand([0, 0], [0, 0], [[0.74, 0.26], [0.97, 0.03]], logits=centred([[1.0, 1.0], [1.0, 1.0]]))
    assert names(reason_codes(told, np.zeros(2, dtype=bool))) == [TWO, ""]
