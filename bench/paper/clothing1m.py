"""Clothing1M as it is distributed: pictures below images/, and lists of keys and labels beside them.

    category_names_eng.txt     14 names, one a line, in the order of the numbers; or category_names_chn.txt
    noisy_train_key_list.txt   a key a line, such as images/3/25/NAME.jpg
    clean_train_key_list.txt   the same; clean_val_key_list.txt and clean_test_key_list.txt too
    noisy_label_kv.txt         a key, a space and the number of its class; for all pictures with a label from the web
    clean_label_kv.txt         the same, for those that people labelled
    images/0/ to images/9/     the pictures

Lists may also lie in annotations/, and the folders 0 to 9 without images/ around them: the archives unpack either way.
Knows these files; does not open a picture. The validation list is not read: nothing here is chosen on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.paper.photo_lists import PhotoList, bad_line, checked_key, classes_of, find_folder, keys_of, lines_of
from labelmend.errors import DataError

NOISY, CLEAN, TEST = "noisy_train_key_list.txt", "clean_train_key_list.txt", "clean_test_key_list.txt"
NOISY_LABELS, CLEAN_LABELS = "noisy_label_kv.txt", "clean_label_kv.txt"
NAMES_ENGLISH, NAMES_CHINESE = "category_names_eng.txt", "category_names_chn.txt"
PICTURES, ANNOTATIONS = "images", "annotations"
CHINESE = ("utf-8-sig", "gb18030")


@dataclass(frozen=True)
class Clothing1M:
    noisy: PhotoList  # labels from the web
    clean: PhotoList  # labels by people, to train on
    test: PhotoList


def read_clothing1m(data: Path) -> Clothing1M:
    """`data` is its folder, or the folder that holds it."""
    lists = lists_in(data)
    root = lists.parent if lists.name == ANNOTATIONS else lists
    classes = _classes(lists)
    from_web, from_people = _labels(lists / NOISY_LABELS, classes), _labels(lists / CLEAN_LABELS, classes)
    noisy = _photos(lists, NOISY, from_web, NOISY_LABELS, classes, root)
    clean = _photos(lists, CLEAN, from_people, CLEAN_LABELS, classes, root)
    test = _photos(lists, TEST, from_people, CLEAN_LABELS, classes, root)
    for name, training in ((NOISY, noisy), (CLEAN, clean)):
        shared = np.intersect1d(training.keys, test.keys)
        if len(shared):
            raise DataError(
                f"{lists / name} must not name pictures of {TEST}: nothing may learn from what it is tested on. "
                f"Got {len(shared)} of them, such as {shared[0]}."
            )
    return Clothing1M(noisy, clean, test)


def lists_in(data: Path) -> Path:
    inside = sorted(data.glob(f"*/{ANNOTATIONS}/{NOISY}")) if data.is_dir() else []
    if (data / ANNOTATIONS / NOISY).is_file():
        return data / ANNOTATIONS
    return inside[0].parent if len(inside) == 1 else find_folder(data, NOISY, "Clothing1M")


def _classes(lists: Path) -> tuple[str, ...]:
    english, chinese = lists / NAMES_ENGLISH, lists / NAMES_CHINESE
    path = chinese if chinese.is_file() and not english.is_file() else english
    return classes_of(path, lines_of(path, CHINESE if path == chinese else CHINESE[:1]))


def _labels(path: Path, classes: tuple[str, ...]) -> dict[str, int]:
    labels: dict[str, int] = {}
    for number, text in lines_of(path):
        cells = text.split()
        if len(cells) != 2:
            raise bad_line(path, number, "a line must be a key and the number of its class", text)
        key = checked_key(path, number, cells[0])
        if not cells[1].isascii() or not cells[1].isdigit() or int(cells[1]) >= len(classes):
            raise bad_line(path, number, f"the class must be a number from 0 to {len(classes) - 1}", text)
        if labels.setdefault(key, int(cells[1])) != int(cells[1]):
            raise bad_line(path, number, f"a key must have one label; {key} has {labels[key]} above", text)
    if not labels:
        raise DataError(f"{path} must hold labels. It is empty.")
    return labels


def _photos(
    lists: Path, name: str, labels: dict[str, int], labels_name: str, classes: tuple[str, ...], root: Path
) -> PhotoList:
    path = lists / name
    keys, notes = keys_of(path, lines_of(path))
    codes = np.fromiter((labels.get(str(key), -1) for key in keys), dtype=np.int64, count=len(keys))
    if (codes < 0).any():
        raise _without_label(path, str(keys[codes < 0][0]), int((codes < 0).sum()), labels_name)
    folder, keys = _where(root, keys)
    return PhotoList(keys, codes, classes, folder, notes=notes)


def _without_label(path: Path, key: str, n: int, labels_name: str) -> DataError:
    number = next(number for number, text in lines_of(path) if text.strip() == key)
    return DataError(
        f"{path}, line {number}: a key must have a label in {labels_name}. {key} has none ({n} such key(s) in all)."
    )


def _where(root: Path, keys: NDArray[np.str_]) -> tuple[Path, NDArray[np.str_]]:
    """The folder that the keys start at, and the keys as files lie there."""
    if (root / PICTURES).is_dir():
        return root, keys
    prefix = f"{PICTURES}/"
    if (root / "0").is_dir():
        return root, np.array([key.removeprefix(prefix) for key in keys], dtype=np.str_)
    raise DataError(f"{root} must hold the pictures of Clothing1M in {PICTURES}/0 to {PICTURES}/9. There are none.")
