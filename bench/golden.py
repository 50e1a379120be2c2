"""Golden runs: do two commits give the same labels and the same confidence, bit for bit, on this machine?

python bench/golden.py OLD NEW [--human labels.npz features.npz] [--only CASE ...]

Each commit is checked out in a folder of its own and runs every case in a process of its own, on one thread. Nothing is
kept: results differ between processors, so only two commits on the same machine can be compared.
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
COMPARED = ("labels", "confidence", "status", "label_score", "certainty", "runner_up", "reason")


def call(name: str, *data: Any, **options: Any) -> Any:
    """The public call; what was a plain parameter once is one of expert= now."""
    import labelmend

    function = getattr(labelmend, name)
    named = inspect.signature(function).parameters
    if "expert" in named:
        expert = {key: options.pop(key) for key in list(options) if key not in named}
        options |= {"expert": expert} if expert else {}
    return function(*data, **options)


def digits(n: int = 1797) -> tuple[Any, Any]:
    """Digits with a fifth of the labels wrong."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return X[:n], wrong(y[:n], 10, 0.2)


def wrong(labels: Any, n_classes: int, rate: float, seed: int = 7) -> Any:
    rng = np.random.default_rng(seed)
    hit = rng.random(len(labels)) < rate
    return np.where(hit, (labels + rng.integers(1, n_classes, len(labels))) % n_classes, labels)


def clothes(n: int) -> tuple[Any, Any]:
    stored = np.load(next(p for p in (ROOT / "src").rglob("clothes.npz")))
    return stored["pictures"][:n], wrong(stored["true_labels"][:n].astype(int), 8, 0.2)


def run_digits() -> Any:
    return call("correct", *digits(), seed=3)


def run_clean_iris() -> Any:
    from sklearn.datasets import load_iris

    return call("correct", *load_iris(return_X_y=True))


def run_options() -> Any:
    X, y = digits(900)
    trusted = np.arange(900) % 9 == 0
    y = y.astype(object)
    y[::50] = None
    trusted[::50] = False
    return call("correct", X, y, seed=1, trusted=trusted, precision=0.9, audit=0.05, assume="apart", n_rounds=3)


def run_budget() -> Any:
    return call("correct", *digits(700), budget=40, balanced=True, round_labels="posterior", n_rounds=4)


def run_large() -> Any:
    """Above the size from which cross-fitted nets judge."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 6, 9000)
    X = rng.normal(size=(6, 40))[y] * 1.1 + rng.normal(size=(9000, 40))
    return call("correct", X.astype(np.float32), wrong(y, 6, 0.3), n_rounds=2)


def run_human() -> Any:
    labels, features = (np.load(path) for path in json.loads(os.environ["GOLDEN_HUMAN"]))
    return call("correct", features["train"][:4000].astype(np.float32), labels["cifar10n_random1"][:4000], n_rounds=4)


def run_annotators() -> Any:
    X, y = digits(800)
    people = np.stack([wrong(y, 10, rate, seed) for seed, rate in enumerate((0.1, 0.3, 0.6))], axis=1).astype(object)
    people[::3, 1] = None
    return call("correct", X, annotators=people, n_rounds=3)


def run_pred_probs() -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_predict

    X, y = digits(900)
    P = cross_val_predict(LogisticRegression(max_iter=200), X / 16, y, cv=3, method="predict_proba")
    return call("correct", X, y, pred_probs=P, n_rounds=3)


def run_pred_probs_alone() -> Any:
    _, y = digits(900)
    P = np.full((900, 10), 0.02)
    P[np.arange(900), wrong(y, 10, 0.1, seed=1)] = 0.82
    return call("correct", y=y, pred_probs=P)


def run_resumed() -> Any:
    """Interrupted after two rounds, and continued."""
    X, y = digits(700)
    options = {"seed": 5, "n_rounds": 5}
    with tempfile.TemporaryDirectory() as folder:

        def stop(record: Any, *_: Any) -> None:
            if record.round_index == 2:
                raise KeyboardInterrupt

        kept = {"checkpoints": Path(folder) / "kept", "checkpoint_every": 0}
        try:
            call("correct", X, y, callback=stop, **kept, **options)
        except KeyboardInterrupt:
            pass
        else:
            raise RuntimeError("the run was not interrupted")
        return call("correct", X, y, **kept, **options)


def run_paper() -> Any:
    return call("correct", *digits(600), preset="paper", n_rounds=4)


def run_paper_soft() -> Any:
    soft = {"mixup": True, "soft_labels": True, "noisy_branch": False, "branch_loss": "split", "branch_samples": "all"}
    return call("correct", *digits(600), preset="paper", n_rounds=4, corrected_loss="semi-supervised", **soft)


def run_pictures_embedded() -> Any:
    import torch
    from torch import nn

    class Backbone(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            with torch.random.fork_rng():
                torch.manual_seed(0)
                self.net = nn.Sequential(nn.Conv2d(3, 12, 3, 2), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten())

        def forward(self, x: Any) -> Any:
            return self.net(x)

    pictures, y = clothes(500)
    with tempfile.TemporaryDirectory() as cache:
        return call("correct_images", pictures, y, mode="embed", backbone=Backbone(), size=28, cache=cache, n_rounds=3)


def run_pictures_trained() -> Any:
    pictures, y = clothes(240)
    with tempfile.TemporaryDirectory() as cache:
        return call("correct_images", pictures, y, mode="train", cache=cache, n_rounds=3, width=4, warmup_passes=2)


def run_photographs() -> Any:
    """Larger than 64 pixels a side: another preset, another net."""
    pictures, y = clothes(60)
    with tempfile.TemporaryDirectory() as cache:
        small = {"width": 16, "n_rounds": 2, "correct_every": 1, "architecture": "preact-resnet18"}
        return call("correct_images", pictures, y, mode="train", size=80, cache=cache, **small)


CASES = {name.removeprefix("run_"): found for name, found in list(globals().items()) if name.startswith("run_")}


def play(out: Path, names: list[str]) -> None:
    """In the process of one commit: all cases, their results as arrays."""
    import torch

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    for name in names:
        began = time.perf_counter()
        result = CASES[name]()
        arrays = {key: plain(getattr(result, key)) for key in COMPARED}
        np.savez(out / f"{name}.npz", **arrays, noise_rate=result.noise_rate, transition=result.transition)
        print(f"  {name}: {len(result.labels):,} rows, {time.perf_counter() - began:.1f} s", flush=True)


def plain(values: Any) -> Any:
    array = np.asarray(values)
    return array.astype(np.str_) if array.dtype == object else array


def run_commit(commit: str, folder: Path, names: list[str]) -> Path:
    tree, out = folder / f"tree-{commit}", folder / f"out-{commit}"
    out.mkdir()
    if commit == "WORKING":
        tree = ROOT
    else:
        subprocess.run(["git", "-C", ROOT, "worktree", "add", "--detach", "--force", tree, commit], check=True)
    print(commit, flush=True)
    environment = {**os.environ, "PYTHONPATH": str(tree / "src"), "OMP_NUM_THREADS": "1"}
    try:
        command = [sys.executable, __file__, "--play", out, *names]
        subprocess.run(command, check=True, env=environment)
    finally:
        if tree != ROOT:
            subprocess.run(["git", "-C", ROOT, "worktree", "remove", "--force", tree], check=True)
    return out


def differences(old: Path, new: Path, name: str) -> list[str]:
    one, two = (np.load(where / f"{name}.npz") for where in (old, new))
    return [key for key in one.files if one[key].dtype != two[key].dtype or one[key].tobytes() != two[key].tobytes()]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commits", nargs="*", metavar="COMMIT", help="two commits; WORKING is the tree as it lies here")
    parser.add_argument("--human", nargs=2, type=Path, help="labels.npz and cifar10_features.npz of the human labels")
    parser.add_argument("--only", nargs="+", choices=CASES)
    parser.add_argument("--keep", type=Path, help="keep the results of the first commit there, or take them from there")
    parser.add_argument("--play", nargs="+", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.play:
        play(Path(asked.play[0]), asked.play[1:])
        return 0
    if asked.human:
        os.environ["GOLDEN_HUMAN"] = json.dumps([str(path.resolve()) for path in asked.human])
    names = asked.only or [name for name in CASES if name != "human" or asked.human]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        old = asked.keep if asked.keep and asked.keep.exists() else run_commit(asked.commits[0], folder, names)
        if asked.keep and old != asked.keep:
            old = Path(shutil.move(old, asked.keep))
        if len(asked.commits) < 2:
            return 0
        new = run_commit(asked.commits[1], folder, names)
        found = {name: differences(old, new, name) for name in names}
    for name, keys in found.items():
        print(f"{name:20} {'equal' if not keys else 'DIFFERS: ' + ', '.join(keys)}")
    return int(any(found.values()))


if __name__ == "__main__":
    sys.exit(main())
