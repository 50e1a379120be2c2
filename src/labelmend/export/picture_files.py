"""Pictures as files of an export: copied, linked, or written where they have no file of their own.

Knows files; does not know labels. The source is only read. A picture that cannot be read as a picture is still copied
if there are bytes; what cannot be copied is said, with the reason.
"""

from __future__ import annotations

import io
import os
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from labelmend.inputs.pictures.folders import ENDINGS
from labelmend.inputs.pictures.pixels import Source, open_source, read_format, reasons

RESERVED = {"con", "prn", "aux", "nul", *(f"{name}{n}" for name in ("com", "lpt") for n in range(1, 10))}
FORBIDDEN = set('/\\:*?"<>|')
LONGEST_BYTES = 240


def place(source: Source, target: Path, link: bool) -> None:
    """Put one picture at `target`; raises `Unreadable` with the reason if it cannot be had."""
    with reasons(source):
        if isinstance(source, np.ndarray):
            target.write_bytes(png_bytes(source))
            return
        with open_source(source) as file:  # refuses pipes, folders, empty and absent files, before anything is linked
            if link and isinstance(source, Path):
                _link(source, target)
                return
            with target.open("xb") as copy:
                shutil.copyfileobj(file, copy)


def png_bytes(pixels: NDArray[np.uint8]) -> bytes:
    from PIL import Image

    out = io.BytesIO()
    Image.fromarray(pixels[:, :, 0] if pixels.ndim == 3 and pixels.shape[2] == 1 else pixels).save(out, "PNG")
    return out.getvalue()


def ending(source: Source) -> str:
    """What the name of the file ends in, with its dot."""
    if isinstance(source, Path):
        return source.suffix
    return ".png" if isinstance(source, np.ndarray) else read_format(source)


class Names:
    """Names for files or folders that any system can hold, each given once, also where case does not count."""

    def __init__(self) -> None:
        self.taken: set[str] = set()
        self.numbers: Counter[str] = Counter()  # how often a name was wanted: 100,000 may be called image.png

    def take(self, wanted: str) -> str:
        name = safe_name(wanted)
        stem, suffix = os.path.splitext(name)
        if suffix.lower() not in ENDINGS:
            stem, suffix = name, ""
        key = name.casefold()
        while name.casefold() in self.taken:
            self.numbers[key] += 1
            name = f"{stem}-{self.numbers[key] + 1}{suffix}"
        self.taken.add(name.casefold())
        return name


def safe_name(wanted: str) -> str:
    """The name itself, or the nearest one that is no path, not hidden, and not reserved anywhere."""
    name = "".join("_" if c in FORBIDDEN or not c.isprintable() else c for c in wanted)
    while len(name.encode("utf-8", "replace")) > LONGEST_BYTES:
        name = name[:-1]
    if name.strip(" .") == "" or name[0] in ". ":
        name = f"_{name}"
    if name[-1] in ". ":
        name = f"{name}_"
    return f"_{name}" if name.split(".")[0].casefold() in RESERVED else name


def _link(source: Path, target: Path) -> None:
    """A hard link; across disks, or where those are not allowed, a symbolic one."""
    real = os.path.realpath(source)
    try:
        os.link(real, target)
    except OSError:
        os.symlink(real, target)
