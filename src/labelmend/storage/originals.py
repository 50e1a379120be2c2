"""The samples of a run as a person knows them: the pictures, or the rows of the table, read again from where they were.

Knows files and the source of a run; does not know what was corrected. What has moved is found with `data`, or beside
the run under its old name. Samples are recognised by their ids; rows without names of their own only in a file that is
byte for byte the same. So what has changed may be missing here, but is never another sample's.

A run folder may be somebody else's, and its source.json could name any file of this machine. So what it names is
opened only where it is the very data of the run, by the digest, and of that only what lies in the folder of the data.
Where the user names the data (`data`, on the command line --data), ids are enough, and paths may lead anywhere.
"""

from __future__ import annotations

import io
import os
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from labelmend.errors import DataError, LabelmendError
from labelmend.inputs.pictures.find import Pictures, find_pictures, row_numbers
from labelmend.inputs.pictures.pixels import Source as PictureSource
from labelmend.inputs.pictures.pixels import Unreadable, read_picture, require_pillow
from labelmend.inputs.tables import Rows, open_rows
from labelmend.result import Correction, Source
from labelmend.storage.run_files import as_text
from labelmend.storage.source import digest

if TYPE_CHECKING:
    from PIL import Image


GIVEN_AS_ARRAYS = "the data were given as arrays in Python, which are not kept"
OLD_RUN = "the run was made by an older version, which did not note where the data are"
TINY = 64  # pictures up to this side are kept as they are
QUALITY = 82  # of thumbnails: a JPEG of 128 x 128 takes about 5 kB


class Originals:
    """Nothing to show, and why. The other kinds are below.

    Pillow warns of odd files; whoever asks for many pictures does so within `picture_pixels.quiet()`.
    """

    kind = "none"  # "pictures" | "rows" | "none"

    def __init__(self, reason: str = "", at: Path | None = None) -> None:
        self.reason = reason  # why there is nothing, or what is missing, without a full stop; "": all is as it was
        self.at = at  # the file or folder that was found

    def picture(self, index: int, side: int | None = None) -> Image.Image | None:
        """Upright, RGB; None if it cannot be read (any more). A `side` that suffices makes large JPEGs quicker."""
        return None

    def row(self, index: int) -> list[tuple[str, str]]:
        """(column, value) in the order of the table; empty if it cannot be read (any more)."""
        return []

    def path(self, index: int) -> Path | None:
        """The file of a picture, where it has one of its own."""
        return None


class OriginalPictures(Originals):
    kind = "pictures"

    def __init__(
        self,
        pictures: Pictures,
        places: NDArray[np.int64],
        reason: str = "",
        at: Path | None = None,
        within: Path | None = None,
    ) -> None:
        """`within`: files elsewhere are not opened; None: wherever they are."""
        super().__init__(reason, at)
        require_pillow()
        self.pictures, self.places = pictures, places
        self.within = None if within is None else os.path.realpath(within)

    def source(self, index: int) -> PictureSource:
        """Where a picture is to be read; None if it is not there any more, or not where it may be read."""
        place = int(self.places[index])
        found = self.pictures.sources[place] if place >= 0 else None
        outside = isinstance(found, Path) and self.within is not None and not _lies_in(found, self.within)
        return None if outside else found

    def picture(self, index: int, side: int | None = None) -> Image.Image | None:
        try:
            return read_picture(self.source(index), side)
        except Unreadable:
            return None

    def path(self, index: int) -> Path | None:
        source = self.source(index)
        return source if isinstance(source, Path) else None


class OriginalRows(Originals):
    kind = "rows"

    def __init__(self, rows: Rows, places: NDArray[np.int64], reason: str, at: Path) -> None:
        super().__init__(reason, at)
        self.rows, self.places = rows, places

    def row(self, index: int) -> list[tuple[str, str]]:
        place = int(self.places[index])
        try:
            return [] if place < 0 else list(zip(self.rows.columns, self.rows.cells(place), strict=True))
        except (DataError, OSError):
            return []


def open_originals(run: Path, result: Correction, data: Path | None = None, follow_links: bool = False) -> Originals:
    """`run`: the run folder; `data`: where the file or folder is now, if it has moved."""
    source = result.source
    if source is None or source.kind == "arrays":
        return Originals(OLD_RUN if source is None else GIVEN_AS_ARRAYS)
    try:
        return _open(source, [as_text(name) for name in result.ids], Path(run), data, follow_links)
    except (LabelmendError, OSError) as error:
        return Originals(str(error).removesuffix("."))


def thumbnail(picture: Image.Image, side: int) -> bytes:
    """JPEG, at most side x side; a tiny picture as PNG, kept crisp."""
    out = io.BytesIO()
    if max(picture.size) <= min(side, TINY):
        picture.save(out, "PNG", optimize=True)
        return out.getvalue()
    small = picture.copy()
    small.thumbnail((side, side))
    small.save(out, "JPEG", quality=QUALITY, optimize=True)
    return out.getvalue()


def _open(source: Source, ids: Sequence[str], run: Path, data: Path | None, follow_links: bool) -> Originals:
    unproven = source.read_back and data is None  # nobody but the run folder says that these are the data
    if source.files is not None:
        if unproven:
            raise DataError(
                f"pictures given as a list, such as {source.files[0]}, are not opened because a run folder names them. "
                "Say where they are with --data FOLDER."
            )
        return _open_files(source.files, ids, data)
    assert source.path is not None
    path = _locate(Path(source.path), run, data)
    within = path if path.is_dir() else path.parent
    if unproven:
        _refuse_other_data(path, within, source)
    if source.kind == "pictures":
        pictures = find_pictures(path, source.labels, source.id, source.trusted, source.annotators)
        places, reason = _match(path, source, ids, pictures.ids)
        reason = reason or (_outside(pictures, within) if unproven else "")
        return OriginalPictures(pictures, places, reason, path, within if unproven and not follow_links else None)
    rows = open_rows(path, source.labels, source.id, source.trusted, source.features)
    return OriginalRows(
        rows, *_match(path, source, ids, rows.column(source.id) if source.id else range(len(rows))), path
    )


def _refuse_other_data(path: Path, within: Path, source: Source) -> None:
    if source.digest is None or digest(path) != source.digest:
        raise DataError(
            f"the data at {path} must be as they were when the run was made. They have changed, or the run is somebody "
            f"else's, or of an older version. If they are its data, say so with --data {shlex.quote(str(path))}."
        )
    if source.labels is not None and source.labels.endswith(".npy") and not _lies_in(Path(source.labels), within):
        raise DataError(f"labels must lie beside their data, in {within}. {source.labels} does not; say --data {path}.")


def _lies_in(path: Path, folder: str | Path) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


def _outside(pictures: Pictures, within: Path) -> str:
    """A first look at where listed pictures are, by their names alone."""
    root = os.path.abspath(within)
    listed = pictures.sources if isinstance(pictures.sources, list) else []
    away = sum(isinstance(place, Path) and not Path(os.path.abspath(place)).is_relative_to(root) for place in listed)
    return f"{away:,} pictures are not in {root} and not shown; if they are yours, say so with --data" if away else ""


def _open_files(files: Sequence[str], ids: Sequence[str], data: Path | None) -> Originals:
    above = os.path.commonpath([os.path.dirname(name) for name in files])
    paths = [Path(name) if data is None else data / os.path.relpath(name, above) for name in files]
    if not any(os.path.lexists(path) for path in paths):
        raise DataError(f"no such picture: {paths[0]}, nor any other of the run; say where they are with --data.")
    pictures = Pictures(np.array(ids, dtype=np.str_), [None] * len(ids), None, paths)
    return OriginalPictures(pictures, np.arange(len(ids)))


def _locate(path: Path, run: Path, data: Path | None) -> Path:
    if data is not None:
        inside = data / path.name
        path = inside if inside.is_file() and data.is_dir() else data
    elif not os.path.lexists(path) and os.path.lexists(run.resolve().parent / path.name):
        path = run.resolve().parent / path.name
    if not os.path.lexists(path):
        raise DataError(f"there must be data at {path}. There are none any more; say where they are with --data.")
    return path


def _match(path: Path, source: Source, ids: Sequence[str], names: Iterable[Any]) -> tuple[NDArray[np.int64], str]:
    """Of every sample of the run its place among those found, -1: it is not there any more; and what is missing."""
    found = [as_text(name) for name in names]
    by_number = source.id is None and found == row_numbers(len(found)).tolist()
    if by_number and digest(path) != source.digest:
        raise DataError(
            f"the data at {path} must be as they were when the run was made, because rows without ids are known by "
            f"their number. They have changed ({len(found):,} rows or pictures now)."
        )
    place_of = {name: place for place, name in enumerate(found)}
    places = np.array([place_of.get(name, -1) for name in ids], dtype=np.int64)
    absent = int((places < 0).sum())
    if absent == len(places):
        raise DataError(f"the data at {path} must hold the samples of the run, such as {ids[0]!r}. They hold others.")
    return places, f"{absent:,} of {len(ids):,} are not at {path} any more" if absent else ""
