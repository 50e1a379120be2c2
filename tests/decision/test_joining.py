"""Pool and ensemble joined: every branch of the rule on pools made by hand."""

import numpy as np
import pytest
from made_pools import pool_of, sure_of

from labelmend.decision import joining as stage
from labelmend.decision.joining import AUTO, Proposals, join, keep_unrecognised, support
from labelmend.decision.verdict import APART, CANNOT_TELL, OVERLAPPING

N = 100
GIVEN = np.arange(N) % 4
DISPUTED = np.arange(8)  # the ensemble would change these; the pool keeps them
FOR = (GIVEN + 1) % 4
NOTHING = Proposals(np.full(N, -1), GIVEN, np.zeros(N, np.float32), float("inf"))


def nobody():
    return np.zeros(N, dtype=bool)


def members(linear, trees):
    """Of the eight disputed rows, for how many each member names the ensemble's class; else the given one."""
    found = {}
    for name, times in (("ridge", linear), ("logistic", linear), ("trees", trees), ("boosting", trees)):
        found[name] = np.where(np.arange(N) < times, FOR, GIVEN)
    return {**found, "knn": FOR}  # who is near has no say


def pool(linear=7, trees=7, probs=None, **changes):
    return pool_of(sure_of(GIVEN, 4) if probs is None else probs, sure_of(GIVEN, 4), members(linear, trees), **changes)


def proposals(mixing=0.1, rows=DISPUTED, weighed=None, **changes):
    labels = np.where(np.isin(np.arange(N), rows), FOR, GIVEN)
    return Proposals(labels, labels if weighed is None else weighed, np.ones(N, np.float32), mixing, **changes)


def test_support_is_counted_by_hand():
    rows = np.isin(np.arange(N), DISPUTED)
    one = pool(linear=6, trees=2)
    one.member_labels["logistic"][7] = (GIVEN[7] + 2) % 4  # names neither
    # Ridge 6 for, 2 against; logistic regression 6 for, 1 against; half a row each for what is not known.
    assert support(one, stage.LINEAR, rows, FOR, GIVEN) == pytest.approx((12 + 0.5) / (15 + 1))
    assert support(one, stage.TREES, rows, FOR, GIVEN) == pytest.approx((4 + 0.5) / (16 + 1))
    assert support(one, stage.LINEAR, nobody(), FOR, GIVEN) == 0.5


def test_where_classes_are_well_apart_and_members_support_it_all_disputed_rows_take_the_ensembles_label():
    found = join(pool(), GIVEN, nobody(), proposals(), AUTO)
    assert found.labels[DISPUTED].tolist() == FOR[DISPUTED].tolist()
    assert (found.labels[8:] == GIVEN[8:]).all()
    assert np.flatnonzero(found.adopted).tolist() == DISPUTED.tolist()
    assert not found.left_alone.any()
    verdict = found.verdict
    assert (verdict.classes, verdict.disputed, verdict.adopted, verdict.waiting) == (APART, 8, 8, 0)
    assert (verdict.n_classes, verdict.labelled, verdict.assume) == (4, N, AUTO)
    assert verdict.linear == verdict.trees == pytest.approx(14.5 / 17)
    assert verdict.mixing == 0.1


@pytest.mark.parametrize(
    ("mixing", "linear", "trees", "adopted"),
    [
        (0.1, 5, 3, True),  # 10.5 / 17 = .62 > .55; 6.5 / 17 = .38 > 1 / 3
        (0.2, 5, 3, False),  # .62 < .65
        (0.1, 4, 3, False),  # 8.5 / 17 = .5 < .55
        (0.1, 5, 2, False),  # 4.5 / 17 = .26 < 1 / 3
        (0.0, 4, 3, True),  # .5 > .45
        (0.5, 8, 8, False),
        (float("inf"), 8, 8, False),
    ],
)
def test_the_limits_of_support(mixing, linear, trees, adopted):
    found = join(pool(linear, trees), GIVEN, nobody(), proposals(mixing), AUTO)
    assert found.adopted.any() == adopted
    assert found.verdict.classes == (APART if adopted else OVERLAPPING), "clusters of the inputs need not be classes"
    undisputed = join(pool(linear, trees), GIVEN, nobody(), proposals(mixing, rows=[]), AUTO)
    assert undisputed.verdict.classes == (APART if mixing < 0.25 else OVERLAPPING)


@pytest.mark.parametrize(("linear", "trees", "adopted"), [(6, 5, 3), (5, 5, 0), (6, 4, 0), (6, 3, 0)])
def test_where_they_are_still_apart_only_rows_whose_change_the_pool_prefers_take_it(linear, trees, adopted):
    probs = sure_of(GIVEN, 4)
    probs[:3] = sure_of(FOR, 4)[:3]  # the pool holds the proposed class likelier, the given label unheard
    found = join(pool(linear, trees, probs), GIVEN, nobody(), proposals(0.3), AUTO)
    assert found.adopted.sum() == adopted
    assert np.flatnonzero(found.adopted).tolist() == list(range(adopted))
    assert found.left_alone.sum() == 3 - adopted, "what pool and ensemble both hold wrong is first in line"
    assert found.verdict.classes == OVERLAPPING


def test_there_the_graphs_too_must_hold_the_label_wrong_once_weighed_against_how_labels_go_wrong():
    probs = sure_of(GIVEN, 4)
    probs[:3] = sure_of(FOR, 4)[:3]
    weighed = np.where(np.arange(N) < 2, FOR, GIVEN)
    found = join(pool(6, 5, probs), GIVEN, nobody(), proposals(0.3, weighed=weighed), AUTO)
    assert np.flatnonzero(found.adopted).tolist() == [0, 1]
    well_apart = join(pool(6, 5, probs), GIVEN, nobody(), proposals(0.1, weighed=weighed), AUTO)
    assert well_apart.adopted.sum() == 8


@pytest.mark.parametrize(("n_disputed", "adopted"), [(3, False), (4, True)])
def test_a_few_disputed_rows_are_not_worth_a_doubt(n_disputed, adopted):
    found = join(pool(8, 8), GIVEN, nobody(), proposals(rows=np.arange(n_disputed)), AUTO)
    assert found.adopted.any() == adopted
    assert found.verdict.disputed == n_disputed
    careful = join(pool(8, 8), GIVEN, nobody(), proposals(rows=np.arange(n_disputed), least=0.0), AUTO)
    assert careful.adopted.sum() == n_disputed, "unless what proposes is never rash"


def test_the_pools_own_changes_stand():
    changed = pool_of(sure_of(FOR, 4), np.where(np.arange(N)[:, None] < 5, sure_of(FOR, 4), sure_of(GIVEN, 4)))
    found = join(changed, GIVEN, nobody(), NOTHING, AUTO)
    assert found.labels[:5].tolist() == FOR[:5].tolist()
    assert (found.labels[5:] == GIVEN[5:]).all()
    assert found.verdict.classes == OVERLAPPING
    assert (found.verdict.disputed, found.verdict.adopted) == (0, 0)


def test_trusted_rows_are_never_disputed_and_keep_their_label():
    fixed = np.arange(N) < 4
    posterior = np.where(fixed[:, None], sure_of(FOR, 4), sure_of(GIVEN, 4))
    made = pool_of(sure_of(GIVEN, 4), posterior, members(7, 7))
    found = join(made, GIVEN, fixed, proposals(), AUTO)
    assert found.labels[fixed].tolist() == GIVEN[fixed].tolist()
    assert found.verdict.disputed == 4
    assert not (found.adopted | found.left_alone)[fixed].any()


def test_rows_without_a_label_get_the_pools():
    given = GIVEN.copy()
    given[90:] = -1
    found = join(pool(), given, nobody(), proposals(), AUTO)
    assert found.labels[90:].tolist() == GIVEN[90:].tolist()
    assert found.verdict.labelled == 90
    assert not (found.adopted | found.left_alone)[90:].any()


def test_the_ensemble_has_no_say_where_it_names_nothing():
    found = join(pool(), GIVEN, nobody(), NOTHING, AUTO)
    assert (found.labels == GIVEN).all()
    assert found.verdict.disputed == 0


def test_a_class_that_the_pool_cannot_recognise_keeps_its_rows():
    given = np.repeat([0, 1], [40, 60])
    named = np.ones(N, int)
    named[:1] = 0  # one in forty
    probs, labels = sure_of(named, 2), np.ones(N, int)
    assert keep_unrecognised(pool_of(probs), given, labels).tolist() == given.tolist()
    named[:2] = 0  # one in twenty is enough
    assert keep_unrecognised(pool_of(sure_of(named, 2)), given, labels).tolist() == labels.tolist()
    given[:10] = -1  # of a class's given rows
    assert keep_unrecognised(pool_of(sure_of(np.ones(N, int), 2)), given, labels)[:40].tolist() == [1] * 10 + [0] * 30


def test_rows_that_got_their_label_back_are_for_review():
    given = np.repeat([0, 1], [40, 60])
    made = pool_of(sure_of(np.ones(N, int), 2, 0.97))
    found = join(made, given, nobody(), NOTHING, AUTO)
    assert (found.labels == given).all()
    assert found.left_alone.tolist() == [True] * 40 + [False] * 60
    assert found.verdict.waiting == 40


def test_a_class_that_cannot_be_recognised_keeps_its_rows_after_joining_too():
    given = GIVEN.copy()
    probs = sure_of(np.where(GIVEN == 0, 1, GIVEN), 4)  # class 0 is never named
    made = pool_of(probs, sure_of(GIVEN, 4), members(8, 8))
    found = join(made, given, nobody(), proposals(), AUTO)
    assert (found.labels[GIVEN == 0] == 0).all()
    assert found.adopted.sum() == 6
    assert found.verdict.adopted == 6


def test_more_than_two_classes_that_cannot_be_told_apart_stay_as_they_are():
    probs = sure_of(FOR, 4, 0.6)
    made = pool_of(probs, probs, members(8, 8))
    assert made.overlap > stage.UNPREDICTABLE
    given = GIVEN.copy()
    given[95:] = -1
    found = join(made, given, nobody(), proposals(), AUTO)
    assert (found.labels[:95] == GIVEN[:95]).all()
    assert (found.labels[95:] == FOR[95:]).all(), "what has no label is filled all the same"
    assert not found.adopted.any()
    assert found.verdict.classes == CANNOT_TELL
    assert found.left_alone.sum() == found.verdict.waiting == 95
    said_apart = join(made, given, nobody(), proposals(), APART)
    assert (said_apart.labels == FOR).all()
    assert said_apart.verdict.classes == APART


@pytest.mark.parametrize(("high", "classes"), [(0.4, CANNOT_TELL), (0.2, OVERLAPPING)])
def test_two_classes_and_a_flat_likelihood_cannot_be_told(high, classes):
    given = np.arange(N) % 2
    rates = np.linspace(0, high, 101)
    made = pool_of(sure_of(given, 2, 0.55), rates=rates, rate_weights=np.full(101, 1 / 101))
    found = join(made, given, nobody(), Proposals(given, given, np.ones(N, np.float32), 0.9), AUTO)
    assert (found.labels == given).all()
    assert found.verdict.classes == classes
    assert found.verdict.noise_high == pytest.approx(0.95 * high, abs=0.01)


def test_assumed_overlapping_it_is_the_pool_alone():
    found = join(pool(8, 8), GIVEN, nobody(), proposals(0.0), OVERLAPPING)
    assert (found.labels == GIVEN).all()
    assert not found.adopted.any()
    assert (found.verdict.classes, found.verdict.assume) == (OVERLAPPING, OVERLAPPING)


def test_assumed_apart_the_best_guess_is_taken_and_the_ensemble_where_it_is_supported():
    probs = np.where((np.arange(N) >= 90)[:, None], sure_of(FOR, 4, 0.6), sure_of(GIVEN, 4))
    made = pool(5, 5, probs)
    found = join(made, GIVEN, nobody(), proposals(0.3), APART)
    assert (found.labels[90:] == FOR[90:]).all(), "the given label unheard"
    assert found.labels[DISPUTED].tolist() == FOR[DISPUTED].tolist()
    assert (found.labels[8:90] == GIVEN[8:90]).all()
    assert found.adopted.sum() == 8
    assert found.verdict.classes == APART
    refused = join(pool(3, 5, probs), GIVEN, nobody(), proposals(0.3), APART)
    assert not refused.adopted.any()
    assert (refused.labels[90:] == FOR[90:]).all()
    assert not join(made, GIVEN, nobody(), proposals(0.5), APART).adopted.any()
