import numpy as np
import pytest

from blobs import blobs
from labelmend.diagnosis.projection import lay_out, neighbor_graph, principal


def test_clouds_stay_apart_and_together():
    features, classes = blobs(300, 5, n_columns=20)
    positions = lay_out(features, seed=0)
    gaps = np.linalg.norm(positions[:, None] - positions[None], axis=2)
    np.fill_diagonal(gaps, np.inf)
    nearest = np.argsort(gaps, axis=1)[:, :5]
    assert (classes[nearest] == classes[:, None]).mean() > 0.99


def test_the_same_seed_gives_the_same_positions_and_another_others():
    features, _ = blobs(80)
    np.testing.assert_array_equal(lay_out(features, seed=3), lay_out(features, seed=3))
    assert (lay_out(features, seed=3) != lay_out(features, seed=4)).any()


def test_positions_fill_a_square_from_0_to_1():
    positions = lay_out(blobs(60)[0], seed=0)
    assert positions.shape == (60, 2)
    assert positions.dtype == np.float32
    assert (positions.max(axis=0) - positions.min(axis=0)).max() == pytest.approx(1, abs=1e-5)
    assert positions.min() >= -1e-6
    assert positions.max() <= 1 + 1e-6


@pytest.mark.parametrize("n", [0, 1, 2, 3, 13])
@pytest.mark.parametrize("rows", [np.zeros, np.ones, lambda shape: np.random.default_rng(0).normal(size=shape)])
def test_few_identical_and_empty_rows_have_finite_positions(n, rows):
    positions = lay_out(rows((n, 1)), seed=0)
    assert positions.shape == (n, 2)
    assert np.isfinite(positions).all()


def test_principal_directions_keep_the_angles_of_few_columns():
    rows = np.random.default_rng(0).normal(size=(30, 6))
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    reduced = principal(7 * rows)
    gaps = [np.linalg.norm(x[:, None] - x[None], axis=2) for x in (unit, reduced)]
    np.testing.assert_allclose(gaps[0], gaps[1], atol=1e-4)


def test_the_graph_by_hand():
    rows = np.array([[0.0], [1.0], [3.0]])  # 0 and 1 name each other; 2 names 1, who does not name it
    graph = neighbor_graph(rows, 1).toarray()
    np.testing.assert_allclose(graph, [[0, 1, 0], [1, 0, 0.5], [0, 0.5, 0]])
