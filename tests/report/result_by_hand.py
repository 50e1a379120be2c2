"""A result small enough to count on one's fingers, and one of any size."""

import dataclasses

import numpy as np
import scipy.sparse
from PIL import Image

from labelmend.config import RunConfig
from labelmend.diagnosis.projection import SampleMap
from labelmend.ensemble.records import CorrectionRecord, RoundRecord
from labelmend.labels import Labels
from labelmend.report.contents import make_contents
from labelmend.report.write import page
from labelmend.result import STATUS_TYPE, Correction, Source
from labelmend.storage.originals import Originals

CLASSES = ("cat", "dog", "owl")
# sample         0       1            2            3         4         5            6         7
GIVEN = [0, 0, 0, 1, 1, 2, -1, 1]
CORRECTED = [0, 1, 1, 1, 2, 2, 2, 0]
STATUS = ["kept", "corrected", "corrected", "kept", "review", "kept", "filled", "review"]
CONFIDENCE = [0.9, 0.95, 0.99, 1.0, 0.6, 0.8, 0.7, 0.5]
CERTAINTY = [1.0, 0.5, 0.5, 1.0, 0.2, 0.9, 0.4, 0.1]
VOTES = [
    [1, 0, 0],
    [0.2, 0.8, 0],
    [0, 1, 0],
    [0, 1, 0],
    [0.3, 0.3, 0.4],
    [0, 0.1, 0.9],
    [0.25, 0.25, 0.5],
    [0.34, 0.33, 0.33],
]
NEIGHBORS = [[1, 2], [2, 3], [1, 3], [1, 2], [0, 5], [4, 6], [4, 5], [0, 4]]
TRANSITION = [[0.8, 0.2, 0.0], [0.4, 0.6, 0.0], [0.0, 0.5, 0.5]]


def labels(codes, classes):
    return Labels(np.asarray(codes, dtype=np.int64), classes, lambda values: values)


def as_classes(names):
    out = np.empty(len(names), dtype=object)
    out[:] = names
    return out


def round_record(index, changes=5, similarity=(0.5, 0.7), seconds=None):
    correction = None
    if similarity is not None:
        correction = CorrectionRecord(0.1, list(similarity), 0.9, [4, 4], 3, 1e-4, True)
    return RoundRecord(
        index, 3, changes, 4, 0.6, [0] * 19 + [8], correction, 0.2, None, seconds or {"graphs": 1.0, "vote": 0.5}
    )


def result(names=CLASSES, **changes):
    classes = as_classes(names)
    made = Correction(
        labels=classes[CORRECTED],
        status=np.array(STATUS, dtype=STATUS_TYPE),
        confidence=np.array(CONFIDENCE, dtype=np.float32),
        certainty=np.array(CERTAINTY, dtype=np.float32),
        runner_up=classes[[1, 0, 0, 0, 1, 0, 0, 1]],
        noise_rate=0.25,
        transition=np.array(TRANSITION),
        votes=scipy.sparse.csr_matrix(np.array(VOTES)),
        classes=classes,
        model=None,
        history=[round_record(1), round_record(2, 1, None), round_record(3, 0, (0.9, 0.7))],
        config=RunConfig(seed=7),
        given=labels(GIVEN, classes),
        corrected_codes=np.array(CORRECTED),
        ids=np.array([f"id-{i}" for i in range(8)]),
        neighbors=np.array(NEIGHBORS, dtype=np.int32),
        fingerprint="abc",
        seconds=6.0,
        map=SampleMap(np.arange(8), np.linspace(0, 1, 16, dtype=np.float32).reshape(8, 2)),
        versions={"labelmend": "9.9", "torch": "1.2"},
        repeat="labelmend correct table.csv --labels y --out run",
        source=Source("table", "/data/table.csv", labels="y", id="name"),
    )
    return dataclasses.replace(made, **changes)


def large_result(n, n_classes, n_points, seed=0):
    random = np.random.default_rng(seed)
    classes = np.array([f"species of the long name number {i:04d}" for i in range(n_classes)])
    given = random.integers(n_classes, size=n)
    corrected = np.where(random.random(n) < 0.8, given, random.integers(n_classes, size=n))
    status = np.where(corrected == given, "kept", np.where(random.random(n) < 0.5, "corrected", "review"))
    shares = scipy.sparse.csr_matrix((np.ones(n), corrected, np.arange(n + 1)), shape=(n, n_classes))
    transition = 0.8 * np.eye(n_classes) + 0.2 / n_classes
    chosen = np.sort(random.permutation(n)[:n_points])
    return result(
        labels=classes[corrected],
        status=status.astype(STATUS_TYPE),
        confidence=random.random(n, dtype=np.float32),
        certainty=random.random(n, dtype=np.float32),
        runner_up=classes[given],
        transition=transition,
        votes=shares,
        classes=classes,
        given=labels(given, classes),
        corrected_codes=corrected,
        ids=np.array([f"a folder/with another one/and a name that is long/picture-{i:06d}.jpeg" for i in range(n)]),
        neighbors=random.integers(n, size=(n, 10), dtype=np.int32),
        map=SampleMap(chosen, random.random((n_points, 2), dtype=np.float32)),
    )


def report(originals=None, **changes):
    """The page about the result with those changes."""
    return page(make_contents(result(**changes), originals or Originals("they moved")))


class Painted(Originals):
    """Pictures of noise, which no format makes small; every fifth cannot be read."""

    kind = "pictures"

    def __init__(self, side=128):
        super().__init__()
        self.noise = np.random.default_rng(0).integers(256, size=(side + 64, side, 3), dtype=np.uint8)
        self.side = side

    def picture(self, index, side=None):
        if index % 5 == 4:
            return None
        return Image.fromarray(self.noise[index % 64 : index % 64 + self.side])


class Rows(Originals):
    kind = "rows"

    def __init__(self, columns=("name", "width", "height", "y")):
        super().__init__()
        self.columns = columns

    def row(self, index):
        return [(column, f"{column}{index}") for column in self.columns]
