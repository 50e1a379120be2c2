import numpy as np
import pytest

from labelmend.benchmarks import datasets


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
