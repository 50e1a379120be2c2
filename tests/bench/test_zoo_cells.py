import numpy as np
import pytest

from bench.zoo import cells, own_sets, weak
from labelmend.diagnosis import noise
from labelmend.errors import ConfigError, DataError


@pytest.fixture
def folder(tmp_path):
    """Two sets of one family and one without; the second has three classes."""
    rng = np.random.default_rng(0)
    for name, n_classes in (("a", 2), ("b", 3), ("c", 2)):
        true = np.arange(30) % n_classes
        arrays = {"given_clean": true, "given_random20": np.where(np.arange(30) < 6, (true + 1) % n_classes, true)}
        np.savez(tmp_path / f"{name}.npz", X=rng.normal(size=(30, 4)).astype(np.float16), true=true, **arrays)
    (tmp_path / "families.csv").write_text("name,family,source\na,first,keel\nb,first,other\n", encoding="utf-8")
    return tmp_path


def test_a_folder_says_which_sets_kinds_and_families_there_are(folder):
    a, b, c = cells.find_sets(folder)
    assert (a.name, a.kinds, a.n_rows, a.n_columns, a.n_classes) == ("a", ("clean", "random20"), 30, 4, 2)
    assert [(one.family, one.source) for one in (a, b, c)] == [("first", "keel"), ("first", "other"), ("c", "")]
    data = b.cells(["random20"])[0].load()
    assert data.features.dtype == np.float32
    assert (data.given_labels != data.true_labels).sum() == 6


def test_cells_are_chosen_by_name_and_kind_and_the_longest_come_first(folder):
    sets = cells.find_sets(folder)
    chosen = cells.choose_cells(cells.choose_sets(sets, ["a", "b"]), ["random20"], range(2), "apart")
    assert [cell.key for cell in chosen] == [
        (name, "random20", "apart", seed) for name in ("b", "a") for seed in (0, 1)
    ]
    with pytest.raises(ConfigError, match="x"):
        cells.choose_sets(sets, ["a", "x"])
    with pytest.raises(ConfigError, match="random99"):
        cells.choose_cells(sets, ["random99"], [0])
    with pytest.raises(ConfigError, match="clean"):
        cells.weak_cells(sets, ["clean"], [0])


def test_a_folder_without_a_zoo_is_refused(tmp_path):
    with pytest.raises(DataError, match="none"):
        cells.find_sets(tmp_path)
    np.savez(tmp_path / "x.npz", X=np.zeros((2, 2)), true=np.zeros(2))
    with pytest.raises(DataError, match="given_KIND"):
        cells.find_sets(tmp_path)


def test_weak_cells_are_five_of_every_small_binary_set_with_all_labels_right(folder):
    made = cells.weak_cells(cells.find_sets(folder), None, [0])
    assert [cell.key[:2] for cell in made] == [(name, kind) for name in ("a", "c") for kind in weak.KINDS]
    columns = {cell.kind: cell.load().features.shape[1] for cell in made[:5]}
    assert columns == {"weak-noise3": 4, "weak-noise8": 4, "weak-two": 2, "weak-one": 1, "weak-none": 4}
    for cell in made:
        data = cell.load()
        np.testing.assert_array_equal(data.given_labels, data.true_labels)
        np.testing.assert_array_equal(data.features, cell.load().features)


def test_weak_features_are_what_the_recipe_says():
    S = np.random.default_rng(1).normal(size=(4000, 12))
    features = np.hstack([5 + 7 * S, np.ones((4000, 1))])  # a constant column carries nothing
    for kind, deviation in (("weak-noise3", 10**0.5), ("weak-noise8", 65**0.5), ("weak-none", 1), ("weak-one", 1)):
        made = weak.weaken(features, kind, np.random.default_rng(0))
        np.testing.assert_allclose(made.std(axis=0), deviation, rtol=0.06)
    assert made.shape == (4000, 1)
    assert weak.weaken(features, "weak-none", np.random.default_rng(0)).shape == (4000, 10)


@pytest.mark.parametrize(("name", "one"), own_sets.SETS.items())
def test_own_sets_have_the_shape_they_are_said_to_have(name, one):
    features, labels = own_sets.draw(name, 0)
    assert (*features.shape, len(np.unique(labels))) == one.shape


@pytest.mark.parametrize(
    ("kind", "share"),
    [("clean", 0), ("random8", 0.08), ("random40", 0.4), ("inst20", 0.2), ("conf15", 0.15), ("patch20", 0.2)],
)
def test_own_cells_have_the_share_of_errors_they_are_named_for(kind, share):
    for seed in (0, 1):
        data = own_sets.load("wine", kind, seed)
        assert (data.given_labels != data.true_labels).mean() == pytest.approx(share, abs=0.003)
        np.testing.assert_array_equal(data.given_labels, own_sets.load("wine", kind, seed).given_labels)


def test_asymmetric_errors_leave_some_classes_alone():
    data = own_sets.load("wine", "asym20", 0)
    wrong = data.given_labels != data.true_labels
    assert set(data.true_labels[wrong]) == {1}
    assert set(data.given_labels[wrong]) == {2}
    assert wrong.sum() == round(0.4 * 71)


def test_thinned_sets_have_the_rare_class_they_are_named_for():
    for name, size in (("breast_cancer_10_1", 36), ("breast_cancer_95_5", 19), ("digit_three_95_5", 85)):
        assert np.bincount(own_sets.draw(name, 0)[1]).min() == size
    first, other = (own_sets.draw("breast_cancer_95_5", seed)[0] for seed in (0, 1))
    assert not np.array_equal(first, other)


def test_instance_dependent_errors_follow_the_features_and_never_the_true_class():
    rng = np.random.default_rng(0)
    features, labels = rng.normal(size=(2000, 3)), np.arange(2000) % 3
    noisy = noise.instance_dependent(labels, 0.2, features, np.random.default_rng(1))
    wrong = noisy != labels
    assert wrong.sum() == 400
    shifts = [np.abs(features[wrong & (labels == c)].mean(0) - features[labels == c].mean(0)).max() for c in range(3)]
    assert min(shifts) > 0.15  # of random errors: 0.1 at most
