"""Every member scores a row without that row's own label: exactly, with penalty, width and class shares held fixed."""

import dataclasses

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.neighbors import NearestNeighbors

import reference
from labelmend.evidence import members, regression
from labelmend.evidence.members import Ground, Sizes, class_shares
from labelmend.evidence.preparation import deal_into_folds, groups_of_copies
from labelmend.evidence.regression import Features, Linear, Regression, Solved

N, CLASSES, COLUMNS = 90, 3, 5


def ground(seed=0, copies=False, columns=COLUMNS, unlabelled=6):
    """Overlapping clouds; with `copies` every third row is there twice, and the copies disagree about the label."""
    rng = np.random.default_rng(seed)
    true = np.arange(N) % CLASSES
    rows = rng.normal(size=(N, columns)) + 1.5 * np.eye(CLASSES, columns)[true]
    given = np.where(rng.random(N) < 0.2, (true + 1) % CLASSES, true)
    if copies:
        rows[1::3] = rows[::3]
    given[:unlabelled] = -1
    near = NearestNeighbors(n_neighbors=30).fit(rows).kneighbors(return_distance=False)
    shares = class_shares(given, CLASSES)
    return Ground(rows.astype(np.float32), rows, given, CLASSES, groups_of_copies(rows), near, seed, shares)


def changed(plain, row):
    """The same with another label in one row; the class shares stay as they were."""
    given = plain.given.copy()
    given[row] = (given[row] + 1) % CLASSES
    return dataclasses.replace(plain, given=given)


def solved(plain, basis):
    return Solved.of(Features(len(plain.inputs), lambda rows: basis(plain.inputs[rows])), plain.taught)


def ridge_at(place):
    def score(plain):
        basis = Linear.of(plain.inputs)
        found = solved(plain, basis)
        return Regression(basis, found, float(found.penalties()[place])).without_own(plain.taught)

    return score


def rbf_at(width):
    def score(plain):
        basis = regression.kernels(plain.inputs, plain.seed)[width]
        found = solved(plain, basis)
        return Regression(basis, found, float(found.penalties()[3])).without_own(plain.taught)

    return score


MEMBERS = {
    "ridge, small penalty": ridge_at(0),
    "ridge, large penalty": ridge_at(-1),
    "rbf, narrow": rbf_at(0),
    "rbf, wide": rbf_at(1),
    "knn": members.knn,
    "logistic": members.logistic,
    "trees": lambda plain: members.trees(plain, Sizes()),
    "trees on a part of the rows": lambda plain: members.trees(plain, Sizes(tree_rows=60)),
    "boosting": members.boosting,
}


@pytest.mark.slow
@pytest.mark.parametrize("copies", [False, True])
@pytest.mark.parametrize("name", MEMBERS)
def test_a_label_changes_nothing_in_the_score_of_its_own_row(name, copies):
    plain = ground(copies=copies)
    before = MEMBERS[name](plain)
    moved = False
    for row in (10, 11, 31):
        after = MEMBERS[name](changed(plain, row))
        alike = np.flatnonzero(plain.groups == plain.groups[row])
        assert_allclose(after[alike], before[alike], rtol=0, atol=1e-9)
        moved |= bool(np.abs(after - before).max() > 1e-6)
    assert moved, "it does change what is said of others"


def test_where_there_are_more_columns_than_rows_no_label_is_carried_either():
    plain = ground(columns=300, unlabelled=0)
    basis = Linear.of(plain.inputs)
    found, other = solved(plain, basis), changed(plain, 10)
    penalty = 1e-4 * float(found.values.mean())
    own = found.answers(basis(plain.inputs), np.array([penalty]))[0][1]
    assert own.max() > 1 - regression.LEAST_LEFT, "rows are hardly told by the others"
    before = Regression(basis, found, penalty).without_own(plain.taught)
    after = Regression(basis, solved(other, basis), penalty).without_own(other.taught)
    assert_allclose(after[10], before[10], rtol=0, atol=1e-6)


@pytest.mark.parametrize("copies", [False, True])
def test_leaving_out_equals_a_fit_without_the_row_and_its_copies(copies):
    plain = ground(copies=copies)
    basis = Linear.of(plain.inputs)
    one = solved(plain, basis)
    penalty = float(one.penalties()[2])
    found = Regression(basis, one, penalty).without_own(plain.taught)
    Y = np.where(plain.labelled[:, None], plain.taught.onehot(slice(None)), np.nan)
    for group in np.unique(plain.groups):
        gone = plain.groups == group
        expected = reference.ridge_without(basis(plain.inputs), Y, gone, penalty)
        assert_allclose(found[gone], expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("copies", [False, True])
def test_the_penalty_is_the_one_with_the_smallest_error_left_out(copies):
    plain = ground(copies=copies)
    basis, known = Linear.of(plain.inputs), plain.labelled
    one = solved(plain, basis)
    answers = [Regression(basis, one, float(penalty)).without_own(plain.taught) for penalty in one.penalties()]
    errors = [((found - plain.taught.onehot(slice(None)))[known] ** 2).mean() for found in answers]
    assert_allclose(members.ridge(plain), regression.centred(answers[int(np.argmin(errors))]))


def test_blocks_of_rows_give_the_same_as_one_block(monkeypatch):
    plain = ground()
    whole = members.ridge(plain)
    monkeypatch.setattr(regression, "BLOCK", 17)
    assert_allclose(members.ridge(plain), whole, rtol=0, atol=1e-9)


def test_neighbours_vote_by_hand():
    # Two classes of equal share; row 0 sees three others, of which one has no label and one is its copy.
    near = np.array([[1, 2, 3], [0, 2, 3], [3, 0, 1], [2, 0, 1]])
    given, groups = np.array([0, 1, 1, -1]), np.array([0, 0, 1, 2])
    rows = np.zeros((4, 1))
    plain = Ground(rows, rows, given, 2, groups, near, 0, np.array([0.5, 0.5]))
    expected = np.log(np.array([[0.5, 1.5], [0.5, 1.5]]) / 2)  # one vote for class 1, one row's worth of the shares
    assert_allclose(members.knn(plain)[:2], expected)


def test_only_the_nearest_that_may_vote_are_counted():
    rng = np.random.default_rng(0)
    given = rng.integers(0, 2, 40)
    near = np.array([rng.permutation(np.delete(np.arange(40), row))[:30] for row in range(40)])
    groups = np.arange(40)
    groups[near[0][:5]] = 0  # its five nearest are copies of row 0
    rows = np.zeros((40, 1))
    plain = Ground(rows, rows, given, 2, groups, near, 0, np.array([0.5, 0.5]))
    ones = given[near[0][5 : 5 + members.NEIGHBOURS]].sum()
    assert_allclose(np.exp(members.knn(plain)[0]), np.array([10.5 - ones, ones + 0.5]) / 11)


def test_folds_know_no_labels_and_copies_share_one():
    groups = np.array([0, 1, 2, 0, 3, 4, 4, 5, 6, 7, 8, 9])
    folds = deal_into_folds(groups, 5, seed=3)
    assert_array_equal(folds, deal_into_folds(groups, 5, seed=3))
    assert folds[0] == folds[3]
    assert folds[5] == folds[6]
    assert sorted(np.bincount(folds[[0, 1, 2, 4, 5, 7, 8, 9, 10, 11]])) == [2] * 5
    assert (folds != deal_into_folds(groups, 5, seed=4)).any()


def test_what_no_fold_could_learn_has_the_shares():
    plain = ground()
    given = np.full(N, -1)
    given[3] = 2  # one label in all
    alone = dataclasses.replace(plain, given=given)
    found = members.smoothed_log(
        members.out_of_fold(lambda: pytest.fail("nothing to fit"), plain.inputs, alone), plain.shares, 50
    )
    assert np.isfinite(found).all()
    assert_allclose(
        members.smoothed_log(np.zeros((1, 3)), np.array([0.2, 0.3, 0.5]), 50)[0], np.log([0.2, 0.3, 0.5]) - np.log(51)
    )


def test_costly_members_are_left_out_and_a_linear_and_a_tree_member_stay():
    plain = ground()
    assert list(members.member_scores(plain)) == ["ridge", "rbf", "knn", "logistic", "trees", "boosting"]
    few = members.member_scores(plain, Sizes(logistic_work=1, boosting_work=1))
    assert list(few) == ["ridge", "rbf", "knn", "trees"]
    assert set(few) & set(members.LINEAR)
    assert set(few) & set(members.TREES)
    for narrow in (Sizes(boosting_columns=COLUMNS - 1), Sizes(boosting_classes=CLASSES - 1)):
        assert list(members.member_scores(plain, narrow))[-1] == "trees"
    for score in few.values():
        assert score.shape == (N, CLASSES)
        assert score.dtype == np.float32
        assert np.isfinite(score).all()


def test_every_member_of_easy_data_is_nearly_always_right():
    rng = np.random.default_rng(0)
    true = np.arange(N) % CLASSES
    rows = rng.normal(size=(N, COLUMNS)) + 8 * np.eye(CLASSES, COLUMNS)[true]
    near = NearestNeighbors(n_neighbors=10).fit(rows).kneighbors(return_distance=False)
    given = np.where(np.arange(N) < 9, (true + 1) % CLASSES, true)
    plain = Ground(rows, rows, given, CLASSES, np.arange(N), near, 0, class_shares(given, CLASSES))
    for name, score in members.member_scores(plain).items():
        assert (score.argmax(axis=1) == true).mean() > 0.9, name
