"""folders: one folder for each class, with the pictures of that class; those without a label lie beside them.

    OUT/cat/001.png         copied, or linked with --link
    OUT/labels.csv          file, id, label, label_given, status, confidence: the label as it is, whatever its folder
                            had to be called
    OUT/left_out.csv        id, reason; only where a picture could not be copied

The source is only read. Of two pictures with one name in a class the second gets a number. A file that cannot be read
as a picture is still copied; what cannot be copied is named, with the reason.
"""

from __future__ import annotations

import io
import os
import shutil
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from labelmend.export.handover import Handover, texts
from labelmend.export.tables import write_rows
from labelmend.inputs.pictures.folders import ENDINGS
from labelmend.inputs.pictures.pixels import Source, open_source, read_format, reasons

INDEX, LEFT_OUT = "labels.csv", "left_out.csv"
COLUMNS = ("file", "id", "label", "label_given", "status", "confidence")
RESERVED = {"con", "prn", "aux", "nul", *(f"{name}{n}" for name in ("com", "lpt") for n in range(1, 10))}
FORBIDDEN = set('/\\:*?"<>|')
LONGEST_BYTES = 240


def write_folders(handover: Handover, folder: Path) -> None:
    pictures, below = handover.pictures(), ClassFolders(folder, handover.class_names)
    labels, given, scores = texts(handover.labels), texts(handover.given), handover.score_texts

    def put(index: int) -> tuple[str, ...]:
        source, name = pictures.source(index), handover.ids[index]
        end = "" if isinstance(source, Path) or name.lower().endswith(ending(source)) else ending(source)
        wanted = source.name if isinstance(source, Path) else name + end
        file = below.take(handover.class_names[code] if (code := int(handover.codes[index])) >= 0 else None, wanted)
        place(source, folder / file, handover.options.link)
        return file, name, labels[index], given[index], str(handover.result.status[index]), scores[index]

    rows, left_out = handover.of_each(put)
    write_rows(folder / INDEX, COLUMNS, filter(None, rows))
    if left_out:
        write_rows(folder / LEFT_OUT, ("id", "reason"), left_out)
        handover.notes[-1] += f"; see {LEFT_OUT}"
    if renamed := [(old, new) for old, new in below.names.items() if old is not None and old != new]:
        old, new = renamed[0]
        handover.notes.append(
            f"{len(renamed):,} class(es) cannot be the name of a folder, for example {old!r}: its folder is {new!r}; "
            f"{INDEX} has the labels themselves"
        )


class ClassFolders:
    """A folder for each class, made when it is needed, and names for files in it, each given once."""

    def __init__(self, above: Path, classes: Iterable[str]) -> None:
        """Classes whose names can stay as they are come first."""
        folders = Names()
        folders.taken.update((INDEX, LEFT_OUT))
        self.above, self.inside = above, dict[str, Names]()
        found = {name: folders.take(name) for name in sorted(classes, key=lambda name: safe_name(name) != name)}
        self.names: dict[str | None, str] = {None: "", **{name: found[name] for name in classes}}

    def take(self, label: str | None, wanted: str) -> str:
        """The path of a new file below `above`; a picture without a label lies in no folder."""
        below = self.names[label]
        (self.above / below).mkdir(exist_ok=True)
        return os.path.join(below, self.inside.setdefault(below, Names()).take(wanted))


def common_folder(files: Iterable[Path | None]) -> str | None:
    """The deepest folder that holds them all; None for none."""
    folders = [os.path.dirname(os.path.abspath(file)) for file in files if file is not None]
    return os.path.commonpath(folders) if folders else None


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
