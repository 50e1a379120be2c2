"""From what people said to the labels a run begins with: their consensus, weighted by how good each of them is.

Knows records of labels and calls the numerics of `annotators.py`; does not know the samples.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from labelmend.decision.annotators import consensus
from labelmend.ensemble.state import Opinions
from labelmend.errors import DataError
from labelmend.inputs.annotations import annotations_by_name, annotations_of, classes_of, is_table, read_table
from labelmend.inputs.labels import read_labels
from labelmend.labels import MISSING, Annotations, Labels


def read_annotated(y: Any, annotators: Any, missing: Any = None) -> Labels:
    """The labels `y`, or none where y is None, with who said what."""
    if not is_table(annotators):
        if y is None:
            raise DataError(
                "annotators must come with the labels they gave: one name per sample and y, or a table of labels with "
                "a column for each annotator. Got names without y instead."
            )
        labels = read_labels(y, missing)
        return replace(labels, annotations=annotations_by_name(annotators, labels))
    names, values, absent = read_table(annotators, missing)
    if y is None:
        labels = Labels(np.full(len(values[0]), MISSING), classes_of(values, absent), _container(annotators))
    else:
        labels = read_labels(y, missing)
    if len(labels.codes) != len(values[0]):
        raise DataError(
            f"y and annotators must have the same length. Got {len(labels.codes)} labels and a table of "
            f"{len(values[0])} rows instead."
        )
    return replace(labels, annotations=annotations_of(names, values, absent, labels.classes))


def settled(labels: Labels) -> Labels:
    """A sample without a label of its own has that of its annotators if they agree: a mark of trust can mean that."""
    if labels.annotations is None:
        return labels
    agreed = unanimous(labels.annotations, len(labels.codes))
    return replace(labels, codes=np.where(labels.codes >= 0, labels.codes, agreed))


def with_consensus(labels: Labels, trusted: NDArray[np.bool_]) -> Labels:
    """The labels with the consensus of their annotators, which is the label of samples that have none yet."""
    said = labels.annotations
    if said is None:
        return labels
    codes = settled(labels).codes
    opinions = _opinions(said, codes, torch.device("cpu"))
    shares = consensus(opinions, len(labels.classes), torch.from_numpy(codes), torch.from_numpy(trusted))
    certainty, best = (part.numpy() for part in shares.max(dim=1))
    agreed = np.where(certainty > 0, best, MISSING)
    said = replace(said, consensus=agreed, certainty=certainty.astype(np.float32))
    in_use = np.where(labels.codes >= 0, labels.codes, np.where(trusted, codes, agreed))
    return replace(labels, codes=in_use, annotations=said)


def opinions_of(labels: Labels, device: torch.device) -> Opinions | None:
    """Who said what, on a device; None where that is not known."""
    return None if labels.annotations is None else _opinions(labels.annotations, labels.codes, device)


def unanimous(said: Annotations, n: int) -> NDArray[np.int64]:
    """The label that all annotators of a sample gave; -1 where they differ, or nobody said anything."""
    least, most = np.full(n, np.iinfo(np.int64).max), np.full(n, MISSING)
    np.minimum.at(least, said.sample, said.label)
    np.maximum.at(most, said.sample, said.label)
    return np.where(least == most, most, MISSING)


def _opinions(said: Annotations, in_use: NDArray[np.int64], device: torch.device) -> Opinions:
    parts = (said.sample, said.annotator, said.label, in_use)
    sample, annotator, label, used = (torch.from_numpy(part).to(device) for part in parts)
    return Opinions(sample, annotator, label, len(said.names), used)


def _container(table: Any) -> Any:
    """What the consensus comes in: a Series for a DataFrame, else an array."""
    module = type(table).__module__.split(".")[0]
    if module == "pandas":
        return partial(_to_pandas, table.index)
    return _to_polars if module == "polars" else _to_array


def _to_pandas(index: Any, values: NDArray[Any]) -> Any:
    import pandas

    return pandas.Series(values, index=index)


def _to_polars(values: NDArray[Any]) -> Any:
    import polars

    return polars.Series("label", values.tolist())


def _to_array(values: NDArray[Any]) -> NDArray[Any]:
    return values
