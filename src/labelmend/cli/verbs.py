"""The verbs beside `correct` and `selftest`: their options, and the call that each of them makes."""

from __future__ import annotations

import argparse
import dataclasses
import json
from pathlib import Path
from typing import Any

from labelmend.cli.options import Layout
from labelmend.cli.texts import APPLY, EXPORT, EXPORT_EXAMPLES, EXPORT_MODEL, REPORT, REVIEW, UNDO


def add_demo(verbs: Any) -> None:
    verb = verbs.add_parser("demo", help="correct planted errors in pictures of clothes, in under a minute")
    verb.add_argument("--out", type=Path, metavar="RUN", help="also keep the run folder here")
    verb.add_argument("--seed", type=int, default=0, metavar="N", help="random seed (default 0)")
    verb.add_argument("--json", action="store_true", help="print the numbers as JSON")
    verb.set_defaults(run=run_demo, verb=verb)


def run_demo(arguments: argparse.Namespace) -> int:
    from labelmend.cli.demo import demo

    return demo(arguments.out, arguments.seed, arguments.json)


def add_report(verbs: Any) -> None:
    verb = verbs.add_parser(
        "report",
        help="show a run on one page that opens anywhere",
        description=REPORT,
        formatter_class=Layout,
    )
    verb.add_argument("folder", metavar="RUN", type=Path, help="run folder")
    verb.add_argument("--out", type=Path, metavar="FILE", help="file to write (default report.html in RUN)")
    verb.add_argument("--data", type=Path, metavar="PATH", help="where the pictures or the table are, if they moved")
    verb.add_argument("--force", action="store_true", help="replace FILE if there is one")
    verb.set_defaults(run=run_report, verb=verb)


def run_report(arguments: argparse.Namespace) -> None:
    from labelmend.report.write import report_command

    print("\n".join(report_command(arguments.folder, arguments.out, arguments.data, arguments.force)))


def add_review(verbs: Any) -> None:
    verb = verbs.add_parser(
        "review",
        help="look at the doubtful samples of a run, and decide them",
        description=REVIEW,
        formatter_class=Layout,
    )
    verb.add_argument("folder", metavar="RUN", type=Path, help="run folder")
    verb.add_argument("--port", type=int, default=0, metavar="N", help="port to listen on (default: any free one)")
    verb.add_argument("--no-browser", action="store_true", help="print the link, open nothing")
    verb.add_argument("--data", type=Path, metavar="PATH", help="where the data are now, if they have moved")
    verb.add_argument(
        "--follow-links", action="store_true", help="show pictures that are links to files outside of the data folder"
    )
    verb.add_argument("--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1: this machine only)")
    verb.set_defaults(run=run_review, verb=verb)


def run_review(arguments: argparse.Namespace) -> None:
    from labelmend.cli.review import review_command

    review_command(
        arguments.folder,
        arguments.port,
        arguments.host,
        not arguments.no_browser,
        arguments.data,
        arguments.follow_links,
    )


def add_apply(verbs: Any) -> None:
    verb = verbs.add_parser(
        "apply",
        help="merge what was decided in a review into the labels",
        description=APPLY,
        formatter_class=Layout,
    )
    verb.add_argument("folder", metavar="RUN", type=Path, help="run folder")
    verb.add_argument("--dry-run", action="store_true", help="say what would change; no more")
    verb.add_argument("--json", action="store_true", help="print it as JSON, with every label that changes")
    verb.set_defaults(run=run_apply, verb=verb)


def run_apply(arguments: argparse.Namespace) -> None:
    from labelmend.review.apply import apply, merge_lines

    merge = apply(arguments.folder, arguments.dry_run)
    if arguments.json:
        print(json.dumps({**dataclasses.asdict(merge), "dry_run": arguments.dry_run}))
    else:
        print("\n".join(merge_lines(merge, arguments.folder, arguments.dry_run)))


def add_export(verbs: Any) -> None:
    verb = verbs.add_parser(
        "export",
        help="hand the labels over: tables, class folders, Hugging Face, Label Studio, COCO, FiftyOne, cleanlab",
        usage="labelmend export RUN --to FORMAT [--out PATH] [option ...] | --list",
        description=EXPORT,
        epilog=EXPORT_EXAMPLES,
        formatter_class=Layout,
        allow_abbrev=False,
    )
    verb.add_argument("folder", metavar="RUN", type=Path, nargs="?", help="run folder")
    verb.add_argument("--to", metavar="FORMAT", help="one of those that --list names")
    verb.add_argument("--list", action="store_true", help="name the formats")
    verb.add_argument("--out", type=Path, metavar="PATH", help="file or folder to create")
    verb.add_argument("--force", action="store_true", help="replace the file, or the folder of an earlier export")
    verb.add_argument(
        "--review",
        default="corrected",
        choices=("corrected", "given"),
        help="doubtful labels as labelmend would have them, or as they were given (default corrected)",
    )
    verb.add_argument("--with-data", action="store_true", help="csv, parquet: your own table around the labels")
    verb.add_argument("--link", action="store_true", help="pictures by link instead of copies")
    verb.add_argument("--data", type=Path, metavar="PATH", help="where the data are now, if they have moved")
    verb.add_argument("--json", action="store_true", help="print what was written as JSON")
    verb.set_defaults(run=run_export, verb=verb)


def run_export(arguments: argparse.Namespace) -> None:
    from labelmend.cli.export import export_command

    export_command(arguments)


def add_undo(verbs: Any) -> None:
    verb = verbs.add_parser(
        "undo",
        help="take the changes of a patch back",
        description=UNDO,
        formatter_class=Layout,
        allow_abbrev=False,
    )
    verb.add_argument("patch", metavar="PATCH", type=Path, help="file written by labelmend export RUN --to patch")
    verb.add_argument(
        "--in", dest="given", required=True, type=Path, metavar="PATH", help=".csv, .parquet or class folders"
    )
    verb.add_argument("--out", required=True, type=Path, metavar="PATH", help="file or folder to create")
    verb.add_argument("--force", action="store_true", help="replace the file, or the folder of an earlier export")
    verb.add_argument("--labels", metavar="COLUMN", help="label column, if it is another than the run's")
    verb.add_argument("--id", metavar="COLUMN", help="column that names the samples, if it is another than the run's")
    verb.add_argument("--link", action="store_true", help="class folders: pictures by link instead of copies")
    verb.set_defaults(run=run_undo, verb=verb)


def run_undo(arguments: argparse.Namespace) -> None:
    from labelmend.cli.export import undo_command

    undo_command(arguments)


def add_export_model(verbs: Any) -> None:
    verb = verbs.add_parser(
        "export-model",
        help="write the classifier of a run as one ONNX file",
        description=EXPORT_MODEL,
        formatter_class=Layout,
    )
    verb.add_argument("folder", metavar="RUN", type=Path, help="run folder")
    verb.add_argument("target", metavar="FILE", type=Path, help="file to write, such as model.onnx")
    verb.add_argument("--force", action="store_true", help="replace the file if there is one")
    verb.add_argument("--backbone", metavar="NAME", help="where the backbone of embedded pictures is, if it has moved")
    verb.set_defaults(run=run_export_model, verb=verb)


def run_export_model(arguments: argparse.Namespace) -> None:
    from labelmend.models.onnx import export_model, refuse_target
    from labelmend.storage.run_folder import load

    refuse_target(arguments.target, arguments.force)
    model = load(arguments.folder, backbone=arguments.backbone).model
    export_model(model, arguments.target, arguments.force)
    print(f"{arguments.target}: gives the probabilities of the model in {arguments.folder}")
