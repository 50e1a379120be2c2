"""Probabilities of the user's own models: read, checked, and turned into scores for the pool.

    array            n x C, columns in the order of the sorted classes
    DataFrame        columns name the classes, in any order; a class no label names may have a column
    dict or list     several models' of these
    files            .npy, .npz, .csv and .parquet with the same; a column of ids puts rows into the order of the data

Every row must have been predicted by a model that was not fitted on its label (out of sample). That cannot be seen
from the numbers; `looks_in_sample` tells where they agree with the labels more than such numbers can.

Knows containers and class codes; does not know features or other evidence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelmend.errors import DataError
from labelmend.evidence.inputs import Codes, PredProbs
from labelmend.files.reading import open_npz, read_npy
from labelmend.inputs.containers import listed, objects, open_matrix
from labelmend.inputs.frames import read_frame
from labelmend.inputs.labels import factorize
from labelmend.inputs.tables import ENDINGS, INDEX_COLUMNS
from labelmend.labels import Labels

TOLERANCE = 1e-2  # of the sum of a row: rounded numbers are renormalised, others are no probabilities


def read_pred_probs(given: Any, labels: Labels) -> tuple[PredProbs, Labels]:
    """All models', checked; and the labels, whose classes may have become more: those that only a column names."""
    opened = [_open(name, values) for name, values in _models(given).items()]
    for one in opened:
        _check_shape(one, labels)
    wider = with_classes(labels, [_classes_of(one, labels) for one in opened if one.columns is not None])
    for one in opened:
        _check_numbers(one)
    models, named = {}, np.zeros(len(wider.classes), dtype=bool)
    for one in opened:
        places = _places(one, labels, wider)
        models[one.name] = np.zeros((len(one.values), len(named)), dtype=np.float32)
        models[one.name][:, places] = one.values / one.values.sum(axis=1, keepdims=True)
        named[places] = True
    return PredProbs(models, named), wider


@dataclass(frozen=True)
class _Opened:
    name: str
    values: NDArray[np.float64]
    columns: list[Any] | None  # None: in the order of the sorted classes


def _models(given: Any) -> dict[str, Any]:
    """name -> array or DataFrame. A list of rows is one model's."""
    if isinstance(given, Mapping):
        found = {str(name): values for name, values in given.items()}
    elif isinstance(given, list | tuple) and (not given or _depth(given[0]) == 2):
        found = {f"model {number}": values for number, values in enumerate(given, 1)}
    else:
        found = {"pred_probs": given}
    if not found:
        raise DataError("pred_probs must hold the probabilities of at least one model. Got none.")
    return found


def _depth(value: Any) -> int:
    """Of nested lists, tables among them."""
    if hasattr(value, "shape"):
        return len(value.shape)
    return 1 + _depth(value[0]) if isinstance(value, Sequence) and not isinstance(value, str) and len(value) else 0


def _open(name: str, values: Any) -> _Opened:
    columns = list(values.columns) if hasattr(values, "columns") else None
    try:
        array = np.asarray(open_matrix(values, name), dtype=np.float64)
    except (ValueError, TypeError) as error:
        raise DataError(f"{name} must hold probabilities, a number for every row and class. Got: {error}.") from error
    if array.ndim != 2:
        raise DataError(
            f"{name} must be two-dimensional, a row per sample and a column per class. "
            f"Got an array of shape {array.shape} instead."
        )
    if columns is not None and len(set(map(spelling, columns))) < len(columns):
        raise DataError(f"the columns of {name} must have different names, those of the classes.")
    return _Opened(name, array, columns)


def _check_shape(one: _Opened, labels: Labels) -> None:
    values, n, n_classes = one.values, len(labels.codes), len(labels.classes)
    if len(values) != n:
        raise DataError(
            f"{one.name} must have a row for each label, in the same order. Got {len(values):,} rows and {n:,} labels. "
            "Predict all rows, also those without a label."
        )
    if one.columns is None and values.shape[1] != n_classes:
        raise DataError(
            f"{one.name} must have a column for each of the {n_classes:,} classes that labels name, in sorted order. "
            f"Got {values.shape[1]:,} columns. Where there are more, name them: pandas.DataFrame(P, columns=classes)."
        )


def _check_numbers(one: _Opened) -> None:
    """Numbers that are no probabilities, and how to make them some."""
    values = one.values
    if len(rows := np.flatnonzero(~np.isfinite(values).all(axis=1))):
        raise DataError(
            f"{one.name} must be finite numbers. Got NaN or infinity in {len(rows):,} rows ({listed(rows)}). "
            "Rows that were in no fold need a prediction too; cross_val_predict gives one for every row."
        )
    if len(rows := np.flatnonzero((values < 0).any(axis=1))):
        raise DataError(
            f"{one.name} must not be negative. Got negative numbers in {len(rows):,} rows ({listed(rows)}). "
            "Logits become probabilities by a softmax: scipy.special.softmax(logits, axis=1)."
        )
    sums = values.sum(axis=1)
    if len(rows := np.flatnonzero(np.abs(sums - 1) > TOLERANCE)):
        raise DataError(
            f"every row of {one.name} must sum to 1. {len(rows):,} rows do not ({listed(rows)}); the first sums to "
            f"{sums[rows[0]]:.4g}. Leave out columns that are no class; scores of single classes become probabilities "
            "by P / P.sum(axis=1, keepdims=True)."
        )


def _classes_of(one: _Opened, labels: Labels) -> list[Any]:
    """The columns as the labels spell their classes: a column "3" is the class 3. Every class must have one."""
    assert one.columns is not None
    spelled = {spelling(value): value for value in labels.classes.tolist()}
    found = {spelling(column) for column in one.columns}
    if absent := [name for name in spelled if name not in found]:
        raise DataError(
            f"{one.name} must have a column for every class. There is none for {listed(absent)}; its columns are "
            f"{listed(one.columns)}. Name them after the labels."
        )
    return [spelled[text] if (text := spelling(c)) in spelled else _as_class(one, c, labels) for c in one.columns]


def spelling(value: Any) -> str:
    """Classes and columns are the same where they read the same: "3", 3 and 3.0."""
    return str(value).removesuffix(".0") if isinstance(value, float) else str(value)


def _as_class(one: _Opened, column: Any, labels: Labels) -> Any:
    """A class that no label names, of the type of the others."""
    known = labels.classes.tolist()
    if all(isinstance(value, str) for value in known):
        return str(column)
    if labels.classes.dtype == object:
        return column
    try:
        value = labels.classes.dtype.type(column).item()
        if labels.classes.dtype.kind in "iuf" and spelling(value) == spelling(column):
            return value
    except (ValueError, TypeError, OverflowError):
        pass
    raise DataError(
        f"every column of {one.name} must be a class. {column!r} is none: the labels are numbers "
        f"({listed(labels.classes)}). Leave the column out."
    )


def with_classes(labels: Labels, columns: list[list[Any]]) -> Labels:
    """The labels with more classes, sorted anew; codes follow."""
    known = labels.classes.tolist()
    more = list(dict.fromkeys(value for names in columns for value in names if value not in known))
    if not more:
        return labels
    every = known + more
    plain = labels.classes.dtype != object
    classes, codes = factorize(np.array(every) if plain else objects(every))
    place = np.asarray(codes[: len(known)], dtype=np.int64)
    annotations = labels.annotations
    if annotations is not None:
        annotations = replace(annotations, label=place[annotations.label])
    moved = np.where(labels.codes >= 0, place[np.maximum(labels.codes, 0)], labels.codes)
    return replace(labels, codes=moved, classes=classes, annotations=annotations)


def _places(one: _Opened, labels: Labels, wider: Labels) -> Codes:
    """Of every column among the classes."""
    place = {spelling(value): code for code, value in enumerate(wider.classes.tolist())}
    named = labels.classes.tolist() if one.columns is None else one.columns
    return np.array([place[spelling(name)] for name in named], dtype=np.int64)


def read_prob_files(
    paths: Sequence[Path],
    id_column: str | None = None,
    ids: NDArray[Any] | None = None,
    not_classes: Sequence[str] = (),
) -> dict[str, Any]:
    """name -> array or table; an .npz holds one model's or several. `not_classes`: columns to leave out."""
    found: dict[str, Any] = {}
    for path in paths:
        for name, values in _read_file(path, id_column, ids, not_classes).items():
            if name in found:
                raise DataError(f"--pred-probs must name different models. {name!r} came twice; rename a file.")
            found[name] = values
    return found


def _read_file(
    path: Path, id_column: str | None, ids: NDArray[Any] | None, not_classes: Sequence[str]
) -> dict[str, Any]:
    import pandas

    kind = path.suffix.lower()
    if kind not in ENDINGS:
        raise DataError(f"a file of probabilities must end in {', '.join(ENDINGS)}. Got {path.name!r} instead.")
    if not path.is_file():
        raise DataError(f"no such file of probabilities: {path}")
    if kind in (".npy", ".npz"):
        return _arrays(path)
    frame = read_frame(path)
    taken = {*INDEX_COLUMNS, *not_classes, id_column}
    places = [place for place, name in enumerate(frame.columns) if name not in taken]
    names = [frame.columns[place] for place in places]
    values = np.empty((len(frame), len(names)))
    for column, place in enumerate(places):
        values[:, column] = _numbers(frame.column(place), names[column], path)
    if id_column in frame.columns and ids is not None:
        values = values[_order(frame.column(frame.columns.index(id_column)), ids, path)]
    return {path.stem: pandas.DataFrame(values, columns=names)}


def _arrays(path: Path) -> dict[str, NDArray[Any]]:
    if path.suffix.lower() == ".npy":
        return {path.stem: read_npy(path)}
    with open_npz(path) as archive:
        found = {name: archive[name] for name in archive.files}
    tables = {name: array for name, array in found.items() if array.ndim == 2}
    if not tables:
        raise DataError(f"{path} must hold a two-dimensional array of probabilities. It holds {', '.join(found)}.")
    return {path.stem: next(iter(tables.values()))} if len(tables) == 1 else tables


def _numbers(cells: Sequence[Any], name: str, path: Path) -> NDArray[np.float64]:
    try:
        return np.array([np.nan if cell in (None, "") else cell for cell in cells], dtype=np.float64)
    except (ValueError, TypeError):
        raise DataError(
            f"every column of {path} must be a class and hold probabilities. {name!r} holds something else; name the "
            "column of ids with --id, or leave it out."
        ) from None


def _order(found: Sequence[Any], ids: NDArray[Any], path: Path) -> NDArray[np.int64]:
    """Rows of the file in the order of the data."""
    place = {str(name): row for row, name in enumerate(found)}
    if absent := [name for name in ids.tolist() if str(name) not in place]:
        raise DataError(f"{path} must have a row for every id. {len(absent):,} have none, such as {absent[0]!r}.")
    if len(place) < len(found):
        raise DataError(f"ids in {path} must be unique. Got {len(found) - len(place):,} repeated ones.")
    return np.array([place[str(name)] for name in ids.tolist()], dtype=np.int64)
