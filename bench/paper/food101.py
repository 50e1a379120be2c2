"""Food-101N, whose labels come from the web, and Food-101, whose test pictures judge what was learnt from them.

    Food-101N_release/meta/classes.txt         the header class_name, then 101 names of classes, one a line
    Food-101N_release/meta/imagelist.tsv       the header class_name/key, then apple_pie/NAME.jpg and so on
    Food-101N_release/meta/verified_train.tsv  the header class_name/key TAB verification_label, then a key and 0 or 1
    Food-101N_release/meta/verified_val.tsv    the same
    Food-101N_release/images/apple_pie/NAME.jpg
    food-101/meta/classes.txt                  the same classes, without a header
    food-101/meta/test.txt                     apple_pie/NUMBER, without the .jpg
    food-101/images/apple_pie/NUMBER.jpg

A verification label is 1 where the label from the web is right; nothing learns from it, it measures what was found.
Knows these files; does not open a picture.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.paper.photo_lists import (
    IntArray,
    Line,
    PhotoList,
    bad_line,
    checked_key,
    classes_of,
    find_folder,
    keys_of,
    lines_of,
    table_lines,
)
from labelmend.errors import DataError

CLASSES, IMAGE_LIST, TEST = "meta/classes.txt", "meta/imagelist.tsv", "meta/test.txt"
VERIFIED = ("meta/verified_train.tsv", "meta/verified_val.tsv")
CLASS_HEADER, KEY_HEADER, VERIFIED_HEADER = "class_name", "class_name/key", "verification_label"
PICTURES = "images"
UNVERIFIED = -1


@dataclass(frozen=True)
class Food101N:
    photos: PhotoList
    verified: IntArray  # per picture: 1 its label is right, 0 wrong, -1 nobody looked


def read_food101n(data: Path) -> Food101N:
    """`data` is its folder, or the folder that holds it."""
    refuse_swapped(data, IMAGE_LIST, TEST, "Food-101N", "Food-101")
    folder = find_folder(data, IMAGE_LIST, "Food-101N")
    classes = _classes(folder / CLASSES, with_header=True)
    path = folder / IMAGE_LIST
    photos = _photos(path, table_lines(path, [KEY_HEADER]), classes, folder)
    verified, notes = _verified(folder, photos.keys, classes)
    return Food101N(PhotoList(photos.keys, photos.labels, classes, photos.folder, notes=photos.notes + notes), verified)


def read_food101_test(data: Path, classes: tuple[str, ...]) -> PhotoList:
    """The test pictures of Food-101, with their labels as places in `classes`, those of Food-101N."""
    refuse_swapped(data, TEST, IMAGE_LIST, "Food-101", "Food-101N")
    folder = find_folder(data, TEST, "Food-101")
    own = _classes(folder / CLASSES, with_header=False)
    if odd := sorted(set(own) ^ set(classes)):
        raise DataError(f"{folder / CLASSES} must name the classes of Food-101N. They differ in {', '.join(odd[:5])}.")
    return _photos(folder / TEST, lines_of(folder / TEST), classes, folder, ".jpg")


def refuse_swapped(data: Path, marker: str, other: str, wanted: str, got: str) -> None:
    if (data / other).is_file() and not (data / marker).is_file():
        raise DataError(
            f"{data} must be the folder of {wanted}, with {marker}. Got that of {got}, with {other}, instead; "
            "exchange them."
        )


def _classes(path: Path, with_header: bool) -> tuple[str, ...]:
    """Of Food-101N below a header, of Food-101 without one."""
    first = next(lines_of(path), (1, ""))
    if not with_header and first[1].strip() == CLASS_HEADER:
        raise bad_line(path, first[0], "there must be no header", first[1])
    lines = table_lines(path, [CLASS_HEADER]) if with_header else lines_of(path)
    return classes_of(path, lines, lambda name: len(name.split()) == 1)


def _photos(path: Path, lines: Iterator[Line], classes: tuple[str, ...], folder: Path, ending: str = "") -> PhotoList:
    if not (folder / PICTURES).is_dir():
        raise DataError(f"{folder} must hold the pictures in {PICTURES}/. There is no such folder.")
    places = {name: place for place, name in enumerate(classes)}
    keys, notes = keys_of(path, lines, partial(_class_of, path, places))
    labels = np.fromiter((places[str(key).partition("/")[0]] for key in keys), dtype=np.int64, count=len(keys))
    return PhotoList(keys, labels, classes, folder / PICTURES, ending, notes)


def _verified(folder: Path, keys: NDArray[np.str_], classes: tuple[str, ...]) -> tuple[IntArray, list[str]]:
    """The verification labels; a picture that is not in the image list is counted in a note.

    As distributed, one is not: it stands there under another class.
    """
    places = {name: place for place, name in enumerate(classes)}
    known: dict[str, int] = {}
    for name in VERIFIED:
        path = folder / name
        empty = True
        for number, text in table_lines(path, [KEY_HEADER, VERIFIED_HEADER]):
            key, _, label = (cell.strip() for cell in text.partition("\t"))
            _class_of(path, places, number, checked_key(path, number, key))
            if label not in ("0", "1"):
                raise bad_line(path, number, f"{VERIFIED_HEADER} must be 0 or 1", text)
            if known.setdefault(key, int(label)) != int(label):
                raise bad_line(
                    path, number, f"a key must have one {VERIFIED_HEADER}; {key} has {known[key]} above", text
                )
            empty = False
        if empty:
            raise DataError(f"{path} must hold pictures. It has a header and nothing else.")
    found = np.fromiter((known.get(str(key), UNVERIFIED) for key in keys), dtype=np.int64, count=len(keys))
    lost = len(known) - int((found != UNVERIFIED).sum())
    return found, [f"{lost} verified picture(s) are not in {IMAGE_LIST} and are left out"] if lost else []


def _class_of(path: Path, places: dict[str, int], number: int, key: str) -> int:
    name = key.partition("/")[0]
    if name not in places:
        raise bad_line(path, number, f"the class {name!r} must be in {CLASSES}", key)
    return places[name]
