import sys

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from bench.datasets import clusters
from labelmend.errors import MissingExtraError
from labelmend.self_test import comparison

EASY = clusters(seed=0, n_rows=120, n_columns=6, n_classes=3, spread=4.0)


@pytest.fixture
def no_cleanlab(monkeypatch):
    monkeypatch.setitem(sys.modules, "cleanlab.filter", None)


@pytest.mark.parametrize("method", comparison.METHODS)
def test_every_method_mends_most_of_an_easy_case(method):
    if method == "cleanlab":
        pytest.importorskip("cleanlab")
    outcome = comparison.METHODS[method](EASY.features, EASY.given_labels, 10, 0)
    assert (outcome.labels == EASY.true_labels).mean() > 0.95


def test_cleanlab_keeps_the_values_of_the_labels_and_reports_what_it_flags():
    pytest.importorskip("cleanlab")
    values = np.array([3, 40, 7])
    outcome = comparison.cleanlab(EASY.features, values[EASY.given_labels], 10, 0)
    plain = comparison.cleanlab(EASY.features, EASY.given_labels, 10, 0)
    assert set(outcome.labels) <= {3, 40, 7}
    assert outcome.noise_rate == pytest.approx(0.2, abs=0.05)
    assert (plain.labels != EASY.given_labels).mean() <= plain.noise_rate


def test_the_vote_leaves_the_sample_itself_out_even_among_duplicates():
    features = np.array([[0.0], [0.0], [0.0], [9.0], [9.1], [9.2]])
    given = np.array([1, 0, 0, 1, 1, 0])
    assert_array_equal(comparison.knn_vote(features, given, 2, 0).labels, [0, 0, 0, 0, 0, 1])


def test_the_vote_takes_fewer_neighbours_where_there_are_fewer_samples():
    outcome = comparison.knn_vote(np.arange(4.0)[:, None], np.array([0, 1, 1, 1]), 50, 0)
    assert_array_equal(outcome.labels, [1, 1, 1, 1])
    assert outcome.noise_rate is None
    assert outcome.in_review is None


def test_labelmend_reports_its_estimate_and_its_review():
    outcome = comparison.labelmend(EASY.features, EASY.given_labels, 10, 0)
    assert outcome.noise_rate == pytest.approx(0.2, abs=0.1)
    assert outcome.in_review.shape == (120,)


@pytest.mark.usefixtures("no_cleanlab")
def test_a_missing_cleanlab_is_said_with_the_line_that_installs_it():
    with pytest.raises(MissingExtraError, match=r'cleanlab is not installed.*pip install "labelmend\[compare\]"'):
        comparison.prepare("cleanlab")
    comparison.prepare("k-NN vote")
    comparison.prepare("labelmend")
