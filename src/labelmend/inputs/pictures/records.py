"""Which pictures there are: their ids, their labels, and where each one is to be read.

Knows names; does not know pixels, nor where the names came from: a folder, a table or an archive.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from labelmend.errors import DataError
from labelmend.inputs.annotations import is_table

Source = Path | bytes | NDArray[np.uint8] | None  # a file, an encoded picture, pixels, or nothing where a cell is empty


class Sources(Protocol):
    """A list of sources, or anything that fetches one when asked, from any thread."""

    def __len__(self) -> int: ...

    def __getitem__(self, place: int, /) -> Any: ...


@dataclass(frozen=True)
class Pictures:
    ids: NDArray[np.str_]  # unique: the path within the folder, the id column, or the number of the row
    given: list[Any]  # None where there is no label
    trusted: NDArray[np.bool_] | None
    sources: Sources
    notes: list[str] = field(default_factory=list)  # what the user should know about the finding
    annotators: Any = None  # who gave each label, or the labels of each of them: see `annotations.py`

    def __len__(self) -> int:
        return len(self.ids)


def spelled(name: str) -> str:
    r"""A name that can be written anywhere: bytes that are not UTF-8 become \udcNN, and a backslash is doubled.

    Doubling keeps two different names different, also where one holds such an escape in plain letters.
    """
    return name.replace("\\", "\\\\").encode("utf-8", "backslashreplace").decode()


def unique_or_rows(names: Sequence[Any]) -> tuple[NDArray[np.str_], list[str]]:
    """The names as ids where each is there once, else the numbers of the rows and a note that says so."""
    texts = np.array(["" if name is None else spelled(str(name)) for name in names], dtype=np.str_)
    if _repeated(texts) is None and (texts != "").all():
        return texts, []
    return row_numbers(len(names)), ["rows are named by their numbers, from 0: their paths or ids repeat or are empty"]


def row_numbers(n: int) -> NDArray[np.str_]:
    return np.arange(n).astype(np.str_)


def checked(pictures: Pictures) -> Pictures:
    """Refuse, before any work, what cannot be corrected whatever the pictures show."""
    n = len(pictures.sources)
    if n == 0:
        raise DataError("there must be pictures. There are none.")
    for what, length in (("labels", len(pictures.given)), ("ids", len(pictures.ids))):
        if length != n:
            raise DataError(f"there must be as many {what} as pictures. Got {length} for {n} pictures instead.")
    if pictures.trusted is not None and pictures.trusted.shape != (n,):
        raise DataError(f"trusted marks must be one per picture ({n}). Got shape {pictures.trusted.shape} instead.")
    if (twice := _repeated(pictures.ids)) is not None:
        raise DataError(f"ids must be unique. Got {twice!r} more than once.")
    try:
        classes = {label for label in pictures.given if label is not None}
    except TypeError:
        raise DataError("labels must be single values such as text or numbers. Got lists instead.") from None
    if len(classes) < 2 and not (is_table(pictures.annotators) and not classes):
        found = f"only the class {classes.pop()!r}" if classes else "no label at all"
        raise DataError(f"labels must hold at least two classes. Got {found} instead.")
    return pictures


def _repeated(ids: NDArray[np.str_]) -> str | None:
    """One that is there twice; compared as the array holds them, which drops NULs at the end of a text."""
    values, counts = np.unique(ids, return_counts=True)
    return str(values[counts > 1][0]) if (counts > 1).any() else None
