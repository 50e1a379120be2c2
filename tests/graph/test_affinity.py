import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

import reference
from labelmend.graph.affinity import normalized_graph
from labelmend.graph.knn import Neighbors
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
