"""Who said what: labels of several people, or the name of who gave each label, validated once.

    who      one name per sample, beside one label per sample
    table    a row per sample, a column per annotator, holes where someone said nothing: a pandas or polars DataFrame,
             a dict of columns, a two-dimensional array or nested lists (annotators are then numbered from 1)

Knows containers, names and class codes; does not know who is right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelmend.errors import DataError
from labelmend.inputs.labels import as_opened, equal_to, factorize, objects, refuse_continuous, tensor_as_array
from labelmend.labels import Annotations, Labels

MOST_ENTRIES = 2**26  # of all confusion matrices together: half a GiB


def is_table(annotators: Any) -> bool:
    """Whether it holds labels, a column for each annotator, and not one name per sample."""
    if isinstance(annotators, Mapping) or hasattr(annotators, "columns"):
        return True
    shape = getattr(annotators, "shape", None)
    if shape is not None:
        return len(shape) == 2
    return isinstance(annotators, Sequence) and any(isinstance(row, list | tuple | np.ndarray) for row in annotators)


def annotations_by_name(annotators: Any, labels: Labels) -> Annotations:
    """One name per sample: who gave its label."""
    values, absent = as_opened(annotators, "annotators")
    if values.shape != (len(labels.codes),):
        raise DataError(
            f"annotators must be one name per sample ({len(labels.codes)}), or a table with a row for each. "
            f"Got {type(annotators).__name__} of shape {values.shape} instead."
        )
    spoken = np.flatnonzero(labels.codes >= 0)
    texts = np.array(["" if gone else str(value) for value, gone in zip(values, absent, strict=True)], dtype=np.str_)
    if len(nameless := spoken[texts[spoken] == ""]):
        raise DataError(
            f"annotators must name who gave every label. Sample {nameless[0]} has a label and no name "
            f"({len(nameless)} in all); name them, an unknown one as 'unknown' for example."
        )
    names, annotator = np.unique(texts[spoken], return_inverse=True)
    return _checked(Annotations(names, spoken, annotator, labels.codes[spoken]), len(labels.classes))


def read_table(table: Any, missing: Any = None) -> tuple[list[str], list[NDArray[Any]], list[NDArray[np.bool_]]]:
    """Names of the annotators, and for each the labels of all samples and where there is none."""
    columns = _columns(table)
    names = [str(name) for name in columns]
    if len(names) < 1 or len(set(names)) < len(names):
        raise DataError(f"annotators must have different names. Got {', '.join(names) or 'none at all'} instead.")
    values, absent = [], []
    for name, column in columns.items():
        found, gone = as_opened(column, f"labels of the annotator {name}")
        if found.ndim != 1:
            raise DataError(f"labels of the annotator {name} must be one per sample. Got shape {found.shape} instead.")
        if missing is not None:
            gone = gone | equal_to(missing, found)
        values.append(_whole(found, gone))
        absent.append(gone)
    lengths = {len(column) for column in values}
    if len(lengths) != 1:
        raise DataError(f"every annotator must have a place for every sample. Got columns of {sorted(lengths)} rows.")
    return names, values, absent


def classes_of(values: Sequence[NDArray[Any]], absent: Sequence[NDArray[np.bool_]]) -> NDArray[Any]:
    """All classes that anybody named, in order."""
    present = [column[~gone] for column, gone in zip(values, absent, strict=True)]
    together = objects([value for column in present for value in column.tolist()])
    refuse_continuous(together)
    return factorize(together)[0]


def annotations_of(
    names: list[str], values: Sequence[NDArray[Any]], absent: Sequence[NDArray[np.bool_]], classes: NDArray[Any]
) -> Annotations:
    """Everybody's labels as class codes."""
    place = {value: code for code, value in enumerate(classes.tolist())}
    codes = np.full((len(values[0]), len(names)), -1, dtype=np.int64)
    for number, (column, gone) in enumerate(zip(values, absent, strict=True)):
        for row in np.flatnonzero(~gone).tolist():
            value = column[row].item() if isinstance(column[row], np.generic) else column[row]
            if value not in place:
                raise DataError(
                    f"annotators must name classes that y has. {names[number]} says {value!r} of sample {row}, which "
                    "is no class of y; correct it, or leave y out: then all that anybody says is a class."
                )
            codes[row, number] = place[value]
    sample, annotator = np.nonzero(codes >= 0)
    return _checked(
        Annotations(np.array(names, dtype=np.str_), sample, annotator, codes[sample, annotator]), len(place)
    )


def labels_by_annotator(samples: Any, annotators: Any, labels: Any, *, ids: Any) -> dict[str, NDArray[Any]]:
    """Triples (sample, annotator, label) as the table that `correct(X, annotators=...)` takes.

    ids: the samples in the order of X, named as in the triples; a number n means that they are 0, 1, ..., n - 1.
    Samples that nobody labelled stay empty. Whoever labels a sample twice must say the same.
    """
    order = list(range(ids)) if isinstance(ids, int) else _list(ids)
    triples = [_list(part) for part in (samples, annotators, labels)]
    if len({len(part) for part in triples}) != 1:
        raise DataError(f"triples must be as many samples as annotators and labels. Got {[len(p) for p in triples]}.")
    place = {name: row for row, name in enumerate(order)}
    table: dict[str, NDArray[Any]] = {}
    for sample, who, label in zip(*triples, strict=True):
        if sample not in place:
            raise DataError(f"samples of the triples must be among ids. {sample!r} is not; check ids=.")
        column = table.setdefault(str(who), np.full(len(order), None, dtype=object))
        if column[place[sample]] not in (None, label):
            raise DataError(
                f"an annotator must give a sample one label. {who} says {column[place[sample]]!r} and {label!r} of "
                f"{sample!r}; keep one of them."
            )
        column[place[sample]] = label
    return {name: table[name] for name in sorted(table)}


def _columns(table: Any) -> dict[Any, Any]:
    if isinstance(table, Mapping):
        return dict(table)
    if type(table).__module__.split(".")[0] == "pandas":
        return {name: table.iloc[:, place] for place, name in enumerate(_unlike(list(table.columns)))}
    if hasattr(table, "columns"):  # polars
        return {name: table[name] for name in table.columns}
    if not hasattr(table, "shape"):
        widths = {len(row) for row in table}
        if len(widths) != 1:
            raise DataError(f"rows of annotators must be equally long. Got lengths {sorted(widths)} instead.")
        return {number + 1: [row[number] for row in table] for number in range(widths.pop())}
    if isinstance(table, np.ma.MaskedArray):
        array: Any = table  # a column of it still is one: what is masked was not said
    else:
        of_torch = type(table).__module__.split(".")[0] == "torch"
        array = tensor_as_array(table, "annotators") if of_torch else np.asarray(table)
    return {number + 1: array[:, number] for number in range(array.shape[1])}


def _unlike(names: list[Any]) -> list[Any]:
    if len(set(names)) < len(names):
        raise DataError(f"annotators must have different names. Got {', '.join(map(str, names))} instead.")
    return names


def _whole(values: NDArray[Any], absent: NDArray[np.bool_]) -> NDArray[Any]:
    """Whole numbers that are floats only because NaN stands where there is none, as whole numbers."""
    present = values[~absent]
    floats = all(isinstance(value, float | np.floating) and float(value).is_integer() for value in present)
    if not len(present) or not floats:
        return values
    out = np.full(len(values), None, dtype=object)
    out[~absent] = [int(value) for value in present]
    return out


def _checked(found: Annotations, n_classes: int) -> Annotations:
    if len(found.sample) == 0:
        raise DataError("annotators must have given labels. Got none instead.")
    if (entries := len(found.names) * n_classes**2) > MOST_ENTRIES:
        raise DataError(
            f"annotators times classes squared must be at most {MOST_ENTRIES:,}. Got {len(found.names):,} annotators "
            f"and {n_classes:,} classes ({entries:,}); give those with few labels one name."
        )
    return found


def _list(values: Any) -> list[Any]:
    return list(values.tolist() if hasattr(values, "tolist") else values)
