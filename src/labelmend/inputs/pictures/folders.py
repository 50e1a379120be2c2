"""Class folders: every picture below photos/cat/ has the label "cat".

Knows folders, links and file names; does not open a file. What is not taken is counted in a note. A pipe or a link to
nowhere under the name of a picture is taken: whoever reads it says why it cannot be read.
"""

from __future__ import annotations

import os
from collections import Counter, deque
from dataclasses import dataclass, field
from pathlib import Path

from labelmend.errors import DataError
from labelmend.inputs.containers import listed

ENDINGS = (
    *(".jpg", ".jpeg", ".jpe", ".jfif", ".mpo", ".png", ".apng", ".gif", ".bmp", ".dib", ".webp", ".tif", ".tiff"),
    *(".ppm", ".pgm", ".pbm", ".pnm", ".jp2", ".j2k", ".jpx", ".avif", ".heic", ".heif", ".jxl", ".ico", ".tga"),
)
SPLITS = frozenset(("train", "test", "val", "valid", "validation", "dev"))


def train_split(folder: Path) -> Path:
    """The folder train/, where a folder holds nothing but the splits of a dataset; else the folder itself."""
    names = class_folders(folder)
    has_splits = "train" in names and SPLITS.issuperset(names) and bool(class_folders(folder / "train"))
    return folder / "train" if has_splits else folder


def class_folders(folder: Path) -> list[str]:
    with os.scandir(folder) as entries:
        return sorted(entry.name for entry in entries if not entry.name.startswith(".") and _is_folder(entry))


def find_in_folders(folder: Path, root: Path) -> tuple[list[Path], list[str | None], list[str]]:
    """All pictures below `root`, sorted; their labels, None for one that lies in no class folder; and notes."""
    walk = _Walk()
    walk.through(root)
    found = sorted((path.relative_to(root).parts, path) for path in walk.pictures)
    labels = [spelled(parts[0]) if len(parts) > 1 else None for parts, _ in found]
    _refuse(root, [parts for parts, _ in found], walk.notes())
    notes = [*_split_notes(folder, root), *_label_notes(root, labels), *walk.notes()]
    return [path for _, path in found], labels, notes


def pictures_below(folder: Path) -> list[Path]:
    """All pictures below a folder, whatever the folders mean, sorted by path."""
    walk = _Walk()
    walk.through(folder)
    return sorted(walk.pictures, key=lambda path: path.parts)


def spelled(name: str) -> str:
    r"""A name that can be written anywhere: bytes that are not UTF-8 become \udcNN, and a backslash is doubled.

    Doubling keeps two different names different, also where one holds such an escape in plain letters.
    """
    return name.replace("\\", "\\\\").encode("utf-8", "backslashreplace").decode()


@dataclass
class _Walk:
    pictures: list[Path] = field(default_factory=list)
    hidden: int = 0
    others: Counter[str] = field(default_factory=Counter)  # files that are no pictures, by ending
    again: list[Path] = field(default_factory=list)  # links to a folder that is read already
    closed: list[str] = field(default_factory=list)  # folders that cannot be opened, and why

    def through(self, root: Path) -> None:
        """Every folder once. Links are followed last, so that a picture is found under its own folder's name."""
        seen: set[tuple[int, int]] = set()
        waiting = deque([root])
        while waiting:
            folder = waiting.popleft()
            try:
                status = folder.stat()
                if (status.st_dev, status.st_ino) in seen:
                    self.again.append(folder)
                    continue
                seen.add((status.st_dev, status.st_ino))
                with os.scandir(folder) as listing:
                    entries = list(listing)
            except OSError as error:
                if folder == root:
                    raise
                self.closed.append(f"{spelled(str(folder))} ({error.strerror})")
                continue
            for entry in entries:
                self._take(entry, waiting)

    def _take(self, entry: os.DirEntry[str], waiting: deque[Path]) -> None:
        path = Path(entry.path)
        if entry.name.startswith("."):
            self.hidden += 1
        elif _is_folder(entry):
            (waiting.append if entry.is_symlink() else waiting.appendleft)(path)
        elif path.suffix.lower() in ENDINGS:
            self.pictures.append(path)
        else:
            self.others[path.suffix.lower()] += 1

    def notes(self) -> list[str]:
        kinds = ", ".join(f"{count} {spelled(end) or 'without ending'}" for end, count in self.others.most_common(5))
        found = (
            (self.others, f"left out {self.others.total()} file(s) that are no pictures by their names: {kinds}"),
            (self.hidden, f"left out {self.hidden} hidden file(s) or folder(s), whose names begin with a dot"),
            (self.again, f"left out {len(self.again)} link(s) to folders read already: {_some(self.again)}"),
            (self.closed, f"could not open {len(self.closed)} folder(s): {_some(self.closed)}"),
        )
        return [note for some, note in found if some]


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that points to itself
        return False


def _refuse(root: Path, found: list[tuple[str, ...]], notes: list[str]) -> None:
    classes = sorted({parts[0] for parts in found if len(parts) > 1})
    if len(classes) >= 2:
        return
    asked = f"{root} must hold at least two class folders with pictures, such as {root / 'cat' / '1.jpg'}. "
    if not found:
        seen = "; ".join(notes) or "it is empty"
        raise DataError(f"{asked}Found no picture: {seen}.")
    if not classes:
        raise DataError(
            f"{asked}Found {len(found)} picture(s) directly in it and no class folder; sort them into folders, or give "
            "a .csv with the columns path and label."
        )
    below = {parts[1] for parts in found if len(parts) > 2}
    hint = f"; did you mean {root / classes[0]}?" if len(below) > 1 else "."
    raise DataError(f"{asked}Found only {classes[0]!r}{hint}")


def _split_notes(folder: Path, root: Path) -> list[str]:
    left = [name for name in class_folders(folder) if folder != root and name != root.name]
    if not left:
        return []
    return [f"took the split {root.name!r}; left out {', '.join(left)}: for these give {folder / left[0]}"]


def _label_notes(root: Path, labels: list[str | None]) -> list[str]:
    taken = set(labels)
    notes = [f"{labels.count(None)} picture(s) lie in no class folder and have no label"] if None in taken else []
    empty = [name for name in class_folders(root) if spelled(name) not in taken]
    return [*notes, f"{len(empty)} folder(s) hold no picture: {_some(empty)}"] if empty else notes


def _some(names: list[str] | list[Path]) -> str:
    return listed([spelled(str(name)) for name in names])
