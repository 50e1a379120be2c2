import numpy as np
import pytest

from bench import picture_data
from bench.picture_data import given_labels, read_pictures
from labelmend.errors import ConfigError, DataError


def test_pictures_come_with_their_classes(cifar):
    found = read_pictures(cifar / "cifar10.npz")
    assert found.pixels.shape == (70, 8, 8, 3)
    assert found.true_labels.tolist() == [i % 3 for i in range(70)]
    assert (len(found.test_pixels), len(found.test_labels), found.n_classes) == (30, 30, 3)
    quick = read_pictures(cifar / "cifar10.npz", quick=True)
    assert (len(quick.pixels), len(quick.true_labels)) == (60, 60)
    assert (len(quick.test_pixels), len(quick.test_labels)) == (20, 20)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"x_train": np.zeros((70, 8, 8, 3))}, "must be uint8 pictures"),
        ({"x_test": np.zeros((30, 8, 8), np.uint8)}, "must be uint8 pictures"),
        ({"y_test": np.zeros(7, np.uint8)}, "one class each in y_test"),
    ],
)
def test_other_arrays_are_refused(cifar, changed, message):
    path = cifar / "cifar10.npz"
    with np.load(path) as file:
        arrays = {**file, **changed}
    np.savez(path, **arrays)
    with pytest.raises(DataError, match=message):
        read_pictures(path)


def test_missing_files_and_arrays_are_named(cifar):
    with pytest.raises(ConfigError, match=r"needs --data FILE\.npz with x_train"):
        read_pictures(None)
    with pytest.raises(DataError, match=r"absent\.npz must be an \.npz file"):
        read_pictures(cifar / "absent.npz")
    with pytest.raises(DataError, match="x_train, y_train, x_test, y_test is missing"):
        read_pictures(cifar / "labels.npz")
    (cifar / "text.npz").write_text("no archive")
    with pytest.raises(DataError, match=r"text\.npz must be an \.npz file"):
        read_pictures(cifar / "text.npz")


def test_labels_are_drawn_anew_with_every_seed(cifar):
    pictures = read_pictures(cifar / "cifar10.npz")
    one, again, other = (given_labels(pictures, "symmetric50", None, seed) for seed in (0, 0, 1))
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)
    assert 0 < (one != pictures.true_labels).sum() <= 35  # of 70, the true class may be drawn
    assert np.array_equal(given_labels(pictures, "clean", None, 0), pictures.true_labels)
    asymmetric = given_labels(pictures, "asymmetric40", None, 0)
    moved = asymmetric != pictures.true_labels
    assert set(pictures.true_labels[moved]) == {2}  # of the classes 0, 1, 2 only bird becomes airplane
    assert set(asymmetric[moved]) == {0}
    assert moved.sum() == round(0.4 * 23)


def test_what_people_said_is_read_in_the_order_of_the_pictures(cifar):
    pictures = read_pictures(cifar / "cifar10.npz", quick=True)
    said = given_labels(pictures, "worst", cifar / "labels.npz", 0)
    assert np.flatnonzero(said != pictures.true_labels).tolist() == list(range(0, 60, 7))


def test_labels_of_other_pictures_are_refused(cifar):
    pictures = read_pictures(cifar / "cifar10.npz")
    np.savez(cifar / "other.npz", cifar10_train=np.roll(pictures.true_labels, 1), cifar10n_worst=pictures.true_labels)
    with pytest.raises(DataError, match=r"in their order\. They differ"):
        given_labels(pictures, "worst", cifar / "other.npz", 0)
    with pytest.raises(ConfigError, match=r"needs --labels FILE\.npz with the array cifar10n_worst"):
        given_labels(pictures, "worst", None, 0)
    with pytest.raises(DataError, match="cifar10n_best is missing"):
        given_labels(pictures, "best", cifar / "labels.npz", 0)


def test_clothes_are_split_into_those_to_mend_and_those_that_test():
    pictures, given = picture_data.pictures_to_mend(None, seed=0, quick=True)
    assert pictures.pixels.shape == (120, 14, 14, 1)
    assert (given != pictures.true_labels).mean() == 0.2
    assert not (pictures.pixels[:20] == pictures.test_pixels).all(axis=(1, 2, 3)).any()


def test_random_pictures_have_the_shape_of_the_real_ones():
    pictures = picture_data.random_pictures(quick=True)
    assert pictures.pixels.shape == (60, 8, 8, 3)
    assert pictures.n_classes == 10
