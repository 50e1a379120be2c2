"""patch: the changed labels alone, as JSON that can be read, sent, and undone with `labelmend undo`.

    format, format_version, fingerprint   what it is, and of which data
    data, labels, id, missing             name of the file or folder, its label and id column, what stood for no label
    samples, changes                      how many samples there were, and for each changed one
                                          {"id", "old", "new", "confidence"}; old is null where there was no label

Knows JSON; does not know how changes are taken back: `undo.py` does.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from labelmend.errors import DataError
from labelmend.export.handover import Handover
from labelmend.files.reading import checked_fields, read_json, regular_file

FORMAT, FORMAT_VERSION = "labelmend patch", 1


@dataclass(frozen=True)
class Change:
    id: str
    old: str | float | bool | None  # None: there was no label
    new: str | float | bool | None
    confidence: float | None


@dataclass(frozen=True)
class Patch:
    fingerprint: str
    data: str | None
    labels: str | None
    id: str | None
    missing: str | None
    samples: int
    changes: list[Change]


def write_patch(handover: Handover, path: Path) -> None:
    result, source = handover.result, handover.result.source
    labels, given = handover.labels, handover.given
    changes = [
        Change(handover.ids[index], given[index], labels[index], handover.score(index))
        for index in np.flatnonzero(handover.changed).tolist()
    ]
    patch = Patch(
        result.fingerprint,
        os.path.basename(source.path) if source and source.path else None,
        source.labels if source else None,
        source.id if source else None,
        source.missing if source else None,
        len(result),
        changes,
    )
    about = {"format": FORMAT, "format_version": FORMAT_VERSION, **asdict(patch)}
    text = json.dumps(about, indent=1, ensure_ascii=False) + "\n"
    path.write_text(text, encoding="utf-8", errors="backslashreplace")


def read_patch(path: Path) -> Patch:
    regular_file(path)
    try:
        found = read_json(path)
        about = found.pop("format"), found.pop("format_version")
        changes = [Change(**change) for change in found.pop("changes")]
        patch = checked_fields(Patch(**found, changes=changes))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"{path} must be a patch that `labelmend export --to patch` wrote. It is not, or it is damaged: {error}."
        ) from error
    if about != (FORMAT, FORMAT_VERSION):
        raise DataError(f"the patch must be of format {FORMAT_VERSION}. {path} is {about[0]!r} of format {about[1]}.")
    return patch
