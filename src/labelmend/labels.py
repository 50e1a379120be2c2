"""Labels as class codes, with the way back to the container they came in; and who gave which, where that is known.

Knows no container and no file: `inputs/labels.py` and `inputs/annotators.py` read them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
AnnotatorColumns = str | tuple[str, ...] | None  # the column that says who gave the label, or a column for each

MISSING = -1


@dataclass(frozen=True)
class Labels:
    """Class codes (-1: no label), the classes they stand for, and the way back to the user's container."""

    codes: NDArray[np.int64]
    classes: NDArray[Any]
    restore: Callable[[NDArray[Any]], Any]  # values of every sample -> the container, dtype and index that came
    blank: Any = None  # what stood where a label is missing
    annotations: Annotations | None = None  # who said what, where that is known
    notes: tuple[str, ...] = ()  # what the user should know about the reading

    def values(self, codes: NDArray[np.integer], blank: Any = None) -> NDArray[Any]:
        """Class values for codes, `blank` where a code is missing."""
        if (codes >= 0).all():
            known: NDArray[Any] = self.classes[codes]
            return known
        out = np.full(len(codes), blank, dtype=object)
        out[codes >= 0] = self.classes[codes[codes >= 0]]
        return out

    def decode(self, codes: NDArray[np.integer]) -> Any:
        return self.restore(self.values(codes, self.blank))

    def of_rows(self, rows: NDArray[np.int64]) -> Labels:
        """Of some of the samples."""
        annotations = None if self.annotations is None else self.annotations.of_rows(rows)
        return replace(self, codes=self.codes[rows], annotations=annotations)


@dataclass(frozen=True)
class Annotations:
    """Entry i says that the annotator `names[annotator[i]]` gave `sample[i]` the class `label[i]`; by sample."""

    names: NDArray[np.str_]
    sample: IntArray
    annotator: IntArray
    label: IntArray
    consensus: IntArray | None = None  # class of every sample by these labels alone, see inputs/annotators.py; -1: none
    certainty: NDArray[np.float32] | None = None  # its probability

    def of_rows(self, rows: IntArray) -> Annotations:
        """Of some of the samples, which are numbered anew; everybody's name stays."""
        place = np.full(max(int(rows.max(initial=-1)), int(self.sample.max(initial=-1))) + 1, -1)
        place[rows] = np.arange(len(rows))
        kept = place[self.sample] >= 0
        order = np.argsort(place[self.sample[kept]], kind="stable")
        sample, annotator, label = (part[kept][order] for part in (self.sample, self.annotator, self.label))
        agreed = None if self.consensus is None else self.consensus[rows]
        certainty = None if self.certainty is None else self.certainty[rows]
        return Annotations(self.names, place[sample], annotator, label, agreed, certainty)

    def digest(self) -> str:
        """SHA-256: tells whether a run belongs to these labels of these people."""
        found = hashlib.sha256("\0".join(self.names.tolist()).encode("utf-8", "surrogatepass"))
        for part in (self.sample, self.annotator, self.label):
            found.update(np.ascontiguousarray(part, dtype=np.int64).data)
        return found.hexdigest()
