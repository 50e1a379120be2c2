"""What is made of a run folder: `labelmend report`, `export`, `undo`, `export-model`.

Knows the options of the command line; does not know the formats.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from labelmend.errors import ConfigError
from labelmend.report.wording import printable

REPORT = """\
Write one HTML file about a run: what changed, how wrong the labels of each
class are, a map of the samples, those worth a look, and how it was made.

It opens without a network and contains everything it shows, small pictures
included. `correct` writes it already; write it again when data have moved or
decisions were applied.
"""
EXPORT_MODEL = """\
Write the classifier of a run as one ONNX file.

It takes pixels (n, height, width, 3) of uint8 at the model's size, or rows
(n, columns) of float32 as in the table, and gives probabilities (n, classes).
Colours, cropping, backbone and scaling are part of it. The metadata name the
classes, in order, and the size. Before the file gets its name, its output is
compared with the original's.
"""
EXPORT = """\
Write the labels of a run for other tools. `labelmend export --list` names the
formats. The data of the run are only read. The target is a new file or folder,
by default beside the run; it appears only once it is complete.
"""
EXPORT_EXAMPLES = """\
examples:
  labelmend export run/ --to csv --out labels.csv
  labelmend export run/ --to csv --with-data --out table_corrected.csv
  labelmend export run/ --to folders --out sorted/ --link
  labelmend export run/ --to huggingface --review given
  labelmend export run/ --to patch --out run.patch.json
  labelmend undo run.patch.json --in table_corrected.csv --out table_again.csv

Cells are written unchanged, even if they begin with = + - or @: to open such a
.csv in a spreadsheet, import it as text.
"""
UNDO = """\
Take back the changes of a patch: in a .csv or .parquet that holds the new
labels, or in class folders that `labelmend export --to folders` made. Either
all of them or none: if samples have a different label now, they are named and
nothing is written. The input is only read.
"""


def add_report(verb: argparse.ArgumentParser, everything: bool) -> None:
    verb.description = REPORT
    verb.add_argument("folder", metavar="RUN", type=Path, help="run folder")
    verb.add_argument("--out", type=Path, metavar="FILE", help="file to write (default report.html in RUN)")
    verb.add_argument("--data", type=Path, metavar="PATH", help="where the pictures or the table are, if they moved")
    verb.add_argument("--force", action="store_true", help="replace FILE if it exists")
    verb.set_defaults(run=run_report)


def run_report(arguments: argparse.Namespace) -> None:
    from labelmend.report.write import report_command

    print("\n".join(report_command(arguments.folder, arguments.out, arguments.data, arguments.force)))


def add_export(verb: argparse.ArgumentParser, everything: bool) -> None:
    verb.usage = "labelmend export RUN --to FORMAT [--out PATH] [option ...] | --list"
    verb.description, verb.epilog = EXPORT, EXPORT_EXAMPLES
    verb.add_argument("folder", metavar="RUN", type=Path, nargs="?", help="run folder")
    verb.add_argument("--to", metavar="FORMAT", help="a format that --list names")
    verb.add_argument("--list", action="store_true", help="name the formats")
    verb.add_argument("--out", type=Path, metavar="PATH", help="file or folder to create")
    verb.add_argument("--force", action="store_true", help="replace the file, or the folder of an earlier export")
    about = "for uncertain samples, write the suggested or the given label (default corrected)"
    verb.add_argument("--review", default="corrected", choices=("corrected", "given"), help=about)
    verb.add_argument("--with-data", action="store_true", help="csv, parquet: your own table with the labels replaced")
    verb.add_argument("--link", action="store_true", help="link to pictures instead of copying them")
    verb.add_argument("--data", type=Path, metavar="PATH", help="where the data are now, if they have moved")
    verb.add_argument("--json", action="store_true", help="print what was written as JSON")
    verb.set_defaults(run=run_export)


def run_export(arguments: argparse.Namespace) -> None:
    from labelmend.export.formats import FORMATS, check_options, default_target, export, find_format
    from labelmend.export.handover import Options
    from labelmend.storage.run_folder import load_labels

    if arguments.list:
        print("\n".join(f"{one.name:<14}{one.about}" for one in FORMATS.values()))
        return
    if arguments.folder is None or arguments.to is None:
        raise ConfigError("export needs RUN and --to FORMAT; `labelmend export --list` names the formats.")
    chosen = find_format(arguments.to)
    options = Options(arguments.review, arguments.link, arguments.with_data, arguments.data)
    check_options(chosen, options)  # a wrong option is reported before the run is read
    target = arguments.out or default_target(arguments.folder, chosen)
    result = load_labels(arguments.folder)
    done = export(result, chosen.name, target, arguments.force, arguments.folder, **vars(options))
    if arguments.json:
        about = {"out": str(done.path), "to": chosen.name, "samples": len(result), "changed": done.n_changed}
        print(json.dumps({**about, "notes": done.notes}))
        return
    print(f"{done.path}: {len(result):,} samples, {done.n_changed:,} with a label other than the given one")
    for note in done.notes:
        print(f"note: {printable(note)}")


def add_undo(verb: argparse.ArgumentParser, everything: bool) -> None:
    verb.description = UNDO
    verb.add_argument("patch", metavar="PATCH", type=Path, help="file written by labelmend export RUN --to patch")
    required: dict[str, Any] = {"required": True, "type": Path, "metavar": "PATH"}
    verb.add_argument("--in", dest="given", **required, help=".csv, .parquet or class folders")
    verb.add_argument("--out", **required, help="file or folder to create")
    verb.add_argument("--force", action="store_true", help="replace the file, or the folder of an earlier export")
    verb.add_argument("--labels", metavar="COLUMN", help="label column, if it differs from the run's")
    verb.add_argument("--id", metavar="COLUMN", help="column that names the samples, if it differs from the run's")
    verb.add_argument("--link", action="store_true", help="class folders: link to pictures instead of copying them")
    verb.set_defaults(run=run_undo)


def run_undo(arguments: argparse.Namespace) -> None:
    from labelmend.export.patch import Columns, undo

    columns = Columns(arguments.labels, arguments.id)
    restored = undo(arguments.patch, arguments.given, arguments.out, arguments.force, columns, arguments.link)
    print(printable(f"{arguments.out}: {len(restored):,} labels restored as they were before {arguments.patch}"))


def add_export_model(verb: argparse.ArgumentParser, everything: bool) -> None:
    verb.description = EXPORT_MODEL
    verb.add_argument("folder", metavar="RUN", type=Path, help="run folder")
    verb.add_argument("target", metavar="FILE", type=Path, help="file to write, such as model.onnx")
    verb.add_argument("--force", action="store_true", help="replace the file if it exists")
    verb.add_argument("--backbone", metavar="NAME", help="where the backbone of embedded pictures is, if it has moved")
    verb.set_defaults(run=run_export_model)


def run_export_model(arguments: argparse.Namespace) -> None:
    from labelmend.models.onnx import export_model, refuse_target
    from labelmend.storage.run_folder import load

    refuse_target(arguments.target, arguments.force)
    model = load(arguments.folder, backbone=arguments.backbone).model
    export_model(model, arguments.target, arguments.force)
    print(f"{arguments.target}: gives the same probabilities as the model in {arguments.folder}")
