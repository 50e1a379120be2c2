"""The layout of every help, and the parameters of the method as options.

The everyday ones are in every help; the others only in `--help-all`. Parameters for experts are set by
`--expert NAME=VALUE`.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import types
import typing
from typing import Any

from labelmend.config import EXPERT_NAMES, PUBLIC, RunConfig, as_word, refuse_unknown
from labelmend.errors import ConfigError

SHORT = 3  # choices that fit beside the name of an option
FIELDS = {entry.name: entry for entry in dataclasses.fields(RunConfig)}
HINTS = typing.get_type_hints(RunConfig)
YES, NO = ("true", "yes", "on", "1"), ("false", "no", "off", "0")
TUNING = "--tune and --no-tune no longer have any effect; the next release removes them"
ABOUT_EXPERT = """\
Parameters for experts, for --expert NAME=VALUE. Where no default is given, the
value depends on the size of the data; --dry-run --json prints it.
Preset paper and training on pictures have defaults of their own.
"""


class Layout(argparse.RawDescriptionHelpFormatter):
    """Lines of a terminal of 80 columns."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=26, width=80)


class HelpAll(argparse.Action):
    """Shows what `--help` leaves out; the parser was built with all of it."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        print(parser.format_help())
        print("\n".join(expert_lines()))
        parser.exit()


class Shelf:
    """A group of options of a verb; rare ones are hidden unless everything is to be shown."""

    def __init__(self, verb: argparse.ArgumentParser, title: str, everything: bool) -> None:
        self.group, self.everything = verb.add_argument_group(title), everything

    def add(self, *names: str, **how: Any) -> None:
        self.group.add_argument(*names, **how)

    def add_rare(self, *names: str, **how: Any) -> None:
        self.group.add_argument(*names, **{**how, "help": how["help"] if self.everything else argparse.SUPPRESS})


def add_parameters(verb: argparse.ArgumentParser, everything: bool) -> None:
    """The public parameters of the method, --expert, and the names that experts' parameters had of their own."""
    verb.add_argument("--help-all", nargs=0, action=HelpAll, help="every option, and the parameters for experts")
    shelf = Shelf(verb, "method", everything)
    for name in (*PUBLIC, "preset"):
        add = shelf.add_rare if name in ("audit", "device") else shelf.add
        add(_flag(name), default=None, help=_about(FIELDS[name]), **_argument(name))
    shelf.add("--expert", metavar="NAME=VALUE", action="append", default=[], help="any other; --help-all lists them")
    for name in EXPERT_NAMES:
        shelf.group.add_argument(_flag(name), default=None, help=argparse.SUPPRESS, **_argument(name))
    shelf.group.add_argument("--tune", default=None, help=argparse.SUPPRESS, action=argparse.BooleanOptionalAction)


def chosen_parameters(arguments: argparse.Namespace) -> dict[str, Any]:
    """The parameters that were named on the command line."""
    if arguments.tune is not None:
        print(f"note: {TUNING}", file=sys.stderr)
    named = {name: getattr(arguments, name) for name in FIELDS if getattr(arguments, name) is not None}
    named = {name: tuple(value) if isinstance(value, list) else value for name, value in named.items()}
    if former := [name for name in named if name in EXPERT_NAMES]:
        words = " ".join(f"--expert {name}={as_word(named[name])}" for name in former)
        print(f"note: write expert options as {words} now", file=sys.stderr)
    return {**named, **dict(_expert(text) for text in arguments.expert)}


def expert_lines() -> list[str]:
    """Every parameter for experts with what it does."""
    return [ABOUT_EXPERT, *(f"  {name}\n      {_about(FIELDS[name], ' or ')}" for name in EXPERT_NAMES)]


def _expert(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    name = name.strip().replace("-", "_")
    if not equals:
        raise ConfigError(f"--expert must be NAME=VALUE, such as n_rounds=10. Got {text!r} instead.")
    refuse_unknown([name], (*EXPERT_NAMES, *PUBLIC))
    try:
        return name, _read(HINTS[name], value.strip())
    except ValueError as error:
        raise ConfigError(f"{name} must be of type {FIELDS[name].type}. Got {value!r} instead.") from error


def _read(hint: Any, text: str) -> Any:
    if bool in (hint, *typing.get_args(hint)):
        if text.lower() not in (*YES, *NO):
            raise ValueError(text)
        return text.lower() in YES
    if typing.get_origin(hint) is tuple:
        return tuple(float(part) for part in text.replace(",", " ").split())
    return _kind(hint)(text)


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _about(entry: dataclasses.Field[Any], between: str = ", ") -> str:
    default, choices = entry.default, entry.metadata["choices"] or ()
    if isinstance(default, bool):
        default = str(default).lower()
    ending = "" if default is None or default in ((), "", 0.0, 0) else f" (default {default})"
    listed = f": {between.join(choices)}" if len(choices) > SHORT else ""
    return f"{entry.metadata['help']}{listed}{ending}".replace("%", "%%")


def _argument(name: str) -> dict[str, Any]:
    """How argparse reads this field."""
    hint, choices = HINTS[name], FIELDS[name].metadata["choices"]
    if bool in (hint, *typing.get_args(hint)):
        return {"action": argparse.BooleanOptionalAction}
    if typing.get_origin(hint) is tuple:
        return {"type": float, "nargs": "*", "metavar": "X"}
    if choices:
        return {"choices": (*choices, "plus") if name == "preset" else choices, "metavar": "NAME"}
    return {"type": _kind(hint), "metavar": {int: "N", float: "X", str: "NAME"}[_kind(hint)]}


def _kind(hint: Any) -> Any:
    members = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    return next(member for member in members if member is not type(None))
