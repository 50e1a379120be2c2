"""The parameters of the method as options of the command line: one for each field of `RunConfig`, none is missing."""

from __future__ import annotations

import argparse
import dataclasses
import sys
import types
import typing
from typing import Any

from labelmend.config import RunConfig

SHORT = 3  # choices that fit beside the name of an option
EVERYDAY = ("assume",)  # beside the first ones, wherever else they belong
# The parameters of RunConfig in sections; a section begins at the field named here.
SECTIONS = {
    "preset": "parameters of the method",
    "n_branches": "the ensemble",
    "hidden": "nets and training",
    "graph_k": "graphs and votes",
    "decide": "the decision",
}
ABOUT_PARAMETERS = """\
Defaults are those of preset plus. Where none is named, the value follows the
size of the data; --dry-run prints what it would be. Training on pictures has
defaults of its own; --dry-run --json prints them all.
"""
WITHOUT_EFFECT = "no effect any more, and gone with the next release: the weights of the pool follow the data"


def add_parameters(verb: argparse.ArgumentParser) -> None:
    """One option per field of RunConfig, so that there is no parameter the command line does not have."""
    hints = typing.get_type_hints(RunConfig)
    everyday = group = verb.add_argument_group(SECTIONS["preset"], ABOUT_PARAMETERS)
    for entry in dataclasses.fields(RunConfig):
        if entry.name in SECTIONS and entry.name != "preset":
            group = verb.add_argument_group(SECTIONS[entry.name])
        name = "--" + entry.name.replace("_", "-")
        place = everyday if entry.name in EVERYDAY else group
        place.add_argument(name, default=None, help=_about(entry), **_argument(entry, hints[entry.name]))
    group.add_argument("--tune", default=None, help=WITHOUT_EFFECT, action=argparse.BooleanOptionalAction)


def chosen_parameters(arguments: argparse.Namespace) -> dict[str, Any]:
    """The parameters that were named on the command line."""
    if arguments.tune is not None:
        print(f"note: --tune and --no-tune: {WITHOUT_EFFECT}", file=sys.stderr)
    named = {entry.name: getattr(arguments, entry.name) for entry in dataclasses.fields(RunConfig)}
    return {name: tuple(v) if isinstance(v, list) else v for name, v in named.items() if v is not None}


def _about(entry: dataclasses.Field[Any]) -> str:
    default, choices = entry.default, entry.metadata["choices"] or ()
    if isinstance(default, bool):
        default = "on" if default else "off"
    ending = "" if default is None or default == () else f" (default {default})"
    listed = f": {', '.join(choices)}" if len(choices) > SHORT else ""
    return f"{entry.metadata['help']}{listed}{ending}".replace("%", "%%")


def _argument(entry: dataclasses.Field[Any], hint: Any) -> dict[str, Any]:
    """How argparse reads a field of this type."""
    if bool in (hint, *typing.get_args(hint)):
        return {"action": argparse.BooleanOptionalAction}
    if typing.get_origin(hint) is tuple:
        return {"type": float, "nargs": "*", "metavar": "X"}
    if choices := entry.metadata["choices"]:
        return {"choices": choices, "metavar": "NAME" if len(choices) > SHORT else None}
    members = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    kind = next(member for member in members if member is not type(None))
    return {"type": kind, "metavar": {int: "N", float: "X", str: "NAME"}[kind]}
