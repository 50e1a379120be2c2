import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import reference
from labelmend.ensemble import graphs as knn
from labelmend.ensemble.graphs import Cells, cell_neighbors, exact_neighbors, make_cells, normalize_rows
from strategies import feature_matrices


def unit(features):
    return normalize_rows(torch.as_tensor(features, dtype=torch.float64))


def random_rows(n, d=5, seed=0):
    return unit(np.random.default_rng(seed).normal(size=(n, d)))


def clustered_rows(n_clusters=8, size=50, seed=0):
    rng = np.random.default_rng(seed)
    centres = np.eye(n_clusters).repeat(size, axis=0)
    return unit(centres + 0.05 * rng.normal(size=centres.shape))


def cells_of(rows, n_probe, seed=0):
    return make_cells(rows, n_probe, torch.Generator().manual_seed(seed))


def check_neighbors(found, rows, k):
    """What holds exactly or approximately searched: other rows, each once, their true similarity, nearest first."""
    assert found.indices.shape == (len(rows), min(k, len(rows) - 1))
    for row, (indices, similarities) in enumerate(zip(found.indices.tolist(), found.similarities, strict=True)):
        assert row not in indices
        assert len(set(indices)) == len(indices)
        torch.testing.assert_close(similarities, rows[indices] @ rows[row], rtol=0, atol=1e-12)
    assert (found.similarities.diff(dim=1) <= 0).all()


def test_normalized_rows_have_length_one_and_a_zero_row_stays_zero():
    rows = unit([[3.0, 4.0], [0.0, 0.0], [-2.0, 0.0]])
    torch.testing.assert_close(rows, torch.tensor([[0.6, 0.8], [0, 0], [-1, 0]], dtype=torch.float64))


def test_neighbours_by_hand():
    found = exact_neighbors(unit([[1, 0], [3, 4], [0, 1], [-4, 3]]), k=3)
    assert found.indices.tolist() == [[1, 2, 3], [2, 0, 3], [1, 3, 0], [2, 1, 0]]
    expected = [[0.6, 0.0, -0.8], [0.8, 0.6, 0.0], [0.8, 0.6, 0.0], [0.6, 0.0, -0.8]]
    np.testing.assert_allclose(found.similarities, expected, rtol=0, atol=1e-12)


@given(feature_matrices(), st.integers(1, 16))
def test_exact_neighbours_are_those_of_the_dense_reference(features, k):
    found = exact_neighbors(unit(features), k)
    check_neighbors(found, unit(features), k)
    np.testing.assert_allclose(found.similarities, reference.nearest(features, k)[1], rtol=0, atol=1e-9)


def test_duplicates_are_neighbours_of_each_other_and_never_of_themselves():
    found = exact_neighbors(unit([[1, 2], [1, 2], [2, 4], [-1, 0]]), k=2)
    assert [set(row) for row in found.indices[:3].tolist()] == [{1, 2}, {0, 2}, {0, 1}]
    np.testing.assert_allclose(found.similarities[:3], 1.0, rtol=0, atol=1e-12)


def test_a_single_row_has_no_neighbours():
    assert exact_neighbors(unit([[1.0, 0.0]]), k=3).indices.shape == (1, 0)


def test_exact_search_in_small_blocks_finds_the_same(monkeypatch):
    rows = random_rows(37)
    whole = exact_neighbors(rows, 5)
    monkeypatch.setattr(knn, "BLOCK_ENTRIES", 4 * len(rows))
    blocked = exact_neighbors(rows, 5)
    torch.testing.assert_close(blocked.indices, whole.indices)
    torch.testing.assert_close(blocked.similarities, whole.similarities, rtol=0, atol=1e-12)


@given(st.integers(1, 60), st.integers(1, 4), st.integers(0, 9))
def test_cells_hold_every_row_once_and_search_themselves_first(n, n_probe, seed):
    cells = cells_of(random_rows(n, 2, seed), n_probe, seed)
    assert sorted(torch.cat(cells.members).tolist()) == list(range(n))
    assert cells.nearby[:, 0].tolist() == list(range(len(cells.members)))
    assert cells.nearby.shape[1] == min(n_probe, len(cells.members))


@pytest.mark.parametrize("n_probe", [1, 3, 100])
def test_cell_neighbours_are_true_pairs_of_different_rows(n_probe):
    rows = random_rows(120)
    check_neighbors(cell_neighbors(rows, cells_of(rows, n_probe), 6), rows, 6)


def test_searching_every_cell_is_the_exact_search():
    rows = random_rows(150)
    found, exact = cell_neighbors(rows, cells_of(rows, n_probe=150), 7), exact_neighbors(rows, 7)
    torch.testing.assert_close(found.indices, exact.indices)
    torch.testing.assert_close(found.similarities, exact.similarities, rtol=0, atol=1e-12)


def test_a_few_cells_find_nearly_all_neighbours_in_clustered_data():
    rows = clustered_rows()
    found, exact = cell_neighbors(rows, cells_of(rows, n_probe=6), 5), exact_neighbors(rows, 5)
    pairs = zip(found.indices.tolist(), exact.indices.tolist(), strict=True)
    recall = sum(len(set(a) & set(b)) for a, b in pairs) / exact.indices.numel()
    assert 0.9 < recall <= 1


def test_cells_smaller_than_k_fall_back_to_searching_everything():
    rows = random_rows(40)
    found, exact = cell_neighbors(rows, cells_of(rows, n_probe=1), 39), exact_neighbors(rows, 39)
    torch.testing.assert_close(found.indices, exact.indices)


def test_a_cell_with_one_row_too_few_is_not_enough():
    rows = random_rows(6)
    cells = Cells([torch.tensor([4, 0, 2]), torch.tensor([1, 3, 5])], nearby=torch.tensor([[0], [1]]))
    check_neighbors(cell_neighbors(rows, cells, 2), rows, 2)
    torch.testing.assert_close(cell_neighbors(rows, cells, 3).indices, exact_neighbors(rows, 3).indices)


def test_cell_search_in_small_blocks_finds_the_same(monkeypatch):
    rows = clustered_rows(4, 40)
    cells = cells_of(rows, n_probe=3)
    whole = cell_neighbors(rows, cells, 5)
    monkeypatch.setattr(knn, "BLOCK_ENTRIES", 150)
    torch.testing.assert_close(cell_neighbors(rows, cells, 5).indices, whole.indices)


def test_cells_of_other_features_still_give_similarities_of_these_rows():
    rows = random_rows(80, seed=1)
    check_neighbors(cell_neighbors(rows, cells_of(random_rows(80, seed=2), n_probe=2), 4), rows, 4)


def test_duplicates_in_cells_are_neighbours_of_each_other():
    rows = random_rows(30).repeat(2, 1)
    found = cell_neighbors(rows, cells_of(rows, n_probe=2), 1)
    assert found.indices.squeeze(1).tolist() == [*range(30, 60), *range(30)]


@pytest.mark.parametrize(("width", "k"), [(20, 3), (200, 3), (203, 12), (1000, 32)])
def test_the_largest_values_are_those_of_topk(width, k):
    values = torch.rand(7, width, generator=torch.Generator().manual_seed(width))
    values[:, -2] = 2.0  # among the columns that fill no group
    found, columns = knn.largest(values, k)
    torch.testing.assert_close(found, values.topk(k, dim=1).values, rtol=0, atol=0)
    torch.testing.assert_close(values.gather(1, columns), found, rtol=0, atol=0)
    assert all(len(set(row)) == k for row in columns.tolist())
