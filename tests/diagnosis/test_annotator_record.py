import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import beta

from labelmend.diagnosis.annotators import accuracies, describe
from labelmend.labels import Annotations


def by_hand():
    """Ann says 0 0 1 of samples 0 1 2, ben 1 of sample 1, cid nothing; the classes are 0, 1 (or 0), 1."""
    said = Annotations(
        np.array(["ann", "ben", "cid"]),
        np.array([0, 1, 1, 2]),
        np.array([0, 0, 1, 0]),
        np.array([0, 0, 1, 1]),
        np.array([0, 0, 1, -1]),
        np.array([0.9, 0.5, 0.8, 0.0], dtype=np.float32),
    )
    probabilities = np.array([[1.0, 0.0], [0.25, 0.75], [0.0, 1.0]])
    confusion = np.array([[[0.9, 0.1], [0.4, 0.6]], [[0.7, 0.3], [0.2, 0.8]], [[0.8, 0.2], [0.3, 0.7]]])
    return describe(said, np.arange(3), probabilities, confusion, prior=2.0)


def test_counts_accuracy_and_agreement():
    found = by_hand()
    assert found.n_labels.tolist() == [3, 1, 0]
    # right: 1, 0.25, 1 of ann; 0.75 of ben; the common share is 3 / 4, and counts like two labels
    assert_allclose(found.accuracy, [(2.25 + 1.5) / 5, (0.75 + 1.5) / 3, 0.75])
    assert_allclose(found.agreement, [1.0, 0.0, np.nan])  # with the consensus 0, 0, 1
    assert_allclose(found.expected, [[1.25, 1.75], [0.25, 0.75], [0, 0]])
    assert found.worst_first().tolist() == [0, 1, 2]


def test_the_interval_is_a_beta_distribution_that_doubt_makes_wider():
    mean, low, high = accuracies(np.zeros(98, dtype=np.int64), np.repeat([1.0, 0.0], [90, 8]), 1, prior=2.0)
    share = (90 + 2 * 90 / 98) / 100
    assert_allclose(mean, share)
    assert_allclose([low[0], high[0]], beta.ppf([0.05, 0.95], 100 * share, 100 * (1 - share)))
    _, lower, higher = accuracies(np.zeros(98, dtype=np.int64), np.full(98, 90 / 98), 1, prior=2.0)
    assert lower < low < high < higher


def test_intervals_cover_the_accuracy_they_estimate():
    random = np.random.default_rng(0)
    right = (random.random((400, 50)) < 0.8).astype(float)
    _, low, high = accuracies(np.repeat(np.arange(400), 50), right.ravel(), 400, prior=10.0)
    assert 0.87 <= ((low <= 0.8) & (high >= 0.8)).mean() <= 1


def test_the_worst_confusions_are_those_of_most_labels():
    found = by_hand()
    first, *others = found.worst_confusions()
    # ann says 0 for 0.4 of 1.75 samples of class 1; nothing else makes half a label
    assert (first.annotator, first.true, first.said) == ("ann", 1, 0)
    assert first.count == pytest.approx(0.7)
    assert others == []
    assert found.worst_of(0) == first
    assert found.worst_of(1) is None


def test_the_summary_is_ready_for_json():
    first = by_hand().summary(np.array(["cat", "dog"]))[0]
    assert first["name"] == "ann"
    assert first["labels"] == 3
    assert first["accuracy"] == 0.75
    assert first["worst_confusion"] == {"true": "dog", "said": "cat", "share": 0.4}
    assert by_hand().summary(np.array(["cat", "dog"]))[2]["agreement"] is None
