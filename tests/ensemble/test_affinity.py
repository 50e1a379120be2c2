import numpy as np
import scipy.sparse
import torch
from hypothesis import given
from hypothesis import strategies as st

import reference
from labelmend.ensemble.graphs import Neighbors, _sum_by_scipy, _sum_on_device, normalized_graph
from strategies import feature_matrices


def record(indices, similarities, dtype=torch.float64):
    return Neighbors(torch.as_tensor(indices), torch.as_tensor(similarities, dtype=dtype))


def dense(indices, similarities, gamma):
    return normalized_graph(record(indices, similarities), gamma).to_dense().numpy()


def test_graph_by_hand():
    # A + A^T: 0-1 twice 0.5^2 = 0.5, 1-2 once 1; degrees 0.5, 1.5, 1.
    got = dense([[1], [0], [1]], [[0.5], [0.5], [1.0]], gamma=2.0)
    first, second = 0.5 / np.sqrt(0.5 * 1.5), 1 / np.sqrt(1.5 * 1)
    np.testing.assert_allclose(got, [[0, first, 0], [first, 0, second], [0, second, 0]], rtol=0, atol=1e-12)


@given(feature_matrices(), st.integers(1, 8), st.sampled_from([0.5, 1.0, 3.0]))
def test_graph_is_that_of_the_dense_reference(features, k, gamma):
    got = dense(*reference.nearest(features, k), gamma)
    np.testing.assert_allclose(got, reference.graph_of(features, k, gamma), rtol=0, atol=1e-9)


@given(feature_matrices(), st.integers(1, 8))
def test_graph_is_symmetric_without_self_edges_and_its_eigenvalues_are_at_most_one(features, k):
    got = dense(*reference.nearest(features, k), gamma=3.0)
    np.testing.assert_allclose(got, got.T, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(np.diag(got), 0)
    assert (got >= 0).all()
    assert np.abs(np.linalg.eigvalsh(got)).max() <= 1 + 1e-9


def test_both_ways_of_summing_by_hand():
    # A + A^T: 0-1 from both sides, 2-1 from one, 3 alone with an edge of weight 0 to 0.
    indices, weights = torch.tensor([[1], [0], [1], [0]]), torch.tensor([[0.25], [0.5], [2.0], [0.0]])
    pointers, columns, values = _sum_on_device(indices, weights)
    assert pointers.tolist() == [0, 2, 4, 5, 6]
    assert columns.tolist() == [1, 3, 0, 2, 1, 0]
    assert values.tolist() == [0.75, 0.0, 0.75, 2.0, 2.0, 0.0]


@given(feature_matrices(), st.integers(1, 8))
def test_the_sum_on_a_device_is_that_of_scipy_and_of_the_dense_reference(features, k):
    indices, similarities = reference.nearest(features, k)
    neighbors = record(indices, similarities)
    A = reference.directed_graph(indices, similarities, 3.0)
    for add in (_sum_on_device, _sum_by_scipy):
        pointers, columns, values = add(neighbors.indices, neighbors.similarities.clamp(min=0).pow(3.0))
        assert (pointers.dtype, columns.dtype, values.dtype) == (torch.int64, torch.int64, torch.float64)
        both = scipy.sparse.csr_matrix((values.numpy(), columns.numpy(), pointers.numpy()), shape=A.shape)
        assert both.has_canonical_format or add is _sum_by_scipy, "columns in order, each once"
        np.testing.assert_allclose(both.toarray(), A + A.T, rtol=0, atol=1e-12)


def test_the_sum_on_a_device_of_a_single_sample_is_empty():
    pointers, columns, values = _sum_on_device(torch.empty(1, 0, dtype=torch.long), torch.empty(1, 0))
    assert (pointers.tolist(), len(columns), len(values)) == ([0, 0], 0, 0)


def test_square_roots_of_the_degrees_are_an_eigenvector_of_eigenvalue_one():
    features = np.random.default_rng(0).uniform(0.1, 1, size=(30, 4))
    indices, similarities = reference.nearest(features, 5)
    A = reference.directed_graph(indices, similarities, 3.0)
    root = np.sqrt((A + A.T).sum(axis=1))
    np.testing.assert_allclose(dense(indices, similarities, 3.0) @ root, root, rtol=1e-12)


def test_negative_similarities_make_no_edge_and_a_sample_without_edges_stays_zero():
    got = dense([[1], [0], [0]], [[0.5], [0.5], [-0.9]], gamma=2.0)
    np.testing.assert_allclose(got, [[0, 1, 0], [1, 0, 0], [0, 0, 0]], rtol=0, atol=1e-12)


def test_a_single_sample_is_a_graph_without_edges():
    np.testing.assert_array_equal(dense(np.empty((1, 0), dtype=np.int64), np.empty((1, 0)), gamma=3.0), [[0.0]])


def test_graph_keeps_the_precision_of_the_similarities():
    graph = normalized_graph(record([[1], [0]], [[0.5], [0.5]], torch.float32), gamma=3.0)
    assert graph.dtype == torch.float32
    assert graph.layout == torch.sparse_csr
