"""folders: one folder for each class, with the pictures of that class; those without a label lie beside them.

    OUT/cat/001.png         copied, or linked with --link
    OUT/labels.csv          file, id, label, label_given, status, confidence: the label as it is, whatever its folder
                            had to be called
    OUT/left_out.csv        id, reason; only where a picture could not be copied

The source is only read. Of two pictures with one name in a class the second gets a number.
"""

from __future__ import annotations

import os
from pathlib import Path

from labelmend.export.handover import Handover
from labelmend.export.picture_files import Names, ending, place, safe_name
from labelmend.export.tables import texts, write_rows
from labelmend.inputs.pictures.pixels import Source, Unreadable

INDEX, LEFT_OUT = "labels.csv", "left_out.csv"
COLUMNS = ("file", "id", "label", "label_given", "status", "confidence")


def write_folders(handover: Handover, folder: Path) -> None:
    pictures = handover.pictures()
    names = class_folders(handover.class_names)
    labels, given = texts(handover.labels), texts(handover.given)
    inside: dict[str, Names] = {}
    rows, left_out = [], []
    for index, (code, name) in enumerate(zip(handover.codes.tolist(), handover.ids, strict=True)):
        below = names[code] if code >= 0 else ""
        source = pictures.source(index)
        if below not in inside:
            inside[below] = Names()
            (folder / below).mkdir(exist_ok=True)
        file = os.path.join(below, inside[below].take(file_name(source, name)))
        try:
            place(source, folder / file, handover.options.link)
        except Unreadable as error:
            left_out.append((name, str(error)))
            continue
        status, sure = handover.result.status[index], handover.score_text(index)
        rows.append((file, name, labels[index], given[index], status, sure))
    write_rows(folder / INDEX, COLUMNS, rows)
    if left_out:
        write_rows(folder / LEFT_OUT, ("id", "reason"), left_out)
    handover.note_left_out(left_out, f"; see {LEFT_OUT}")
    note_renamed(handover, names)


def class_folders(classes: list[str]) -> list[str]:
    """A folder for each class; those whose names can stay as they are come first."""
    names, found = Names(), dict[str, str]()
    names.taken.update((INDEX, LEFT_OUT))
    for name in sorted(classes, key=lambda name: safe_name(name) != name):
        found[name] = names.take(name)
    return [found[name] for name in classes]


def file_name(source: Source, name: str) -> str:
    if isinstance(source, Path):
        return source.name
    end = ending(source)
    return name if name.lower().endswith(end) else name + end


def note_renamed(handover: Handover, names: list[str]) -> None:
    renamed = [(old, new) for old, new in zip(handover.class_names, names, strict=True) if old != new]
    if renamed:
        old, new = renamed[0]
        handover.notes.append(
            f"{len(renamed):,} class(es) cannot be the name of a folder, for example {old!r}: its folder is {new!r}; "
            f"{INDEX} has the labels themselves"
        )
