"""Lists of photographs as research sets come with: one picture a line, and what is wrong with a line.

Knows lines, keys and folders; does not know which set a list belongs to (`clothing1m.py`, `food101.py`), nor pixels:
pictures are opened one by one when the cache is written, so that a million of them need no more memory than their
names. Every error names the file and the line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from labelmend.errors import DataError
from labelmend.inputs.pictures.find import Pictures

IntArray = NDArray[np.int64]
Line = tuple[int, str]  # its number, from 1, and its text without the end
SHOWN = 60  # characters of a bad line in a message
NO_LINE = 0


class PicturePaths:
    """The files of keys, made one at a time: a million paths would be half a gigabyte."""

    def __init__(self, folder: Path, keys: NDArray[np.str_], ending: str = "") -> None:
        self.folder, self.keys, self.ending = folder, keys, ending

    def __len__(self) -> int:
        return len(self.keys)

    def __getitem__(self, place: int, /) -> Path:
        return self.folder / f"{self.keys[place]}{self.ending}"


@dataclass(frozen=True)
class PhotoList:
    """Pictures of one list: their keys, their classes, and the folder where they lie."""

    keys: NDArray[np.str_]
    labels: IntArray  # places in `classes`
    classes: tuple[str, ...]
    folder: Path
    ending: str = ""  # of the files, where the keys leave it out
    notes: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.keys)

    def rows(self, rows: IntArray) -> PhotoList:
        return PhotoList(self.keys[rows], self.labels[rows], self.classes, self.folder, self.ending, self.notes)

    def limited(self, per_class: int | None, seed: int = 0) -> PhotoList:
        """At most so many of every class, drawn by chance, in the order of the list; None: all."""
        return self if per_class is None else self.rows(self.chosen(per_class, seed))

    def chosen(self, per_class: int | None, seed: int = 0) -> IntArray:
        """Their places in the list."""
        if per_class is None:
            return np.arange(len(self.keys))
        order = np.random.default_rng(seed).permutation(len(self.keys))
        by_class = order[np.argsort(self.labels[order], kind="stable")]
        sizes = np.bincount(self.labels, minlength=len(self.classes))
        turn = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return np.sort(by_class[turn < per_class])

    def pictures(self, trusted: NDArray[np.bool_] | None = None) -> Pictures:
        """For the cache and for `correct_images`: labels are names of classes."""
        given = [self.classes[code] for code in self.labels]  # one text per class, not per picture
        return Pictures(self.keys, given, trusted, PicturePaths(self.folder, self.keys, self.ending), list(self.notes))


def joined(first: PhotoList, second: PhotoList) -> PhotoList:
    """The first list, then the second; both of one set."""
    keys, labels = np.concatenate([first.keys, second.keys]), np.concatenate([first.labels, second.labels])
    return PhotoList(keys, labels, first.classes, first.folder, first.ending, [*first.notes, *second.notes])


def lines_of(path: Path, encodings: Sequence[str] = ("utf-8-sig",)) -> Iterator[Line]:
    """Lines that are not blank. The last encoding that is tried has to fit."""
    *others, last = encodings
    for encoding in others:
        if _is_in(path, encoding):
            last = encoding
            break
    try:
        with path.open(encoding=last) as file:
            for number, text in enumerate(file, start=1):
                if text.strip():
                    yield number, text.rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise DataError(f"{path} must be text in {last}. Got byte {error.object[error.start]:#04x} instead.") from None
    except OSError as error:
        raise DataError(f"there must be a list {path}. It cannot be read: {error.strerror or error}.") from error


def table_lines(path: Path, header: Sequence[str]) -> Iterator[Line]:
    """The lines below the header of a table with tabs, each with as many columns as the header."""
    lines = lines_of(path)
    number, first = next(lines, (NO_LINE, ""))
    wanted = "\t".join(header)
    if number == NO_LINE:
        raise DataError(f"{path} must hold pictures. It is empty.")
    if [cell.strip() for cell in first.split("\t")] != list(header):
        raise bad_line(path, number, f"the first line must be the header {wanted!r}", first)
    for number, text in lines:
        if text.count("\t") != len(header) - 1:
            raise bad_line(path, number, f"a line must have {len(header)} column(s) with tabs between them", text)
        yield number, text


def keys_of(
    path: Path, lines: Iterator[Line], check: Callable[[int, str], object] = lambda number, key: None
) -> tuple[NDArray[np.str_], list[str]]:
    """The keys of a list in its order, each once; a note where a key is there again. `check` may refuse one."""
    keys: dict[str, None] = {}
    again = 0
    for number, text in lines:
        key = checked_key(path, number, text)
        check(number, key)
        again += key in keys
        keys[key] = None
    if not keys:
        raise DataError(f"{path} must hold pictures. It is empty.")
    notes = [f"{path.name} names {again} picture(s) more than once; each counts once"] if again else []
    return np.array(list(keys), dtype=np.str_), notes


def classes_of(path: Path, lines: Iterator[Line], fits: Callable[[str], bool] = bool) -> tuple[str, ...]:
    """The names of classes, one a line, in their order."""
    names: dict[str, None] = {}
    for number, text in lines:
        name = text.strip()
        if name in names or not fits(name):
            raise bad_line(path, number, "a line must be one class, named once", text)
        names[name] = None
    if len(names) < 2:
        raise DataError(f"{path} must name at least two classes. Got {len(names)} instead.")
    return tuple(names)


def checked_key(path: Path, number: int, text: str) -> str:
    """A path below the folder of pictures, with folders before the name."""
    key = text.strip()
    parts = key.split("/")
    if len(key.split()) != 1 or len(parts) < 2 or not all(parts) or ".." in parts:
        raise bad_line(path, number, "a picture must be a path such as folder/name.jpg, without spaces", text)
    return key


def bad_line(path: Path, number: int, must: str, text: str) -> DataError:
    shown = text if len(text) <= SHOWN else text[: SHOWN - 3] + "..."
    return DataError(f"{path}, line {number}: {must}. Got {shown!r} instead.")


def find_folder(data: Path, marker: str, what: str) -> Path:
    """The folder that holds the file `marker`: `data` itself, or the one folder in it that does."""
    if not data.is_dir():
        raise DataError(f"{what} must be in a folder. Got {data}, which is not one.")
    if (data / marker).is_file():
        return data
    found = sorted(folder for folder in data.iterdir() if (folder / marker).is_file())
    if len(found) == 1:
        return found[0]
    seen = f"it is in {', '.join(folder.name for folder in found)}; give one of them" if found else _contents(data)
    raise DataError(f"{data} must be the folder of {what}, or hold it: one with the file {marker}. Got: {seen}.")


def _contents(folder: Path) -> str:
    names = sorted(path.name for path in folder.iterdir())
    return (", ".join(names[:5]) + (", ..." if len(names) > 5 else "")) or "an empty folder"


def _is_in(path: Path, encoding: str) -> bool:
    try:
        path.read_text(encoding=encoding)
    except UnicodeDecodeError:
        return False
    except OSError:
        return True  # reported where it is read
    return True
