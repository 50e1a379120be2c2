"""`result.annotators`: how good everyone is who gave labels, as far as the run can tell. No true label is known.

Knows numpy arrays; how the numbers were found is `annotators.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from labelmend.diagnosis.reliability import LEVEL
from labelmend.labels import Annotations

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Confusion:
    """An annotator gives one class where the sample is another."""

    annotator: str
    true: int  # positions among the classes
    said: int  # the class given
    share: float  # estimated, of the samples of the true class
    count: float  # estimated, of this annotator's labels


@dataclass(frozen=True)
class Annotators:
    """Arrays run along the annotators, but for the last two, which run along the samples."""

    names: NDArray[np.str_]
    n_labels: NDArray[np.int64]
    accuracy: FloatArray  # estimated share of right labels, held by the common one where there are few labels
    low: FloatArray  # from here ...
    high: FloatArray  # ... to here with 90 % probability
    agreement: FloatArray  # share of the labels that are the consensus; NaN: of none
    confusion: FloatArray  # (annotators, C, C) P(given | true), in the order of the classes
    expected: FloatArray  # (annotators, C) how many of their samples belong to each class
    consensus: NDArray[np.int64]  # class of each sample by all their labels, and by nothing else; -1: without any
    consensus_certainty: NDArray[np.float32]  # its probability

    def __len__(self) -> int:
        return len(self.names)

    def worst_first(self) -> NDArray[np.intp]:
        return np.argsort(self.accuracy, kind="stable")

    def worst_confusions(self, n: int = 10) -> list[Confusion]:
        """Those that make most wrong labels, all annotators together."""
        counts = self.confusion * self.expected[:, :, None]
        counts[:, np.arange(counts.shape[1]), np.arange(counts.shape[1])] = 0
        flat = counts.ravel()
        some = np.argpartition(-flat, min(n, len(flat) - 1))[:n]
        places = some[np.argsort(-flat[some], kind="stable")]
        return [self._confusion(*np.unravel_index(place, counts.shape)) for place in places if flat[place] >= 0.5]

    def worst_of(self, annotator: int) -> Confusion | None:
        """What this one confuses most often; None: nothing that would make a single label."""
        counts = self.confusion[annotator] * self.expected[annotator][:, None]
        np.fill_diagonal(counts, 0)
        true, given = np.unravel_index(int(counts.argmax()), counts.shape)
        return self._confusion(annotator, true, given) if counts[true, given] >= 0.5 else None

    def summary(self, classes: NDArray[Any]) -> list[dict[str, Any]]:
        """Ready for JSON, worst first."""
        return [self._record(place, classes) for place in self.worst_first().tolist()]

    def _record(self, place: int, classes: NDArray[Any]) -> dict[str, Any]:
        def rounded(value: Any) -> float:
            return round(float(value), 4)

        worst = self.worst_of(place)
        return {
            "name": str(self.names[place]),
            "labels": int(self.n_labels[place]),
            "accuracy": rounded(self.accuracy[place]),
            "low": rounded(self.low[place]),
            "high": rounded(self.high[place]),
            "agreement": rounded(self.agreement[place]) if self.n_labels[place] else None,
            "worst_confusion": worst
            and {"true": str(classes[worst.true]), "said": str(classes[worst.said]), "share": rounded(worst.share)},
        }

    def _confusion(self, annotator: Any, true: Any, given: Any) -> Confusion:
        share = float(self.confusion[annotator, true, given])
        count = share * float(self.expected[annotator, true])
        return Confusion(str(self.names[annotator]), int(true), int(given), share, count)


def describe(
    annotations: Annotations,
    rows: NDArray[np.int64],
    probabilities: NDArray[np.floating[Any]],
    confusion: FloatArray,
    prior: float,
) -> Annotators:
    """`rows` are the samples that the run held, `probabilities` its posterior about them; see `accuracies`."""
    assert annotations.consensus is not None
    assert annotations.certainty is not None
    used = annotations.of_rows(rows)
    assert used.consensus is not None
    n, n_classes = len(annotations.names), probabilities.shape[1]
    right = probabilities[used.sample, used.label].astype(np.float64)
    labels = np.bincount(used.annotator, minlength=n)
    expected = np.zeros((n, n_classes))
    np.add.at(expected, used.annotator, probabilities[used.sample])
    agree = np.bincount(used.annotator, used.label == used.consensus[used.sample], minlength=n)
    accuracy, low, high = accuracies(used.annotator, right, n, prior)
    return Annotators(
        names=annotations.names,
        n_labels=labels,
        accuracy=accuracy,
        low=low,
        high=high,
        agreement=np.divide(agree, labels, out=np.full(n, np.nan), where=labels > 0),
        confusion=confusion,
        expected=expected,
        consensus=annotations.consensus,
        consensus_certainty=annotations.certainty,
    )


def accuracies(
    annotator: NDArray[np.int64], right: FloatArray, n: int, prior: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(accuracy, low, high) of each of n annotators, from the probabilities that their labels are right.

    A Beta distribution: the labels that are expected to be right and wrong, held by `prior` labels of the common
    accuracy. Not to know which labels are right adds its variance: as many labels less count.
    """
    labels = np.bincount(annotator, minlength=n).astype(np.float64)
    hits, doubt = np.bincount(annotator, right, n), np.bincount(annotator, right * (1 - right), n)
    common = right.mean()
    weight = labels + prior
    mean = np.clip((hits + prior * common) / weight, 1e-6, 1 - 1e-6)
    spread = mean * (1 - mean)
    weight = spread / (spread / weight + doubt / weight**2)
    tail = (1 - LEVEL) / 2
    a, b = mean * weight, (1 - mean) * weight
    return mean, betaincinv(a, b, tail), betaincinv(a, b, 1 - tail)
