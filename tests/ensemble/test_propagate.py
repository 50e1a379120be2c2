import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import labelmend.ensemble.propagate
import reference
from labelmend.ensemble.graphs import exact_neighbors, normalize_rows, normalized_graph
from labelmend.ensemble.propagate import ABSTAIN, propagate, starting_rows
from strategies import labelled_features

PAIR = [[0.0, 1.0], [1.0, 0.0]]


def run(W, starts, n_classes, alpha=0.5, scale_columns=False, tolerance=1e-12, max_iter=500):
    """Propagate on a dense graph; a start is (rows, classes)."""
    starts = [tuple(torch.tensor(part, dtype=torch.long) for part in start) for start in starts]
    graph = torch.as_tensor(W, dtype=torch.float64)
    return propagate(graph, starts, n_classes, alpha, scale_columns, tolerance, max_iter)


def starts_of(labels, subset_of, n_subsets):
    labels, subset_of = torch.as_tensor(labels), torch.as_tensor(subset_of)
    return [starting_rows(labels, subset_of, j) for j in range(n_subsets)]


def expected(W, labels, subset_of, n_subsets, C, alpha, scale_columns=False):
    """Distributions of every subset, and their mean over the subsets a sample is not in."""
    members = [np.flatnonzero(subset_of == j) for j in range(n_subsets)]
    Ys = [reference.starting_labels(labels, inside, C, scale_columns) for inside in members]
    P = np.stack([reference.distribution(reference.propagate(W, Y, alpha)) for Y in Ys], axis=1)
    own = np.stack([Y.any(axis=1) for Y in Ys], axis=1)
    held_out = (P * ~own[:, :, None]).sum(axis=1)
    total = held_out.sum(axis=1, keepdims=True)
    return P, own, np.divide(held_out, total, out=np.zeros_like(held_out), where=total > 0)


def check_against(got, P, own, held_out):
    for j in range(P.shape[1]):
        np.testing.assert_allclose(got.certainty[:, j], reference.certainty(P[:, j]), rtol=0, atol=1e-7)
    ordered = np.sort(P, axis=2)
    clear = ordered[..., -1] - ordered[..., -2] > 1e-7
    np.testing.assert_array_equal(got.labels.numpy()[clear], P.argmax(axis=2)[clear])
    np.testing.assert_array_equal(got.labels.numpy() == ABSTAIN, P.sum(axis=2) == 0)
    np.testing.assert_array_equal(got.own, own)
    np.testing.assert_allclose(got.held_out, held_out, rtol=0, atol=1e-7)


@pytest.fixture
def blobs():
    """Graph, labels with errors and gaps, and subsets of 90 samples in three blobs."""
    rng = np.random.default_rng(0)
    truth = np.arange(90) % 3
    features = np.eye(3)[truth] + 0.3 * rng.normal(size=(90, 3))
    labels = np.where(rng.random(90) < 0.2, rng.integers(-1, 3, size=90), truth)
    return reference.graph_of(features, 6, 3.0), labels, rng.integers(4, size=90)


def test_starting_rows_are_the_labelled_samples_of_the_subset():
    rows, classes = starting_rows(torch.tensor([2, -1, 0, 1]), torch.tensor([0, 0, 0, 1]), 0)
    assert rows.tolist() == [0, 2]
    assert classes.tolist() == [2, 0]


def test_one_label_on_a_pair_reaches_both_with_certainty_one():
    got, report = run(PAIR, [([0], [1])], n_classes=2)
    assert got.labels.tolist() == [[1], [1]]
    np.testing.assert_allclose(got.certainty, 1.0, rtol=0, atol=1e-9)
    assert report.converged


def test_two_labels_on_a_pair_by_hand():
    # (I - W/2)^-1 = [[4/3, 2/3], [2/3, 4/3]]: each sample is two thirds its own class.
    got, _ = run(PAIR, [([0, 1], [0, 1])], n_classes=2)
    assert got.labels.tolist() == [[0], [1]]
    entropy = math.log(3) - 2 / 3 * math.log(2)
    np.testing.assert_allclose(got.certainty, 1 - entropy / math.log(2), rtol=0, atol=1e-9)
    assert got.own.tolist() == [[True], [True]]
    np.testing.assert_array_equal(got.held_out, 0)


def test_held_out_by_hand():
    # Sample 1 hears of sample 0 from the first start only, where it did not take part itself.
    got, _ = run(PAIR, [([0], [0]), ([1], [1])], n_classes=2)
    np.testing.assert_allclose(got.held_out, [[0, 1], [1, 0]], rtol=0, atol=1e-9)


@pytest.mark.parametrize(("scale_columns", "winner"), [(False, 0), (True, 1)])
def test_scaled_columns_keep_a_frequent_class_from_winning_by_number(scale_columns, winner):
    # Sample 0 is near to two samples of class 0 (0.4 each) and nearer to one of class 1 (0.6).
    W = np.zeros((4, 4))
    W[0, 1:] = W[1:, 0] = [0.4, 0.4, 0.6]
    got, _ = run(W, [([1, 2, 3], [0, 0, 1])], n_classes=2, scale_columns=scale_columns)
    assert int(got.labels[0, 0]) == winner


def test_samples_that_nothing_reaches_abstain():
    W = np.kron(np.eye(2), PAIR)
    got, _ = run(W, [([0], [1]), ([], [])], n_classes=3)
    assert got.labels.tolist() == [[1, ABSTAIN], [1, ABSTAIN], [ABSTAIN, ABSTAIN], [ABSTAIN, ABSTAIN]]
    np.testing.assert_array_equal(got.certainty[2:], 0)
    np.testing.assert_array_equal(got.certainty[:, 1], 0)
    np.testing.assert_array_equal(got.held_out[2:], 0)


def test_a_class_without_starting_labels_is_never_suggested():
    got, _ = run(PAIR, [([0, 1], [0, 2])], n_classes=4, scale_columns=True)
    assert got.labels.tolist() == [[0], [2]]
    assert torch.isfinite(got.certainty).all()


@pytest.mark.parametrize("scale_columns", [False, True])
@pytest.mark.parametrize("alpha", [0.5, 0.99])
def test_suggestions_are_those_of_the_dense_reference(blobs, alpha, scale_columns):
    W, labels, subset_of = blobs
    graph = torch.as_tensor(W)
    got, report = propagate(graph, starts_of(labels, subset_of, 4), 3, alpha, scale_columns, 1e-12, 1000)
    check_against(got, *expected(W, labels, subset_of, 4, 3, alpha, scale_columns))
    assert report.converged
    assert report.worst_residual <= 1e-12


@given(labelled_features(), st.integers(1, 5), st.integers(1, 3), st.booleans(), st.data())
def test_suggestions_of_any_small_graph_are_those_of_the_reference(data, k, n_subsets, scale_columns, draw):
    features, labels = data
    subset_of = np.array(draw.draw(st.lists(st.integers(0, n_subsets - 1), min_size=len(labels), max_size=len(labels))))
    neighbors = exact_neighbors(normalize_rows(torch.as_tensor(features)), k)
    graph = normalized_graph(neighbors, 1.0)
    got, _ = propagate(graph, starts_of(labels, subset_of, n_subsets), 3, 0.9, scale_columns, 1e-12, 500)
    W = reference.normalized_graph(reference.directed_graph(neighbors.indices, neighbors.similarities.numpy(), 1.0))
    check_against(got, *expected(W, labels, subset_of, n_subsets, 3, 0.9, scale_columns))


@pytest.mark.parametrize("classes_at_once", [1, 2])
def test_blocks_of_classes_give_the_same_as_all_at_once(blobs, monkeypatch, classes_at_once):
    W, labels, subset_of = blobs
    arguments = (torch.as_tensor(W), starts_of(labels, subset_of, 4), 3, 0.9, True, 1e-12, 1000)
    whole, _ = propagate(*arguments)
    monkeypatch.setattr(labelmend.ensemble.propagate, "BLOCK_ENTRIES", 90 * 4 * classes_at_once)
    blocked, _ = propagate(*arguments)
    torch.testing.assert_close(blocked.labels, whole.labels)
    torch.testing.assert_close(blocked.certainty, whole.certainty, rtol=0, atol=1e-8)
    torch.testing.assert_close(blocked.held_out, whole.held_out, rtol=0, atol=1e-8)


@pytest.mark.parametrize("scale_columns", [False, True])
def test_held_out_ignores_the_samples_own_label(blobs, scale_columns):
    W, labels, subset_of = blobs
    sample = int(np.flatnonzero(labels >= 0)[0])
    changed = labels.copy()
    changed[sample] = (labels[sample] + 1) % 3

    def held_out(these):
        starts = starts_of(these, subset_of, 4)
        return propagate(torch.as_tensor(W), starts, 3, 0.9, scale_columns, 1e-12, 1000)[0].held_out

    before, after = held_out(labels), held_out(changed)
    torch.testing.assert_close(after[sample], before[sample], rtol=0, atol=1e-9)
    assert (after - before).abs().max() > 1e-3, "others do hear of the change"


def test_held_out_rows_are_distributions_or_zero(blobs):
    W, labels, subset_of = blobs
    got, _ = run(W, [(rows.tolist(), c.tolist()) for rows, c in starts_of(labels, subset_of, 4)], n_classes=3)
    np.testing.assert_allclose(got.held_out.sum(dim=1), 1.0, rtol=0, atol=1e-12)
    assert (got.held_out >= 0).all()


def test_too_few_iterations_are_reported(blobs):
    W, labels, subset_of = blobs
    starts = starts_of(labels, subset_of, 4)
    _, report = propagate(torch.as_tensor(W), starts, 3, 0.99, False, 1e-10, 3)
    assert report.iterations == 3
    assert report.worst_residual > 1e-10
    assert not report.converged


def test_the_report_counts_the_columns_of_single_classes():
    # On a ring with every sample labelled the sums are solved in one iteration, the classes are not.
    ring = (np.roll(np.eye(8), 1, axis=0) + np.roll(np.eye(8), -1, axis=0)) / 2
    every = list(range(8))
    assert not run(ring, [(every, every)], n_classes=8, max_iter=1)[1].converged
    assert run(ring, [(every, every)], n_classes=8)[1].iterations > 1


def test_float32_agrees_with_the_reference_where_the_decision_is_clear(blobs):
    W, labels, subset_of = blobs
    graph = torch.as_tensor(W, dtype=torch.float32)
    got, report = propagate(graph, starts_of(labels, subset_of, 4), 3, 0.9, False, 1e-5, 200)
    P, _, _ = expected(W, labels, subset_of, 4, 3, 0.9)
    ordered = np.sort(P, axis=2)
    clear = ordered[..., -1] - ordered[..., -2] > 1e-2
    assert clear.mean() > 0.5
    np.testing.assert_array_equal(got.labels.numpy()[clear], P.argmax(axis=2)[clear])
    assert report.converged
