"""Pictures for the map: one sheet of small ones, because thousands of single files would not fit into a page.

Knows the originals; stays within a number of bytes and of seconds. What did not fit has no picture, and the page says
how many have one.
"""

from __future__ import annotations

import io
import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from labelmend.inputs.pictures.pixels import quiet
from labelmend.storage.originals import Originals

if TYPE_CHECKING:
    from PIL import Image


SHEET_BYTES = 1_600_000
SHEET_PIXELS = 6_000_000
LARGEST = 72  # side of a cell
CRISP = 32  # pictures up to this side are kept as they are, where they fit
SECONDS = 20.0  # for reading: large photographs take a hundredth of a second each, or more
QUALITIES = (80, 65, 50, 35)


@dataclass(frozen=True)
class Atlas:
    sheet: bytes
    side: int  # of a cell
    columns: int
    cells: tuple[int, ...]  # of every sample, counted row by row; -1: it has none


def make_atlas(originals: Originals, indices: NDArray[np.int64], seconds: float = SECONDS) -> Atlas | None:
    """Samples that come last get their pictures first: those are the ones drawn on top."""

    ends = time.monotonic() + seconds
    largest = min(LARGEST, math.isqrt(SHEET_PIXELS // max(len(indices), 1)))
    tiles: dict[int, Image.Image] = {}
    with quiet():
        for place in range(len(indices) - 1, -1, -1):
            if time.monotonic() > ends:
                break
            picture = originals.picture(int(indices[place]), largest)
            if picture is not None:
                picture.thumbnail((largest, largest))
                tiles[place] = picture
    if not tiles:
        return None
    return _sheet(tiles, len(indices), max(max(tile.size) for tile in tiles.values()))


def _sheet(tiles: dict[int, Image.Image], n: int, largest: int) -> Atlas:
    crisp = largest <= CRISP
    side = largest if crisp else 8 * math.ceil(largest / 8)  # blocks of a JPEG must not reach over the edge of a cell
    columns = math.isqrt(len(tiles) - 1) + 1
    cells = np.full(n, -1)
    cells[sorted(tiles)] = np.arange(len(tiles))
    sheet = _paste(tiles, side, columns)
    while (written := _encoded(sheet, crisp)) is None:  # pictures that are nearly noise
        side = max(side // 2, 1)
        sheet = sheet.resize((columns * side, math.ceil(len(tiles) / columns) * side))
    return Atlas(written, side, columns, tuple(cells.tolist()))


def _paste(tiles: dict[int, Image.Image], side: int, columns: int) -> Image.Image:
    from PIL import Image

    sheet = Image.new("RGB", (columns * side, math.ceil(len(tiles) / columns) * side), (128, 128, 128))
    for cell, place in enumerate(sorted(tiles)):
        tile = tiles[place]
        corner = (side - tile.width) // 2, (side - tile.height) // 2
        sheet.paste(tile, (cell % columns * side + corner[0], cell // columns * side + corner[1]))
    return sheet


def _encoded(sheet: Image.Image, crisp: bool) -> bytes | None:
    """As good as fits into SHEET_BYTES; None: it does not fit."""
    if crisp and len(written := _written(sheet, "PNG", optimize=True)) <= SHEET_BYTES:
        return written
    for quality in QUALITIES:
        written = _written(sheet, "JPEG", quality=quality, subsampling=0)
        if len(written) <= SHEET_BYTES:
            return written
    return None


def _written(sheet: Image.Image, kind: str, **how: object) -> bytes:
    out = io.BytesIO()
    sheet.save(out, kind, **how)
    return out.getvalue()
