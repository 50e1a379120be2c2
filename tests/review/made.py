"""A run with a review ahead of it, made in a tenth of a second: what is doubtful, and how much, is put in by hand."""

import dataclasses
import functools

import numpy as np
import scipy.sparse

import labelmend
from blobs import QUICK, blobs
from labelmend.inputs.containers import objects
from labelmend.inputs.pictures.find import find_pictures
from labelmend.labels import Labels
from labelmend.review.decisions import FILE, Decisions, Subject
from labelmend.storage.run_folder import read_run
from labelmend.storage.source import ARRAYS, picture_source, table_source

CLASSES = ["cat", "dog", "fox & <b>hen"]
N = 36


@functools.cache
def corrected():
    features, classes = blobs(N)
    return labelmend.correct(features, np.array(CLASSES)[classes], expert=QUICK)


def write_photos(folder, n=N, side=80):
    """Class folders of plain pictures, each with a grey of its own."""
    from PIL import Image

    for number in range(n):
        place = folder / CLASSES[number % 3]
        place.mkdir(parents=True, exist_ok=True)
        grey = 20 + 6 * number
        Image.new("RGB", (side, side // 2), (grey, grey, 90)).save(place / f"{number:02d}.png")


def write_table(path, n=N):
    lines = ["name,width,height,label"]
    lines += [f"row {number},{number}.5,{2 * number},{CLASSES[number % 3]}" for number in range(n)]
    path.write_text("\n".join(lines) + "\n")


def made_result(ids, given, source, classes=CLASSES, n_review=24):
    """The first samples are for review, with confidence from 0.30 up; the suggestion moves every other one a class on.

    After them: 4 corrected, then kept; the last came without a label and was filled in.
    """
    n = len(ids)
    given = np.asarray(given, dtype=np.int64)
    place = np.arange(n)
    suggested = np.where((place < n_review) & (place % 2 == 0), (given + 1) % len(classes), given)
    corrected_ones = (place >= n_review) & (place < n_review + 4)
    suggested = np.where(corrected_ones, (given + 1) % len(classes), suggested)
    status = np.where(place < n_review, "review", np.where(corrected_ones, "corrected", "kept")).astype("<U10")
    given = np.where(place == n - 1, -1, given)
    status[-1] = "filled"
    confidence = np.where(place < n_review, 0.30 + 0.5 * place / n_review, 0.97).astype(np.float32)
    names = objects(classes)
    labels = Labels(given, names, lambda values: values)
    shares = np.zeros((n, len(classes)))
    shares[place, suggested], shares[place, (suggested + 1) % len(classes)] = 0.5, 0.3
    shares[0] = 0
    near = (place[:, None] + np.array([1, 2, 3, 6])) % n
    model = corrected().model
    return dataclasses.replace(
        corrected(),
        labels=labels.decode(suggested),
        status=status,
        confidence=confidence,
        certainty=(1 - confidence).astype(np.float32),
        runner_up=names[(suggested + 1) % len(classes)],
        votes=scipy.sparse.csr_matrix(shares),
        classes=names,
        given=labels,
        corrected_codes=suggested,
        ids=np.asarray(ids),
        neighbors=near.astype(np.int32),
        duplicates=[[3, 5]],
        left_alone=None,
        given_confidence=None,
        reason=None,
        misfit=None,
        profile=None,
        transition=np.eye(len(classes)),
        source=source,
        map=None,
        model=dataclasses.replace(model, classes=names),
    )


def decide(run, *choices, request="r"):
    """A person's decisions, in the log of the run."""
    log = Decisions(run / FILE, Subject.of(read_run(run)))
    log.decide(choices, "tab", request)
    log.close()


def picture_run(folder, n=N):
    """RUN of pictures beside them: (run folder, folder of pictures)."""
    photos = folder / "photos"
    write_photos(photos, n)
    found = find_pictures(photos, None, None, None)
    given = [CLASSES.index(name) for name in found.given]
    return made_result(found.ids, given, picture_source(photos)).save(folder / "run"), photos


def table_run(folder, n=N):
    table = folder / "table.csv"
    write_table(table, n)
    source = table_source(table, "label", "name")
    result = made_result([f"row {number}" for number in range(n)], np.arange(n) % 3, source)
    return result.save(folder / "run"), table


def array_run(folder, n=N, **how):
    return made_result(np.arange(n), np.arange(n) % 3, ARRAYS, **how).save(folder / "run")
