"""Where the data of a run came from, enough to read them again; and the command or call that gives the result again."""

from __future__ import annotations

import hashlib
import os
import platform
import shlex
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any

from labelmend.config import EXPERT_NAMES, as_word
from labelmend.files.reading import checked_fields, regular_file
from labelmend.inputs.frames import saved_state
from labelmend.labels import AnnotatorColumns
from labelmend.result import Source

ARRAYS = Source("arrays")


def table_source(
    path: Path,
    labels: str | None,
    id: str | None = None,
    trusted: str | None = None,
    features: str | None = None,
    ignore: Sequence[str] = (),
    annotators: AnnotatorColumns = None,
) -> Source:
    """A table of feature vectors, as `load_table` reads it."""
    if labels is not None and path.suffix.lower() == ".npy" and labels.endswith(".npy"):
        labels = os.path.abspath(labels)
    named = labels, id, trusted, features, tuple(ignore)
    return Source("table", os.path.abspath(path), digest(path), *named, annotators=annotators)


def picture_source(
    path: Path,
    labels: str | None = None,
    id: str | None = None,
    trusted: str | None = None,
    annotators: AnnotatorColumns = None,
) -> Source:
    """Pictures, as `find_pictures` finds them."""
    return Source("pictures", os.path.abspath(path), digest(path), labels, id, trusted, annotators=annotators)


def source_of_pictures(given: Any, labels: str | None, id: Any, trusted: Any, annotators: Any = None) -> Source:
    """What was given to `correct_images`: a folder or file, a list of paths, or pixels."""
    if isinstance(given, str | os.PathLike):
        return picture_source(Path(given), labels, id, trusted, annotators)
    if isinstance(given, Sequence) and given and all(isinstance(item, str | os.PathLike) for item in given):
        return Source("pictures", files=tuple(os.path.abspath(item) for item in given))
    return ARRAYS


def places(source: Source | None, data: Path | None = None) -> list[Path]:
    """What belongs to the user: the files or the folder a run was made of, and where they are said to be now."""
    if source is None or source.path is None:
        files = () if source is None else source.files or ()
        return [*map(Path, files), *([] if data is None else [data])]
    was = Path(source.path)
    if data is None:
        return [was]
    return [was, data / was.name if (data / was.name).is_file() else data]


def source_from(record: dict[str, Any]) -> Source:
    """From JSON, which has lists only."""
    fields: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in record.items()}
    fields["read_back"] = True
    return checked_fields(Source(**fields))


def digest(path: Path) -> str | None:
    """SHA-256 of what tells one version of the data from another."""
    described = saved_state(path) if path.is_dir() else path
    if described is None:
        return _digest_of_names(path)
    with regular_file(described).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _digest_of_names(folder: Path) -> str:
    """Of every file below: its name and how long it is. Contents would have to be read, all of them."""
    found = []
    for above, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):  # a link that points nowhere
                path = os.path.join(above, name)
                found.append(f"{os.path.relpath(path, folder)}\0{os.stat(path).st_size}")
    return hashlib.sha256("\n".join(sorted(found)).encode("utf-8", "surrogatepass")).hexdigest()


NOT_AGAIN = ("data", "force", "trusted_until")  # the data come first, nothing is to be replaced
PLAIN = (str, int, float, bool, type(None), tuple, Path)


def command_text(options: Mapping[str, Any], parameters: Mapping[str, Any], out: Any) -> str:
    """`labelmend correct DATA ... --out RUN` with what was named: options first, then parameters of the method."""
    words = ["labelmend", "correct", str(options["data"])]
    for name, value in {**options, **parameters, "out": out}.items():
        if name not in NOT_AGAIN and value is not None and value != [] and not (name in options and value is False):
            words += ["--expert", f"{name}={as_word(value)}"] if name in EXPERT_NAMES else _option(name, value)
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
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {_value(key, one)}" for key, one in value.items()) + "}"
    if not isinstance(value, PLAIN):
        return name
    return repr(str(value)) if isinstance(value, Path) else repr(value)


def versions() -> dict[str, str]:
    """Versions of what made a result; "source" where labelmend is not installed."""
    names = ("labelmend", "torch", "numpy", "scipy", "scikit-learn")
    found = {"python": platform.python_version(), "platform": sys.platform}
    return {**found, **{name: version_of(name) or "source" for name in names}}


def version_of(library: str) -> str | None:
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return None
