"""Odd and damaged inputs by number: each is one of the library's errors, or is read as what it is.

`attack(seed, folder)` makes the input of that number and gives it to the library. Anything but a `LabelmendError` that
leaves it is a finding, and so is an `AssertionError`: something was accepted and came back changed. Used by the tests
with a few hundred numbers, and by `make fuzz` with ten thousand others.
"""

from __future__ import annotations

import csv
import functools
import json
import math
import shutil
import tempfile
import warnings
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import torch

import labelmend
from blobs import QUICK, blobs
from labelmend.config import RunConfig, as_arguments, make_config, resolve
from labelmend.errors import LabelmendError
from labelmend.inputs.features import check_features, read_features
from labelmend.inputs.labels import check_classes, read_labels
from labelmend.inputs.pictures.find import find_pictures, holds_pictures
from labelmend.inputs.tables import load_table
from labelmend.labels import Labels

VALUES = (
    *(0, 1, 2, -1, 2**31, 2**53, 2**53 + 1, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 1, 2**64, -(2**63), -(2**70)),
    *(True, False, 0.0, 1.0, 2.0, -0.0, 1e300, math.nan, math.inf, 0.5),
    *("", "a", "b", "A", " a", "1", "1.0", "True", "None", "nan", "\x1b[2J", "\udc80", "é", "漢", "a\0", "\n"),
    *(None, b"a", Decimal(1), Decimal("NaN"), Fraction(1, 2), date(2020, 1, 1), (1, 2), [1], {}, object),
    *(np.int8(1), np.uint64(2**63), np.float32(1), np.str_("a"), np.bool_(True), np.datetime64("NaT"), pd.NA, pd.NaT),
)
CONTAINERS = (
    list,
    tuple,
    np.array,
    lambda v: np.array(v, dtype=object),
    pd.Series,
    lambda v: pd.Series(v, dtype=object),
    lambda v: pd.Series(v, dtype="Int64"),
    lambda v: pd.Series(v, dtype="category"),
    pd.Index,
    lambda v: pl.Series("y", v),
    lambda v: pl.Series("y", [value if type(value) is int else None for value in v], dtype=pl.UInt64),
    torch.tensor,
    lambda v: np.ma.array(v, mask=np.arange(len(v)) % 3 == 0),
    lambda v: np.array(v)[:, None],
    lambda v: pd.DataFrame({"y": v}),
)
JSON = ("[" * 50_000, "null", "[]", "{}", "1e999", '"text"', "NaN", '{"a": {"b": []}}', "", "\0", "tru")


def attack(seed: int, folder: Path) -> None:
    random = np.random.default_rng(seed)
    kinds = (labels, features, settings, table_file, run_folder, run_folder, small_run)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kinds[int(random.integers(len(kinds)))](random, folder)


def labels(random: np.random.Generator, folder: Path) -> None:
    given = odd_container(random, odd_values(random, int(random.integers(1, 12))))
    if given is None:
        return
    missing = VALUES[random.integers(len(VALUES))] if random.random() < 0.2 else None
    try:
        found = read_labels(given, missing)
    except LabelmendError:
        return
    same_labels(given, found, missing)
    try:
        check_classes(found)
    except LabelmendError:
        return


def odd_values(random: np.random.Generator, n: int) -> list[object]:
    """A few of the values, each several times, as labels are."""
    few = [VALUES[place] for place in random.integers(len(VALUES), size=int(random.integers(1, 5)))]
    return [few[place] for place in random.integers(len(few), size=n)]


def odd_container(random: np.random.Generator, values: list[object]) -> object:
    """In a container; None where that container itself refuses them."""
    try:
        return CONTAINERS[int(random.integers(len(CONTAINERS)))](values)
    except Exception:
        return None
    except BaseException as error:  # polars has errors that are none
        if type(error).__name__ != "PanicException":
            raise
        return None


def flat(container: object) -> list[object]:
    if isinstance(container, pd.DataFrame):
        return container.iloc[:, 0].tolist()
    values = container.tolist() if hasattr(container, "tolist") else None
    values = container.to_list() if values is None and hasattr(container, "to_list") else values
    values = list(container) if values is None else values
    return [value[0] if isinstance(value, list) and len(value) == 1 else value for value in values]


def same(one: object, other: object) -> bool:
    try:
        return one is other or bool(one == other)
    except TypeError:  # values of two libraries that do not know each other
        return False


def same_labels(given: object, found: Labels, missing: object = None) -> None:
    """What is there comes back equal; of two equal codes the labels are equal, of two others they are not."""
    before, after = flat(given), flat(found.decode(found.codes))
    assert len(before) == len(after) == len(found.codes)
    for old, new, code in zip(before, after, found.codes.tolist(), strict=True):
        assert code < 0 or (same(old, new) and same(old, found.classes[code])), (old, new)
    present = {value: None for value, code in zip(before, found.codes.tolist(), strict=True) if code >= 0}
    assert len(present) == len(found.classes), (present, found.classes)


def features(random: np.random.Generator, folder: Path) -> None:
    n, columns = int(random.integers(0, 9)), int(random.integers(0, 4))
    values = random.normal(size=(n, columns)) * 10.0 ** random.integers(-40, 39)
    if values.size and random.random() < 0.3:
        values[random.integers(n), random.integers(columns)] = random.choice([np.nan, np.inf, 1e39, -3e38, 0])
    makers = (
        np.asarray,
        torch.tensor,
        pd.DataFrame,
        lambda v: pl.DataFrame(v).lazy(),
        lambda v: np.ma.array(v, mask=v > 0),
        lambda v: torch.tensor(v, device="meta"),
        lambda v: torch.tensor(v).bfloat16(),
        lambda v: v.astype(complex),
        lambda v: v.tolist(),
        lambda v: v.astype(str),
        lambda v: pd.DataFrame(v).convert_dtypes(),
    )
    try:
        given = makers[int(random.integers(len(makers)))](values)
    except Exception:
        return
    try:
        matrix = read_features(given)
        check_features(matrix)
    except LabelmendError:
        return
    assert matrix.shape == values.shape
    np.testing.assert_allclose(matrix, values, rtol=1e-2, atol=1e-37)  # bfloat16 has eight bits


def settings(random: np.random.Generator, folder: Path) -> None:
    names = list(RunConfig.__dataclass_fields__)
    odd = (*VALUES, -5, 10**400, 1e30, -1e-300, (), (math.nan,), "cuda:99", "default", "paper")
    chosen = {
        names[int(place)]: odd[int(random.integers(len(odd)))]
        for place in random.integers(len(names), size=int(random.integers(1, 3)))
    }
    try:
        config = resolve(make_config(**chosen), 1000, 5)
    except LabelmendError:
        return
    numbers = [value for value in vars(config).values() if isinstance(value, float)]
    assert all(map(math.isfinite, numbers))


def damaged(random: np.random.Generator, whole: bytes) -> bytes:
    """Flipped, cut off, doubled, emptied, or with a part from elsewhere."""
    raw = bytearray(whole)
    way = int(random.integers(6))
    if way == 0 or not raw:
        return b""
    place = int(random.integers(len(raw)))
    if way == 1:
        return bytes(raw[:place])
    if way == 2:
        raw[place : place + 8] = random.bytes(8)
    elif way == 3:
        raw[place:place] = raw[: int(random.integers(1, 200))]
    elif way == 4:
        del raw[place : place + int(random.integers(1, 50))]
    for _ in range(int(random.integers(1, 4))):
        raw[int(random.integers(len(raw)))] ^= 1 << int(random.integers(8))
    return bytes(raw)


@functools.cache
def whole_files() -> dict[str, bytes]:
    place = Path(tempfile.mkdtemp())
    points, true = blobs(20)
    np.savez(place / "t.npz", X=points, y=true)
    np.savez_compressed(place / "p.npz", images=np.zeros((6, 4, 4), np.uint8), labels=np.arange(6) % 2)
    np.save(place / "t.npy", np.column_stack([points, true]))
    frame = pd.DataFrame(points, columns=list("abcd")).assign(y=true)
    frame.to_csv(place / "t.csv", index=False)
    frame.to_parquet(place / "t.parquet")
    found = {path.name: path.read_bytes() for path in place.iterdir()}
    shutil.rmtree(place)
    return found


def table_file(random: np.random.Generator, folder: Path) -> None:
    names = sorted(whole_files())
    name = names[int(random.integers(len(names)))]
    path = folder / name
    path.write_bytes(damaged(random, whole_files()[name]))
    for read in (holds_pictures, lambda at: load_table(at, "-1" if at.suffix == ".npy" else "y"), find_pictures):
        try:
            read(path)
        except LabelmendError:
            continue


@functools.cache
def whole_run() -> tuple[dict[str, bytes], list[object], list[object]]:
    """The files of a run, its ids and its labels."""
    place = Path(tempfile.mkdtemp())
    points, true = blobs(30)
    names = np.array(["ant", "bee", "cat"])[true]
    result = labelmend.correct(points, names, ids=[f"id {i:02d}" for i in range(30)], **as_arguments({**QUICK}))
    result.save(place / "run")
    found = {path.name: path.read_bytes() for path in (place / "run").iterdir()}
    shutil.rmtree(place)
    return found, result.ids.tolist(), result.labels.tolist()


def run_folder(random: np.random.Generator, folder: Path) -> None:
    files, ids, expected = whole_run()
    run = Path(tempfile.mkdtemp(dir=folder))
    for name, whole in files.items():
        (run / name).write_bytes(whole)
    name = sorted(files)[int(random.integers(len(files)))]
    way = int(random.integers(4))
    if name.endswith(".json") and way == 0:
        (run / name).write_text(JSON[int(random.integers(len(JSON)))])
    elif name.endswith(".json") and way == 1:
        (run / name).write_text(json.dumps(elsewhere(random, json.loads(files[name]))))
    elif name == "labels.csv" and way < 3:
        header, *rows = list(csv.reader(files[name].decode().splitlines()))
        random.shuffle(rows)
        with (run / name).open("w", newline="") as file:
            csv.writer(file).writerows([header, *rows])
    else:
        (run / name).write_bytes(damaged(random, files[name]))
    try:
        result = labelmend.load(run)
        assert (result.ids.tolist(), result.labels.tolist()) == (ids, expected), name
        result.summary()
    except LabelmendError:
        return
    finally:
        shutil.rmtree(run)


def elsewhere(random: np.random.Generator, record: object) -> object:
    """The record with one value, anywhere, as something else."""
    if isinstance(record, dict | list) and record and random.random() < 0.8:
        keys = list(record) if isinstance(record, dict) else range(len(record))
        key = keys[int(random.integers(len(keys)))]
        copy = record.copy()
        copy[key] = elsewhere(random, record[key])
        return copy
    odd = (None, -1, 10**30, 0.5, "text", [], {}, [[]], {"a": 1}, True, math.nan)
    return odd[int(random.integers(len(odd)))]


def small_run(random: np.random.Generator, folder: Path) -> None:
    """Labels of odd values through a run: rows that are kept come back as they were given."""
    points, true = blobs(24)
    few = [VALUES[place] for place in random.choice(len(VALUES), size=3, replace=False)]
    given = odd_container(random, [few[code] for code in true])
    if given is None:
        return
    try:
        result = labelmend.correct(points, given, **as_arguments({**QUICK, "n_rounds": 1, "warmup_passes": 0}))
    except LabelmendError:
        return
    for old, new, status in zip(flat(given), flat(result.labels), result.status.tolist(), strict=True):
        assert status != "kept" or same(old, new), (old, new)
