"""Eight samples to hand over: what was given, what became of it; and the files they came from."""

import csv
import dataclasses
from pathlib import Path

import numpy as np
import scipy.sparse
from PIL import Image

from labelmend.labels import Labels
from labelmend.storage.source import ARRAYS

GIVEN = ["ant", "bee", None, "ant", "cat", "ant", "bee", "cat"]
NEW = ["ant", "ant", "bee", "cat", "cat", "ant", "cat", "cat"]
STATUS = ["kept", "corrected", "filled", "review", "kept", "review", "reviewed", "kept"]
SURE = [0.99, 0.9, 0.8, 0.6, 0.95, 0.55, 1.0, 0.97]
CHANGED = [1, 2, 3, 6]
CLASSES = np.array(["ant", "bee", "cat"], dtype=object)


def codes(labels, classes):
    return np.array([-1 if label is None else list(classes).index(label) for label in labels], dtype=np.int64)


def result_of(template, source=ARRAYS, ids=None, given=GIVEN, new=NEW, status=STATUS, sure=SURE, classes=CLASSES):
    """`template`, a real result, as if it had been about these samples."""
    labels = Labels(codes(given, classes), classes, lambda values: values)
    n = len(given)
    return dataclasses.replace(
        template,
        labels=labels.decode(codes(new, classes)),
        status=np.array(status, dtype="<U10"),
        confidence=np.array(sure, dtype=np.float32),
        certainty=np.ones(n, dtype=np.float32),
        runner_up=np.array([classes[0]] * n, dtype=object),
        classes=classes,
        given=labels,
        corrected_codes=codes(new, classes),
        ids=np.arange(n) if ids is None else np.array(ids),
        model=dataclasses.replace(template.model, classes=classes),
        neighbors=np.full((n, 2), -1, dtype=np.int32),
        votes=scipy.sparse.csr_matrix(np.full((n, len(classes)), 0.25, dtype=np.float32)),
        transition=np.eye(len(classes)),
        map=None,
        source=source,
    )


def write_table(path="t.csv", given=GIVEN, separator=",", **columns):
    """A .csv with the columns x, kind and others."""
    columns = {"x": [0.5 * i for i in range(len(given))], "kind": ["" if g is None else g for g in given], **columns}
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=separator)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return Path(path)


def read_table(path, separator=","):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter=separator))


def pixels(index):
    return np.random.default_rng(index).integers(0, 255, (6, 9, 3), dtype=np.uint8)


def write_pictures(folder="photos", given=GIVEN):
    """Class folders, and the names of the pictures; one without a label lies in none."""
    names = [f"{index}.png" if label is None else f"{label}/{index}.png" for index, label in enumerate(given)]
    for index, name in enumerate(names):
        path = Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels(index)).save(path)
    return names


def tree(folder):
    """What is in a folder: bytes by path."""
    paths = sorted(Path(folder).rglob("*"))
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths if path.is_file()}
