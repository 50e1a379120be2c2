"""JSON that may have been written by anybody: read whole or refused with a reason, and records of the types they say.

Knows JSON and dataclasses; does not know what they are about.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import types
import typing
from pathlib import Path
from typing import Any, Literal, TypeVar

from labelmend.data.regular_file import regular_file

T = TypeVar("T")


def read_json(path: Path) -> Any:
    """What the file holds. A ValueError is all that damage leads to."""
    return parse_json(regular_file(path).read_bytes())


def parse_json(text: str | bytes) -> Any:
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def checked_fields(record: T) -> T:
    """The dataclass itself, if its fields hold what their annotations say. Arrays and the like are not looked into."""
    for name, hint in _hints(typing.cast(Any, type(record))).items():
        value = getattr(record, name)
        if not _fits(value, hint):
            raise ValueError(f"{name} is {str(value)[:50]!r}, which is not of type {getattr(hint, '__name__', hint)}")
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            checked_fields(value)
    return record


@functools.cache  # slow, and the same for every line of a log
def _hints(kind: Any) -> dict[str, Any]:
    try:
        return typing.get_type_hints(kind)
    except NameError:  # it names types that only a type checker imports; such a record is not read from a file
        return {}


def _fits(value: Any, hint: Any) -> bool:
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, part) for part in parts)
    if origin is Literal:
        return isinstance(value, str) and value in parts
    if origin in (list, tuple):
        several = len(parts) == 2 and parts[1] is not Ellipsis and origin is tuple
        kinds = parts if several else parts[:1] * len(value) if isinstance(value, list | tuple) else ()
        return isinstance(value, list | tuple) and len(kinds) == len(value) and all(map(_fits, value, kinds))
    if origin is dict:
        return isinstance(value, dict) and all(_fits(v, parts[1]) for v in value.values())
    if dataclasses.is_dataclass(hint):
        return isinstance(value, typing.cast(type, hint)) and bool(checked_fields(value))
    if hint in (int, float):
        return isinstance(value, int if hint is int else int | float) and not isinstance(value, bool)
    if hint in (str, bool, type(None)):
        return isinstance(value, hint)
    return True
