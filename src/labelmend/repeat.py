"""The command or the call that gives a result again, as text for people. Knows options and values, not what they do."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

NOT_AGAIN = ("data", "force", "trusted_until")  # the data come first, nothing is to be replaced
PLAIN = (str, int, float, bool, type(None), tuple, Path)


def command_text(options: Mapping[str, Any], parameters: Mapping[str, Any], out: Any) -> str:
    """`labelmend correct DATA ... --out RUN` with what was named: options first, then parameters of the method."""
    words = ["labelmend", "correct", str(options["data"])]
    for name, value in {**options, **parameters, "out": out}.items():
        if name not in NOT_AGAIN and value is not None and value != [] and not (name in options and value is False):
            words += _option(name, value)
    return shlex.join(words)


def call_text(function: str, positional: Mapping[str, Any], named: Mapping[str, Any]) -> str:
    """`labelmend.function(...)`; what cannot be written down, such as an array, appears under its own name."""
    values = [_value(name, value) for name, value in positional.items()]
    values += [f"{name}={_value(name, value)}" for name, value in named.items() if value is not None]
    return f"labelmend.{function}({', '.join(values)})"


def _option(name: str, value: Any) -> list[str]:
    option = f"--{name.replace('_', '-')}"
    if isinstance(value, bool):
        return [option if value else f"--no-{name.replace('_', '-')}"]
    if isinstance(value, list):  # an option that was given several times
        return [word for item in value for word in (option, str(item))]
    if isinstance(value, tuple):
        return [option, *map(str, value)]
    return [option, str(value)]


def _value(name: str, value: Any) -> str:
    if not isinstance(value, PLAIN):
        return name
    return repr(str(value)) if isinstance(value, Path) else repr(value)
