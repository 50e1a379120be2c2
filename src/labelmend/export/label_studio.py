"""label-studio: tasks with the labels as predictions and their confidence as scores, and the labelling interface.

    OUT/tasks.json    for import: one task per sample; a picture, or the row of a table
    OUT/config.xml    for the settings of the project: the picture or row, and a choice of the classes
    OUT/images/       pictures that have no file of their own
    OUT/README.md     how to import it

Pictures stay where they are: Label Studio serves them as local files, below the folder that README.md names.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

from labelmend import __version__
from labelmend.errors import DataError
from labelmend.export.folders import common_folder, ending, place
from labelmend.export.handover import Handover, texts
from labelmend.inputs.pictures.pixels import Unreadable
from labelmend.storage.originals import OriginalPictures

NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
README = """\
# Tasks for Label Studio

1. Start Label Studio so that it may show the pictures:
   `LABEL_STUDIO_LOCAL_FILES_SERVING_ENABLED=true LABEL_STUDIO_LOCAL_FILES_DOCUMENT_ROOT={root} label-studio start`
2. Create a project; paste config.xml into Settings, Labeling Interface, Code.
3. In Settings, Cloud Storage, add a source storage of type Local files with the path {folder}.
4. Import tasks.json. The predictions are labelmend's labels; their scores are its confidence.
"""
README_ROWS = """\
# Tasks for Label Studio

1. Create a project; paste config.xml into Settings, Labeling Interface, Code.
2. Import tasks.json. The predictions are labelmend's labels; their scores are its confidence.
"""


def write_label_studio(handover: Handover, folder: Path) -> None:
    found = handover.originals
    if found.kind == "none":
        raise DataError(f"label-studio needs the pictures or rows of the run. There are none: {found.reason}.")
    handover.note_missing()
    shown: Iterable[dict[str, Any] | None]  # not all at once: rows of a wide table take gigabytes as tasks
    if isinstance(found, OriginalPictures):
        shown, readme = _pictures(handover, found, folder)
    else:
        shown = ({"row": dict(found.row(index))} for index in range(len(handover.ids)))
        readme = README_ROWS
    with (folder / "tasks.json").open("w", encoding="utf-8", errors="backslashreplace") as file:
        between = "[\n"
        for index, data in enumerate(shown):
            if data is not None:
                file.write(between + json.dumps(_task(handover, index, data), ensure_ascii=False))
                between = ",\n"
        file.write("\n]\n" if between == ",\n" else "[]\n")
    object_tag = "Image" if found.kind == "pictures" else "Table"
    (folder / "config.xml").write_text(interface(object_tag, handover.class_names), encoding="utf-8")
    (folder / "README.md").write_text(readme, encoding="utf-8", errors="backslashreplace")


def interface(tag: str, classes: list[str]) -> str:
    """The labelling interface; `tag` is Image or Table."""
    name = "image" if tag == "Image" else "row"
    view = ElementTree.Element("View")
    ElementTree.SubElement(view, "Header", value="$about")
    ElementTree.SubElement(view, tag, name=name, value=f"${name}")
    choices = ElementTree.SubElement(view, "Choices", name="label", toName=name, choice="single", showInline="true")
    for label in classes:
        ElementTree.SubElement(choices, "Choice", value=xml_text(label))
    ElementTree.indent(view)
    return ElementTree.tostring(view, encoding="unicode") + "\n"


def xml_text(text: str) -> str:
    """Characters that XML cannot hold are spelled out."""
    return NOT_XML.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def _task(handover: Handover, index: int, shown: dict[str, Any]) -> dict[str, Any]:
    given = texts(handover.given[index : index + 1])[0]
    status = str(handover.result.status[index])
    about = f"given: {given or '(none)'}, {status}"
    data = {**shown, "id": handover.ids[index], "given": given, "status": status, "about": about}
    task: dict[str, Any] = {"data": data}
    code, score = int(handover.codes[index]), handover.score(index)
    if code >= 0:
        choice = {
            "from_name": "label",
            "to_name": "image" if "image" in shown else "row",
            "type": "choices",
            "value": {"choices": [xml_text(handover.class_names[code])]},
        }
        prediction = {"model_version": f"labelmend {__version__}", "result": [choice]}
        task["predictions"] = [prediction if score is None else {**prediction, "score": score}]
    return task


def _pictures(handover: Handover, found: OriginalPictures, folder: Path) -> tuple[Iterable[dict[str, Any] | None], str]:
    """The address of each picture, None for one that cannot be had; and how to make Label Studio show them."""
    final = handover.target

    def file_of(index: int) -> Path:
        file = found.path(index)
        if file is None:  # it is inside another file: written beside the tasks
            source = found.source(index)
            name = f"{index:06d}{ending(source)}"
            (folder / "images").mkdir(exist_ok=True)
            place(source, folder / "images" / name, link=False)
            return final / "images" / name
        if not file.is_file():
            raise Unreadable("there is no such file")
        return file

    files, _ = handover.of_each(file_of)
    below = common_folder(files) or str(final.absolute())
    root = os.path.dirname(below)  # the folder of a storage must lie below the root
    addresses = [None if file is None else {"image": _address(file, root)} for file in files]
    return addresses, README.format(root=shlex.quote(root), folder=below)


def _address(file: Path, root: str) -> str:
    return f"/data/local-files/?d={quote(os.path.relpath(os.path.abspath(file), root))}"
