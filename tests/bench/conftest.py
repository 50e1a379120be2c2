import numpy as np
import pytest

from bench import datasets


@pytest.fixture(autouse=True)
def few_trees(monkeypatch):
    """Forests of ten trees plant errors of the same kind in a fraction of the time."""

    whole = datasets.noise.forest_probabilities
    monkeypatch.setattr(
        datasets.noise, "forest_probabilities", lambda X, y, seed, n_trees=10: whole(X, y, seed, n_trees=10)
    )


@pytest.fixture
def human_folder(tmp_path):
    """The files of the human-label benchmarks, tiny: three clusters, one label set more than the known ones."""
    rng = np.random.default_rng(0)
    true = np.arange(60) % 3
    features = (rng.normal(size=(60, 4)) + 6 * np.eye(3, 4)[true]).astype(np.float16)
    sets = {}
    for name, n_wrong in (("zebra", 3), ("worst", 18), ("aggregate", 4), ("random1", 8)):
        noisy = true.copy()
        noisy[:n_wrong] = (noisy[:n_wrong] + 1) % 3
        sets[f"cifar10n_{name}"] = noisy.astype(np.uint8)
    folder = tmp_path / "human"
    folder.mkdir()
    np.savez(folder / "cifar10_features.npz", train=features, test=features[:5])
    np.savez(folder / "labels.npz", cifar10_train=true.astype(np.uint8), cifar100_train=np.zeros(2, np.uint8), **sets)
    return folder


@pytest.fixture
def cifar(tmp_path):
    """The files of the benchmarks on pictures, tiny: three classes told apart by their colour."""
    rng = np.random.default_rng(0)
    arrays = {}
    for part, n in (("train", 70), ("test", 30)):
        labels = np.arange(n) % 3
        pixels = rng.integers(0, 90, (n, 8, 8, 3), dtype=np.uint8)
        pixels[np.arange(n), :, :, labels] += 120
        arrays |= {f"x_{part}": pixels, f"y_{part}": labels.astype(np.uint8)[:, None]}  # as Keras keeps them
    said = arrays["y_train"].ravel().copy()
    said[::7] = (said[::7] + 1) % 3
    np.savez(tmp_path / "cifar10.npz", **arrays)
    np.savez(tmp_path / "labels.npz", cifar10_train=arrays["y_train"].ravel(), cifar10n_worst=said)
    return tmp_path


@pytest.fixture
def paper_data(cifar, human_folder):
    """All that the experiments of the paper may ask for, tiny: features, human labels, CIFAR-10 and CIFAR-100."""
    for name in ("cifar10.npz", "cifar100.npz"):
        (human_folder / name).write_bytes((cifar / "cifar10.npz").read_bytes())
    return human_folder
