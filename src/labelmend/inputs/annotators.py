"""Who gave which label: read from what users have, and the consensus that a run begins with.

    names    one annotator per sample, beside one label per sample
    table    a row per sample, a column per annotator, holes where someone gave no label: a pandas or polars DataFrame,
             a dict of columns, a two-dimensional array or nested lists (annotators are then numbered from 1)

Knows containers, names and class codes; `decision/annotators.py` knows who is how reliable.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from labelmend.decision.annotators import consensus
from labelmend.ensemble.state import Opinions
from labelmend.errors import DataError
from labelmend.inputs.containers import (
    Restore,
    columns_of,
    is_table,
    library_of,
    objects,
    open_values,
    tensor_as_array,
    to_pandas,
    to_polars,
)
from labelmend.inputs.labels import equal_to, factorize, read_labels, refuse_continuous
from labelmend.labels import MISSING, Annotations, Labels

MOST_ENTRIES = 2**26  # of all confusion matrices together: half a GiB


def read_annotated(y: Any, annotators: Any, missing: Any = None) -> Labels:
    """The labels `y`, or none where y is None, with who gave which."""
    if not is_table(annotators):
        if y is None:
            raise DataError(
                "annotators must come with the labels they gave: one name per sample and y, or a table of labels with "
                "a column for each annotator. Got names without y instead."
            )
        labels = read_labels(y, missing)
        return replace(labels, annotations=annotations_by_name(annotators, labels))
    table = read_table(annotators, missing)
    n = len(table.values[0])
    if y is None:
        labels = Labels(np.full(n, MISSING), table.classes(), _restore(annotators))
    else:
        labels = read_labels(y, missing)
    if len(labels.codes) != n:
        raise DataError(
            f"y and annotators must have the same length. Got {len(labels.codes)} labels and a table of {n} rows "
            "instead."
        )
    return replace(labels, annotations=table.annotations(labels.classes))


@dataclass(frozen=True)
class LabelTable:
    """For each annotator the labels of all samples, and where there is none."""

    names: list[str]
    values: list[NDArray[Any]]
    absent: list[NDArray[np.bool_]]

    def classes(self) -> NDArray[Any]:
        """All classes that anybody named, in order."""
        present = [column[~gone] for column, gone in zip(self.values, self.absent, strict=True)]
        together = objects([value for column in present for value in column.tolist()])
        refuse_continuous(together)
        return factorize(together)[0]

    def annotations(self, classes: NDArray[Any]) -> Annotations:
        """Everybody's labels as class codes."""
        place = {value: code for code, value in enumerate(classes.tolist())}
        codes = np.full((len(self.values[0]), len(self.names)), -1, dtype=np.int64)
        for number, (column, gone) in enumerate(zip(self.values, self.absent, strict=True)):
            for row in np.flatnonzero(~gone).tolist():
                value = column[row].item() if isinstance(column[row], np.generic) else column[row]
                if value not in place:
                    raise DataError(
                        f"annotators must name classes that y has. {self.names[number]} gave {value!r} to sample "
                        f"{row}, which is no class of y; correct it, or leave y out: then every label is a class."
                    )
                codes[row, number] = place[value]
        sample, annotator = np.nonzero(codes >= 0)
        names = np.array(self.names, dtype=np.str_)
        return _checked(Annotations(names, sample, annotator, codes[sample, annotator]), len(place))


def read_table(table: Any, missing: Any = None) -> LabelTable:
    columns = _columns(table)
    names = [str(name) for name, _ in columns]
    if len(names) < 1 or len(set(names)) < len(names):
        raise DataError(f"annotators must have different names. Got {', '.join(names) or 'none at all'} instead.")
    values, absent = [], []
    for name, (_, column) in zip(names, columns, strict=True):
        found, gone, _ = open_values(column, f"labels of the annotator {name}")
        if found.ndim != 1:
            raise DataError(f"labels of the annotator {name} must be one per sample. Got shape {found.shape} instead.")
        if missing is not None:
            gone = gone | equal_to(missing, found)
        values.append(_whole(found, gone))
        absent.append(gone)
    lengths = {len(column) for column in values}
    if len(lengths) != 1:
        raise DataError(f"every annotator must have a place for every sample. Got columns of {sorted(lengths)} rows.")
    return LabelTable(names, values, absent)


def labels_by_annotator(samples: Any, annotators: Any, labels: Any, *, ids: Any) -> dict[str, NDArray[Any]]:
    """Triples (sample, annotator, label) as the table that `correct(X, annotators=...)` takes.

    ids: the samples in the order of X, named as in the triples; a number n means that they are 0, 1, ..., n - 1.
    Samples that nobody labelled stay empty. Whoever labels a sample twice must give it the same label.
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
                f"an annotator must give a sample one label. {who} gave {column[place[sample]]!r} and {label!r} to "
                f"{sample!r}; keep one of them."
            )
        column[place[sample]] = label
    return {name: table[name] for name in sorted(table)}


def settled(labels: Labels) -> Labels:
    """A sample without a label of its own has that of its annotators if they agree: a mark of trust can mean that."""
    if labels.annotations is None:
        return labels
    agreed = unanimous(labels.annotations, len(labels.codes))
    return replace(labels, codes=np.where(labels.codes >= 0, labels.codes, agreed))


def with_consensus(labels: Labels, trusted: NDArray[np.bool_]) -> Labels:
    """The labels with the consensus of their annotators, which is the label of samples that have none yet.

    Annotators are weighted by their reliability.
    """
    given = labels.annotations
    if given is None:
        return labels
    codes = settled(labels).codes
    opinions = opinions_of(given, codes, torch.device("cpu"))
    shares = consensus(opinions, len(labels.classes), torch.from_numpy(codes), torch.from_numpy(trusted))
    certainty, best = (part.numpy() for part in shares.max(dim=1))
    agreed = np.where(certainty > 0, best, MISSING)
    given = replace(given, consensus=agreed, certainty=certainty.astype(np.float32))
    in_use = np.where(labels.codes >= 0, labels.codes, np.where(trusted, codes, agreed))
    return replace(labels, codes=in_use, annotations=given)


def unanimous(given: Annotations, n: int) -> NDArray[np.int64]:
    """The label that all annotators of a sample gave; -1 where they differ, or nobody gave one."""
    least, most = np.full(n, np.iinfo(np.int64).max), np.full(n, MISSING)
    np.minimum.at(least, given.sample, given.label)
    np.maximum.at(most, given.sample, given.label)
    return np.where(least == most, most, MISSING)


def opinions_of(given: Annotations, in_use: NDArray[np.int64], device: torch.device) -> Opinions:
    parts = (given.sample, given.annotator, given.label, in_use)
    sample, annotator, label, used = (torch.from_numpy(part).to(device) for part in parts)
    return Opinions(sample, annotator, label, len(given.names), used)


def annotations_by_name(annotators: Any, labels: Labels) -> Annotations:
    """One name per sample: who gave its label."""
    values, absent, _ = open_values(annotators, "annotators")
    if values.shape != (len(labels.codes),):
        raise DataError(
            f"annotators must be one name per sample ({len(labels.codes)}), or a table with a row for each. "
            f"Got {type(annotators).__name__} of shape {values.shape} instead."
        )
    labelled = np.flatnonzero(labels.codes >= 0)
    texts = np.array(["" if gone else str(value) for value, gone in zip(values, absent, strict=True)], dtype=np.str_)
    if len(nameless := labelled[texts[labelled] == ""]):
        raise DataError(
            f"annotators must name who gave every label. Sample {nameless[0]} has a label and no name "
            f"({len(nameless)} in all); name them, an unknown one as 'unknown' for example."
        )
    names, annotator = np.unique(texts[labelled], return_inverse=True)
    return _checked(Annotations(names, labelled, annotator, labels.codes[labelled]), len(labels.classes))


def _columns(table: Any) -> list[tuple[Any, Any]]:
    if isinstance(table, Mapping):
        return list(table.items())
    if hasattr(table, "columns"):
        return columns_of(table)
    if not hasattr(table, "shape"):
        widths = {len(row) for row in table}
        if len(widths) != 1:
            raise DataError(f"rows of annotators must be equally long. Got lengths {sorted(widths)} instead.")
        return [(number + 1, [row[number] for row in table]) for number in range(widths.pop())]
    array: Any = tensor_as_array(table, "annotators") if library_of(table) == "torch" else np.asanyarray(table)
    return [(number + 1, array[:, number]) for number in range(array.shape[1])]  # of a masked array with its mask


def _restore(table: Any) -> Restore:
    """What the consensus comes in: a Series for a DataFrame, else an array."""
    library = library_of(table)
    if library == "pandas":
        return partial(to_pandas, "Series", {"index": table.index})
    return partial(to_polars, None, "label") if library == "polars" else np.asarray


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
