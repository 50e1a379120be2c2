import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits

from bench import datasets
from labelmend.errors import DataError


@pytest.mark.parametrize(
    ("kind", "wrong"), [("random", 20), ("confusing", 20), ("both", 40), ("patch", 20), ("clean", 0)]
)
def test_digits_get_the_errors_of_their_kind(kind, wrong):
    data = datasets.digits(seed=0, kind=kind, n_rows=100)
    assert (data.given_labels != data.true_labels).sum() == wrong
    again = datasets.digits(seed=0, kind=kind, n_rows=100)
    assert_array_equal(data.given_labels, again.given_labels)


def test_digits_are_a_stratified_seventy_percent_of_pixels_between_0_and_1():
    data = datasets.digits(seed=1, kind="clean")
    labels = load_digits().target
    assert len(data.features) == 1257
    assert data.features.max() == 1
    assert_allclose(np.bincount(data.true_labels) / 1257, np.bincount(labels) / len(labels), rtol=0, atol=1e-3)
    other = datasets.digits(seed=2, kind="clean")
    assert (data.true_labels != other.true_labels).any()


def test_human_labels_are_read_beside_the_truth(human_folder):
    data = datasets.human(str(human_folder), "random1")
    assert data.features.dtype == np.float32
    assert data.features.shape == (60, 4)
    assert (data.given_labels != data.true_labels).sum() == 8
    clean = datasets.human(str(human_folder), "clean", n_rows=10)
    assert_array_equal(clean.given_labels, np.arange(10) % 3)
    assert_array_equal(clean.true_labels, clean.given_labels)


def test_every_human_label_set_is_found_the_known_ones_first(human_folder):
    assert datasets.human_sets(str(human_folder)) == ["aggregate", "random1", "worst", "zebra", "clean"]


def test_wrong_folders_are_refused_with_what_is_missing(human_folder, tmp_path):
    with pytest.raises(DataError, match=r"cifar10_features\.npz does not exist"):
        datasets.human(str(tmp_path), "random1")
    with pytest.raises(DataError, match="cifar10n_random2 is missing"):
        datasets.human(str(human_folder), "random2")
    np.savez(human_folder / "cifar10_features.npz", train=np.zeros((7, 2)))
    with pytest.raises(DataError, match=r"Got \[7, 60\] rows"):
        datasets.human(str(human_folder), "random1")


def test_clusters_have_equal_classes_around_their_centres_and_a_fifth_of_errors():
    data = datasets.clusters(seed=0, n_rows=3000, n_columns=4, n_classes=3, spread=5.0)
    assert data.features.dtype == np.float32
    assert_array_equal(np.bincount(data.true_labels), [1000] * 3)
    assert (data.given_labels != data.true_labels).sum() == 600
    within = [data.features[data.true_labels == c].std(axis=0) for c in range(3)]
    assert_allclose(within, 1, rtol=0, atol=0.1)
    centres = np.stack([data.features[data.true_labels == c].mean(axis=0) for c in range(3)])
    assert np.linalg.norm(centres[0] - centres[1]) > 2
    assert_array_equal(data.features, datasets.clusters(0, 3000, 4, 3, 5.0).features)
    assert (data.features != datasets.clusters(1, 3000, 4, 3, 5.0).features).any()
