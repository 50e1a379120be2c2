"""Every format an export can have, in one table; and `export`, which writes one of them.

Knows which writer belongs to which name; does not know the command line.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from labelmend.errors import ConfigError
from labelmend.export.annotations import write_coco, write_fiftyone
from labelmend.export.folders import write_folders
from labelmend.export.handover import Handover, Options, make_handover
from labelmend.export.hugging_face import write_hugging_face
from labelmend.export.label_studio import write_label_studio
from labelmend.export.patch import write_patch
from labelmend.export.tables import write_cleanlab, write_csv, write_parquet
from labelmend.inputs.pictures.pixels import quiet
from labelmend.result import Correction
from labelmend.storage.source import places
from labelmend.storage.target import whole


@dataclass(frozen=True)
class Format:
    name: str
    ending: str  # of the default target
    about: str
    write: Callable[[Handover, Path], None]
    folder: bool = False
    takes: tuple[str, ...] = ()  # options that mean something to it: link, with_data


FORMATS = {
    one.name: one
    for one in (
        Format("csv", ".csv", "id, label, label_given, status, confidence", write_csv, takes=("with_data",)),
        Format("parquet", ".parquet", "the same, with labels in their own type", write_parquet, takes=("with_data",)),
        Format("patch", ".patch.json", "the changed labels alone, for labelmend undo", write_patch),
        Format("folders", "-folders", "pictures in class folders", write_folders, True, ("link",)),
        Format("huggingface", "-huggingface", "for datasets.load_from_disk", write_hugging_face, True, ("link",)),
        Format("label-studio", "-label-studio", "tasks with predictions and scores", write_label_studio, True),
        Format("coco", ".coco.json", "images, categories, annotations as in COCO", write_coco),
        Format("fiftyone", "-fiftyone", "FiftyOneImageClassificationDataset", write_fiftyone, True, ("link",)),
        Format("cleanlab", ".cleanlab.csv", 'the columns of Datalab.get_issues("label")', write_cleanlab),
    )
}


@dataclass(frozen=True)
class Exported:
    path: Path
    n_changed: int  # labels that are others than the given ones
    notes: list[str]


def export(
    result: Correction,
    to: str,
    path: Path,
    force: bool = False,
    run: Path | None = None,
    *,
    review: str = "corrected",
    link: bool = False,
    with_data: bool = False,
    data: Path | None = None,
) -> Exported:
    """Write `result` in the format `to`; `run` is its folder, if it has one; the rest are the fields of `Options`."""
    options, chosen = Options(review, link, with_data, data), find_format(to)
    check_options(chosen, options)
    keep = [*([] if run is None else [run]), *places(result.source, options.data)]
    marker = {"to": chosen.name} if chosen.folder else None
    handover = make_handover(result, run or path, path.absolute(), options)
    with whole(path, force, marker, keep) as partial, quiet():
        chosen.write(handover, partial)
    return Exported(path, int(handover.changed.sum()), handover.notes)


def find_format(name: str) -> Format:
    if name in FORMATS:
        return FORMATS[name]
    near = difflib.get_close_matches(name, FORMATS, n=1)
    hint = f"; did you mean {near[0]}?" if near else "."
    raise ConfigError(f"the format must be one of {', '.join(FORMATS)}. Got {name!r} instead{hint}")


def check_options(chosen: Format, options: Options) -> None:
    if options.review not in ("corrected", "given"):
        raise ConfigError(f'review must be "corrected" or "given". Got {options.review!r} instead.')
    for name in ("link", "with_data"):
        if getattr(options, name) and name not in chosen.takes:
            takers = ", ".join(one.name for one in FORMATS.values() if name in one.takes)
            raise ConfigError(f"--{name.replace('_', '-')} can be used with {takers} only. Got {chosen.name} instead.")


def default_target(run: Path, chosen: Format) -> Path:
    place = run.resolve()
    return Path(os.path.relpath(place.parent / f"{place.name}{chosen.ending}"))
