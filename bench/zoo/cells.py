"""The zoo's cells: a data set, one kind of label errors, a seed and what is assumed. Each is read where it is measured.

A folder holds NAME.npz with X, `true` and given_KIND..., and beside them families.csv (name, family, source: which sets
belong together) where somebody wrote it. Without a folder the sets are those of `own_sets.py`. A kind that begins with
"weak-" is made from the true labels by `weak.py`.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.datasets import Dataset, read_arrays
from bench.zoo import own_sets, weak
from labelmend.errors import ConfigError, DataError

GIVEN = "given_"
CLEAN = "clean"
KINDS = (CLEAN, "random10", "random20", "random40", "asym20", "inst20", "conf15", "patch20", "real")
Key = tuple[str, str, str, int]


@dataclass(frozen=True)
class ZooSet:
    """One data set, as far as cells need to know it."""

    name: str
    kinds: tuple[str, ...]
    n_rows: int
    n_columns: int
    n_classes: int
    family: str
    source: str
    folder: str | None = None  # None: made here

    @property
    def work(self) -> int:
        return self.n_rows * self.n_columns * self.n_classes

    def cells(self, kinds: Iterable[str] | None = None, seed: int = 0, assume: str = "auto") -> list[Cell]:
        return [Cell(self, kind, seed, assume) for kind in (self.kinds if kinds is None else kinds)]


@dataclass(frozen=True)
class Cell:
    """Small enough to be sent to another process, which reads the data itself."""

    of: ZooSet
    kind: str
    seed: int = 0
    assume: str = "auto"

    @property
    def key(self) -> Key:
        return self.of.name, self.kind, self.assume, self.seed

    @property
    def title(self) -> str:
        return f"{self.of.name}:{self.kind}"

    def load(self) -> Dataset:
        if self.kind.startswith(weak.PREFIX):
            whole = self.data(CLEAN)
            features = weak.weaken(whole.features, self.kind, weak.generator(self.of.name, self.seed))
            return Dataset(features, whole.true_labels, whole.true_labels)
        return self.data(self.kind)

    def data(self, kind: str) -> Dataset:
        if self.of.folder is None:
            return own_sets.load(self.of.name, kind, self.seed)
        names = ("X", "true", GIVEN + kind)[: 2 if kind == CLEAN else 3]
        arrays = read_arrays(Path(self.of.folder) / f"{self.of.name}.npz", names)
        true = arrays["true"].astype(np.int64)
        return Dataset(arrays["X"].astype(np.float32), arrays.get(GIVEN + kind, true).astype(np.int64), true)


def find_sets(folder: Path | None) -> list[ZooSet]:
    return own_zoo() if folder is None else folder_zoo(folder)


def folder_zoo(folder: Path) -> list[ZooSet]:
    paths = sorted(folder.glob("*.npz"))
    if not paths:
        raise DataError(f"the zoo must be a folder of NAME.npz files (X, true, given_KIND...). Got none in {folder}.")
    families = read_families(folder / "families.csv")
    return [describe(path, *families.get(path.stem, (path.stem, ""))) for path in paths]


def describe(path: Path, family: str, source: str) -> ZooSet:
    arrays = read_arrays(path, ())
    kinds = tuple(name.removeprefix(GIVEN) for name in arrays if name.startswith(GIVEN))
    if not kinds or not {"X", "true"} <= set(arrays):
        raise DataError(f"{path} must hold X, true and at least one given_KIND. Got {', '.join(arrays)} instead.")
    n, columns = arrays["X"].shape
    n_classes = len(np.unique(arrays["true"]))
    return ZooSet(path.stem, kinds, n, columns, n_classes, family, source, str(path.parent))


def read_families(path: Path) -> dict[str, tuple[str, str]]:
    """name -> family and source."""
    if not path.is_file():
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        return {row["name"]: (row["family"], row.get("source") or "") for row in csv.DictReader(file)}


def own_zoo() -> list[ZooSet]:
    return [
        ZooSet(name, one.kinds, *one.shape, family=one.family, source="scikit-learn")
        for name, one in own_sets.SETS.items()
    ]


def choose_sets(sets: Sequence[ZooSet], only: Sequence[str] | None) -> list[ZooSet]:
    """Those asked for by name."""
    unknown = sorted(set(only or ()) - {one.name for one in sets})
    if unknown:
        raise ConfigError(f"--only must name sets of the zoo. Got {', '.join(unknown)}, which are not there.")
    return [one for one in sets if only is None or one.name in only]


def choose_cells(
    sets: Sequence[ZooSet], kinds: Sequence[str] | None, seeds: Iterable[int], assume: str = "auto"
) -> list[Cell]:
    """All cells, or those of some kinds; the longest first, so that the last ones to run are short."""
    unknown = sorted(set(kinds or ()) - {kind for one in sets for kind in one.kinds})
    if unknown:
        raise ConfigError(f"--kinds must be kinds of these sets. Got {', '.join(unknown)}, which none has.")
    cells = [
        cell
        for seed in seeds
        for one in sets
        for cell in one.cells([kind for kind in one.kinds if kinds is None or kind in kinds], seed, assume)
    ]
    return sorted(cells, key=lambda cell: -cell.of.work)


def weak_cells(sets: Sequence[ZooSet], kinds: Sequence[str] | None, seeds: Iterable[int]) -> list[Cell]:
    """Of the sets with two classes that are small enough: clean labels and features made weak on purpose."""
    unknown = sorted(set(kinds or ()) - set(weak.KINDS))
    if unknown:
        raise ConfigError(f"--kinds of --weak must be among {', '.join(weak.KINDS)}. Got {', '.join(unknown)} instead.")
    small = [one for one in sets if one.n_classes == 2 and one.n_rows * one.n_columns <= weak.MOST_NUMBERS]
    chosen = [kind for kind in weak.KINDS if kinds is None or kind in kinds]
    return [cell for seed in seeds for one in small for cell in one.cells(chosen, seed)]
