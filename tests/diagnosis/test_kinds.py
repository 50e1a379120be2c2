import numpy as np
import pytest
from made_outputs import by_hand, clusters, outputs_of
from numpy.testing import assert_allclose

from labelmend.diagnosis import profile as kinds
from labelmend.diagnosis.profile import KINDS, mixture_weights, noise_kinds, suspects, would_find


def plant(kind, true, at, count, rng):
    given, n_classes = true.copy(), true.max() + 1
    if kind == "random":
        chosen = rng.permutation(len(true))[:count]
        given[chosen] = (true[chosen] + rng.integers(1, n_classes, size=count)) % n_classes
    elif kind == "confusing":
        chosen = rng.permutation(np.argsort(np.minimum(at, 1 - at), kind="stable")[: 2 * count])[:count]
        given[chosen] = np.where(at[chosen] > 0.5, true[chosen] + 1, true[chosen] - 1) % n_classes
    else:
        for start in rng.choice(len(true) - 15, size=count // 15, replace=False):
            members = np.arange(start, start + 15)
            members = members[true[members] == true[start]]
            given[members] = (true[start] + (1 if at[start] > 0.5 else -1)) % n_classes
    return given


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_the_largest_share_is_the_kind_that_was_planted(kind, seed):
    true, at, near, shares = clusters(seed=seed)
    given = plant(kind, true, at, 180, np.random.default_rng(seed))
    found = noise_kinds(outputs_of(true, near, shares, given), np.random.default_rng(0))
    by_name = dict(zip(KINDS, found.shares, strict=True))
    assert max(by_name, key=by_name.get) == kind, by_name
    assert by_name[kind] > 0.6
    assert sum(found.shares) == pytest.approx(1)
    assert all(0 <= share <= 1 for share in (*found.shares, *found.seen))
    assert found.hidden >= 1 - 1e-9


def test_few_suspects_have_no_kind():
    true, at, near, shares = clusters()
    given = plant("random", true, at, kinds.FEWEST - 1, np.random.default_rng(0))
    assert noise_kinds(outputs_of(true, near, shares, given), np.random.default_rng(0)) is None
    given = plant("random", true, at, kinds.FEWEST, np.random.default_rng(0))
    assert noise_kinds(outputs_of(true, near, shares, given), np.random.default_rng(0)) is not None


def test_the_same_generator_gives_the_same_shares():
    true, at, near, shares = clusters()
    outputs = outputs_of(true, near, shares, plant("patch", true, at, 120, np.random.default_rng(1)))
    one, two = (noise_kinds(outputs, np.random.default_rng(5)) for _ in range(2))
    assert one == two


def test_suspects_have_a_label_that_is_held_wrong_and_not_certain():
    outputs = by_hand([0, 1, -1, 1, 1], [0, 0, 0, 1, 0], np.full((5, 2), 0.5), fixed=np.array([0, 0, 0, 0, 1], bool))
    assert suspects(outputs).tolist() == [1]


def test_weights_of_a_known_mixture_are_found():
    shapes = np.array([[0.7, 0.2, 0.1], [0.1, 0.2, 0.7]])
    histogram = np.round(10_000 * (0.3 * shapes[0] + 0.7 * shapes[1])).astype(int)
    assert_allclose(mixture_weights(histogram, shapes), [0.3, 0.7], rtol=0, atol=1e-3)


def test_an_error_is_found_where_the_features_outweigh_the_label():
    # The features say .6 : .4; a label is right nine times in ten, so it wins: .6 x .1 against .4 x .9.
    predicted = np.array([[0.6, 0.4], [0.95, 0.05]])
    outputs = by_hand([0, 0], [0, 0], predicted, transition=[[0.9, 0.1], [0.1, 0.9]], predicted=predicted)
    assert would_find(outputs, np.array([0, 1]), np.array([1, 1])).tolist() == [False, True]


def test_cells_by_hand():
    # Sample 0 (given 1, decided 0): of its two neighbours one is such a suspect too; the graphs put its label second.
    graphs = [[0.6, 0.3, 0.1], [0.5, 0.1, 0.4], [0.9, 0.05, 0.05], [0.8, 0.1, 0.1]]
    near = np.array([[1, 2], [2, 3], [0, 3], [2, 1]])
    outputs = by_hand([1, 1, 0, 0], [0, 0, 0, 0], graphs, neighbors=near)
    unsure = kinds.unsure_rows(outputs)
    assert unsure.tolist() == [True, True, False, False]
    # concentration 1/2: level 2; rank 0; unsure: (2 * 3 + 0) * 2 + 1. Sample 1: none; label third: (0 + 1) * 2 + 1.
    assert kinds._cells(outputs, unsure, np.array([0, 1]), outputs.given).tolist() == [13, 3]
