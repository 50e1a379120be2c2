"""The options that describe the data of `correct` and `selftest`, and the reading of a table or pictures by them.

It imports nothing that a run needs: a wrong option or an unreadable file is reported at once.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from labelmend.cli.options import Shelf
from labelmend.config import make_config
from labelmend.errors import ConfigError, DataError
from labelmend.inputs.pictures.find import Pictures, find_pictures, holds_pictures
from labelmend.inputs.tables import Table, drop_bad_rows, load_table
from labelmend.labels import AnnotatorColumns

if TYPE_CHECKING:
    from labelmend.result import Source

Parameters = dict[str, Any]
FOR_VECTORS = ("ignore", "features", "drop_bad_rows", "pred_probs")
FOR_PICTURES = ("mode", "backbone", "size", "cache")


def add_data_options(shelf: Shelf) -> None:
    shelf.add("data", metavar="DATA", type=Path, nargs="?", help=".csv, .parquet, .npz, .npy, or a folder of pictures")
    shelf.add("--labels", metavar="COLUMN", help="label column; array of an .npz; file or column of an .npy")
    shelf.add("--id", metavar="COLUMN", help="column that names the rows")
    shelf.add("--trusted", metavar="COLUMN", help="column that marks labels known to be right (yes/no, 1/0)")
    shelf.add("--annotator", metavar="COLUMN", help="column that says who gave the label")
    shelf.add("--annotator-columns", metavar="A,B,...", help="columns with the labels of each annotator")
    repeated: dict[str, Any] = {"action": "append", "default": []}
    shelf.add("--ignore", metavar="COLUMN", **repeated, help="leave a column out; repeatable")
    shelf.add("--missing", metavar="VALUE", help="value that means no label, such as -1")
    about = "trust the decisions of a person who reviewed this run; samples are matched by their ids"
    shelf.add_rare("--trusted-from", metavar="RUN", type=Path, help=about)
    shelf.add_rare("--features", metavar="ARRAY", help="feature array of an .npz, if there are several")
    shelf.add_rare("--drop-bad-rows", action="store_true", help="leave out rows that hold NaN or infinity")
    # trusted_until: the last decision that counts, noted for --resume
    shelf.group.set_defaults(pred_probs=[], trusted_until=None)


def add_picture_options(shelf: Shelf) -> None:
    shelf.add("--mode", choices=("auto", "embed", "train"), help="frozen backbone, or nets trained on the pictures")
    about = "efficientnet-lite0 (default), hf:NAME for a vision model of Hugging Face, or its folder"
    shelf.add_rare("--backbone", metavar="NAME", help=about)
    about = "side after resizing (default: the backbone's; for training, the pictures' own up to 64, else 256)"
    shelf.add_rare("--size", type=int, metavar="PX", help=about)
    about = "folder for decoded pictures and features (default: labelmend in $XDG_CACHE_HOME or ~/.cache)"
    shelf.add_rare("--cache", type=Path, metavar="DIR", help=about)


@dataclass(frozen=True)
class TableInput:
    table: Table
    missing: Any
    source: Source
    pred_probs: dict[str, Any] | None = None

    @property
    def features(self) -> Any:
        """None where the table holds labels alone, and probabilities take their place."""
        return None if self.pred_probs is not None and not self.table.features.shape[1] else self.table.features


@dataclass(frozen=True)
class PictureInput:
    pictures: Pictures
    missing: Any
    source: Source
    named: Parameters  # the options of pictures that were used


Given = TableInput | PictureInput


def read_data(arguments: argparse.Namespace, parameters: Parameters) -> Given:
    """The table or the pictures that the options describe."""
    return (_read_pictures if is_pictures(arguments) else _read_table)(arguments, parameters)


def is_pictures(arguments: argparse.Namespace) -> bool:
    other = (arguments.labels, arguments.id, arguments.trusted, arguments.features, *arguments.ignore)
    return holds_pictures(arguments.data, other)


def _read_table(arguments: argparse.Namespace, parameters: Parameters) -> TableInput:
    _refuse(arguments, FOR_PICTURES, "pictures", f"{arguments.data} holds no pictures")
    make_config(**parameters)  # a wrong parameter is reported before the data are read
    if not arguments.data.exists():
        raise DataError(f"no such file or folder: {arguments.data}")
    annotators = _annotators(arguments)
    alone = bool(arguments.pred_probs)
    labels_are_clear = isinstance(annotators, tuple) or (alone and arguments.data.suffix == ".npy")
    if arguments.labels is None and not labels_are_clear:
        raise ConfigError(f"{arguments.verb.prog.split()[-1]} needs --labels COLUMN, the label column of the table.")
    if arguments.drop_bad_rows and alone:
        raise ConfigError("--drop-bad-rows cannot be used with --pred-probs, whose rows are those of the whole table.")
    how_read = arguments.labels, arguments.id, arguments.trusted, arguments.features, arguments.ignore, annotators
    table = load_table(arguments.data, *how_read, labels_alone=alone)
    if arguments.drop_bad_rows:
        table = drop_bad_rows(table)
    labels, trusted, notes = _with_decisions(arguments, table.ids, table.labels, table.trusted)
    table = replace(table, labels=labels, trusted=trusted, notes=[*table.notes, *notes])
    missing = _missing(arguments.missing, table.labels, table.annotators, table.notes)
    from labelmend.storage.source import table_source

    source = replace(table_source(arguments.data, *how_read), missing=arguments.missing)
    return TableInput(table, missing, source, _pred_probs(arguments, table, annotators))


def _read_pictures(arguments: argparse.Namespace, parameters: Parameters) -> PictureInput:
    from labelmend.runs.pictures import choose_mode
    from labelmend.storage.source import picture_source

    _refuse(arguments, FOR_VECTORS, "tables of feature vectors", f"{arguments.data} holds pictures")
    make = partial(make_config, **parameters)  # what is wrong is reported before the data are read
    choose_mode(arguments.mode or "auto", parameters.get("device", "auto"), lambda data: make(data=data))
    how_read = arguments.labels, arguments.id, arguments.trusted, _annotators(arguments)
    pictures = find_pictures(arguments.data, *how_read)
    given, trusted, notes = _with_decisions(arguments, pictures.ids, pictures.given, pictures.trusted)
    pictures = replace(pictures, given=list(given), trusted=trusted, notes=[*pictures.notes, *notes])
    missing = _missing(arguments.missing, pictures.given, pictures.annotators, pictures.notes)
    named = {name: getattr(arguments, name) for name in FOR_PICTURES if getattr(arguments, name) is not None}
    source = replace(picture_source(arguments.data, *how_read), missing=arguments.missing)
    return PictureInput(pictures, missing, source, named)


def _refuse(arguments: argparse.Namespace, names: tuple[str, ...], kind: str, found: str) -> None:
    if used := [name for name in names if getattr(arguments, name)]:
        options = ", ".join(f"--{name.replace('_', '-')}" for name in used)
        raise ConfigError(f"{options} can be used with {kind} only. {found}.")


def _annotators(arguments: argparse.Namespace) -> AnnotatorColumns:
    """The column of --annotator, or those of --annotator-columns."""
    if arguments.annotator_columns is None:
        return arguments.annotator  # type: ignore[no-any-return]
    if arguments.annotator is not None:
        raise ConfigError("--annotator says who gave the one label, --annotator-columns hold several. Use one of them.")
    names = tuple(name.strip() for name in arguments.annotator_columns.split(",") if name.strip())
    if not names:
        raise ConfigError("--annotator-columns must name columns, such as ann,ben,cid. Got none.")
    return names


def _pred_probs(arguments: argparse.Namespace, table: Table, annotators: AnnotatorColumns) -> dict[str, Any] | None:
    """The probabilities of the user's own models; columns that have a role in the table are no classes."""
    if not arguments.pred_probs:
        return None
    from labelmend.inputs.pred_probs import read_prob_files

    people = (annotators,) if isinstance(annotators, str) else annotators or ()
    roles = [name for name in (arguments.labels, arguments.trusted, *people) if name is not None]
    return read_prob_files(arguments.pred_probs, arguments.id, table.ids, roles)


def _with_decisions(arguments: argparse.Namespace, ids: Any, labels: Any, trusted: Any) -> tuple[Any, Any, list[str]]:
    """Labels and trust with the decisions of a person about another run. A resumed run uses those it began with."""
    if arguments.trusted_from is None:
        return labels, trusted, []
    if arguments.annotator_columns is not None and arguments.labels is None:
        raise ConfigError("--trusted-from changes labels in use. With --annotator-columns it needs --labels COLUMN.")
    from labelmend.review.apply import merge_decided, read_decided

    decided = read_decided(arguments.trusted_from, arguments.trusted_until)
    arguments.trusted_until = decided.until
    return merge_decided(decided, ids, labels, trusted)


def _missing(text: str | None, labels: Any, annotators: Any, notes: list[str]) -> Any:
    """The declared missing value as the labels spell it; a note where it never occurs."""
    columns = (labels, *annotators.values()) if isinstance(annotators, dict) else (labels,)
    missing = missing_value(text, (value for column in columns if column is not None for value in column))
    if text is not None and missing is None:
        notes.append(f"no label is the missing value {text!r}")
    return missing


def missing_value(text: str | None, labels: Iterable[Any]) -> Any:
    """The declared missing value as the labels spell it: -1 is also -1.0, as a number and as text. None: no such."""
    if text is None:
        return None
    return next((value for value in labels if value is not None and _same(value, text)), None)


def _same(value: Any, text: str) -> bool:
    try:
        if isinstance(value, int | np.integer) and text.strip().lstrip("+-").isdigit():
            return int(value) == int(text)  # as floats, neighbours beyond 2^53 are one number
        return str(value) == text or float(value) == float(text)
    except (TypeError, ValueError, OverflowError):
        return False
