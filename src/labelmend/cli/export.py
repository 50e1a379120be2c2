"""`labelmend export` and `labelmend undo`: read the options, call the library, print.

Knows the options of the command line; does not know the formats.
"""

from __future__ import annotations

import argparse
import json

from labelmend.errors import ConfigError
from labelmend.export.formats import FORMATS, check_options, default_target, export, find_format
from labelmend.export.handover import Options
from labelmend.export.patch import Columns, undo
from labelmend.report.wording import printable
from labelmend.storage.run_folder import load_labels


def export_command(arguments: argparse.Namespace) -> None:
    if arguments.list:
        print("\n".join(f"{one.name:<14}{one.about}" for one in FORMATS.values()))
        return
    if arguments.folder is None or arguments.to is None:
        raise ConfigError("export needs RUN and --to FORMAT; `labelmend export --list` names the formats.")
    chosen = find_format(arguments.to)
    options = Options(arguments.review, arguments.link, arguments.with_data, arguments.data)
    check_options(chosen, options)  # what is wrong here is told before the run is read
    target = arguments.out or default_target(arguments.folder, chosen)
    result = load_labels(arguments.folder)
    done = export(result, chosen.name, target, arguments.force, arguments.folder, **vars(options))
    if arguments.json:
        about = {"out": str(done.path), "to": chosen.name, "samples": len(result), "changed": done.n_changed}
        print(json.dumps({**about, "notes": done.notes}))
        return
    print(f"{done.path}: {len(result):,} samples, {done.n_changed:,} of them with another label than given")
    for note in done.notes:
        print(f"note: {printable(note)}")


def undo_command(arguments: argparse.Namespace) -> None:
    columns = Columns(arguments.labels, arguments.id)
    taken_back = undo(arguments.patch, arguments.given, arguments.out, arguments.force, columns, arguments.link)
    print(printable(f"{arguments.out}: {len(taken_back):,} labels as they were before {arguments.patch}"))
