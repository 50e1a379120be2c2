"""The map of the samples: points, the rows or the sheet of small pictures behind them, and what its script needs.

Pictures come as one sheet, because thousands of single files would not fit into a page. It stays within a number of
bytes and of seconds; what did not fit has no picture, and the page says how many have one.
"""

from __future__ import annotations

import io
import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from labelmend.inputs.pictures.pixels import quiet
from labelmend.report.samples import Describer
from labelmend.report.wording import class_name, shortened
from labelmend.result import UNREADABLE, Correction
from labelmend.storage.originals import Originals

if TYPE_CHECKING:
    from PIL import Image


STATUSES = ("kept", "filled", "unreadable", "reviewed", "review", "corrected")  # the last are drawn on top
CELLS, LONGEST_CELL = 4, 24  # of a row that are told about a point
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


@dataclass(frozen=True)
class MapContents:
    """Arrays run along the points. Those of rare kinds come last, to be drawn on top."""

    x: NDArray[np.float32]
    y: NDArray[np.float32]
    given: NDArray[np.int64]  # -1: none
    corrected: NDArray[np.int64]
    status: NDArray[np.int64]  # positions in STATUSES
    confidence: NDArray[np.float32]
    ids: tuple[str, ...]
    rows: tuple[str, ...]  # a few cells of each, in words; none for pictures
    atlas: Atlas | None
    n_samples: int  # of the whole run that could be read

    @property
    def counts(self) -> list[tuple[str, int]]:
        """Points of each status that there is."""
        counts = np.bincount(self.status, minlength=len(STATUSES)).tolist()
        return [(name, count) for name, count in zip(STATUSES, counts, strict=True) if count]

    @property
    def groups(self) -> list[tuple[str, list[tuple[float, float]]]]:
        """Class names of the drawing, and where their points are."""
        at = np.stack([self.x, self.y], axis=1)
        return [(f"status-{name}", at[self.status == STATUSES.index(name)].tolist()) for name, _ in self.counts]

    @property
    def pictured(self) -> int:
        return len(self.ids) if self.atlas is None else sum(cell >= 0 for cell in self.atlas.cells)

    def facts(self, classes: tuple[str, ...]) -> dict[str, Any]:
        """What map.js reads."""
        sheet = self.atlas and {"side": self.atlas.side, "columns": self.atlas.columns, "cells": self.atlas.cells}
        return {
            "classes": [shortened(class_name(name)) for name in classes],
            "statuses": STATUSES,
            "ids": [shortened(name) for name in self.ids],
            "given": self.given.tolist(),
            "corrected": self.corrected.tolist(),
            "status": self.status.tolist(),
            "confidence": np.round(100 * self.confidence).astype(int).tolist(),
            "rows": self.rows,
            **(sheet or {}),
        }


def make_map(result: Correction, originals: Originals, describe: Describer) -> MapContents | None:
    if result.map is None or len(result.map.indices) == 0:
        return None
    status = np.array([STATUSES.index(name) for name in result.status[result.map.indices]])
    order = np.argsort(status, kind="stable")
    indices = result.map.indices[order]
    return MapContents(
        x=result.map.positions[order, 0],
        y=result.map.positions[order, 1],
        given=result.given.codes[indices],
        corrected=result.corrected_codes[indices],
        status=status[order],
        confidence=result.confidence[indices],
        ids=tuple(str(name) for name in result.ids[indices].tolist()),
        rows=tuple(_few_cells(describe.cells(int(i))) for i in indices) if originals.kind == "rows" else (),
        atlas=make_atlas(originals, indices) if originals.kind == "pictures" else None,
        n_samples=len(result) - result.count(UNREADABLE),
    )


def _few_cells(cells: list[tuple[str, str]]) -> str:
    return ", ".join(f"{name} {value[:LONGEST_CELL]}" for name, value in cells[:CELLS])


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
