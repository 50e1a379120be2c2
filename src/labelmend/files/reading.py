"""Files that may have been written by anybody: read whole, or refused with a reason. Nothing in them is executed."""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import os
import stat
import types
import typing
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from labelmend.errors import DataError, MissingExtraError

KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def regular_file(path: Path) -> Path:
    """The path itself, if there is a plain file; links are followed."""
    try:
        mode = os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        raise DataError(f"no such file: {path}") from None
    except (OSError, ValueError) as error:  # ValueError: a name with a null character
        raise DataError(f"{path} must be readable. Got: {getattr(error, 'strerror', None) or error}.") from error
    if not stat.S_ISREG(mode):
        kind = next((name for is_kind, name in KINDS if is_kind(mode)), "something else")
        raise DataError(f"{path} must be a regular file. It is {kind}; copy what it gives to a file first.")
    return path


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


DENSEST = 1100  # times that deflate can make bytes fewer: 1032, and a little for its own


class Arrays:
    """The arrays of an .npz by name; each is read when it is asked for."""

    def __init__(self, path: Path, archive: zipfile.ZipFile) -> None:
        self.path, self._archive = path, archive
        self.files = [name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")]

    def header(self, name: str) -> tuple[np.dtype[Any], tuple[int, ...]]:
        """Type and shape."""
        with _plain(self.path), self._archive.open(f"{name}.npy") as file:
            return _header(file)

    def __getitem__(self, name: str) -> NDArray[Any]:
        with _plain(self.path):
            member = self._archive.getinfo(f"{name}.npy")
            if member.file_size > DENSEST * max(member.compress_size, 1):
                raise ValueError("it says that it is larger than it can be")
            with self._archive.open(member) as file:
                _check_size(file, member.file_size)
            with self._archive.open(member) as file:
                array: NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
            return array


@contextmanager
def open_npz(path: Path) -> Iterator[Arrays]:
    with _plain(path):
        file = regular_file(path).open("rb")
    with file:
        with _plain(path):
            archive = zipfile.ZipFile(file)
        yield Arrays(path, archive)


def read_npy(path: Path) -> NDArray[Any]:
    with _plain(path), regular_file(path).open("rb") as file:
        if file.read(2) == b"PK":
            raise DataError(f"{path} must hold one array. It is an .npz; give it that ending.")
        file.seek(0)
        _check_size(file, os.fstat(file.fileno()).st_size)
        file.seek(0)
        array: NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
        return array


def _header(file: IO[bytes]) -> tuple[np.dtype[Any], tuple[int, ...]]:
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(file)
    return dtype, shape


def _check_size(file: IO[bytes], size: int) -> None:
    dtype, shape = _header(file)
    if dtype.hasobject:
        raise ValueError("it holds Python objects")
    if any(side < 0 for side in shape) or math.prod(shape) * dtype.itemsize != size - file.tell():
        raise ValueError(f"it is too short or too long for an array of shape {shape}")


@contextmanager
def _plain(path: Path) -> Iterator[None]:
    """Whatever goes wrong inside is said of the file; what the system says of opening it is left as it is."""
    try:
        yield
    except DataError:
        raise
    except Exception as error:  # a damaged file can make its reader raise anything
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise DataError(
            f"{path} must be a numpy file of numbers or text. It is damaged, or holds Python objects, which are not "
            f"read because they can run code; save text as array.astype(str). Reading it gave: "
            f"{str(error) or type(error).__name__}."
        ) from error


METADATA = b"huggingface"  # key of a schema under which Hugging Face's library notes the features of columns


def require_pyarrow(what: str) -> Any:
    """The library; `what` needs it, for the message where it is not installed."""
    try:
        import pyarrow
        import pyarrow.ipc
        import pyarrow.parquet
    except ImportError:
        raise MissingExtraError(f"{what} needs pyarrow", "tables") from None
    return pyarrow


def read_parquet(path: Path) -> Any:
    """An Arrow table."""
    pyarrow = require_pyarrow("reading .parquet")
    regular_file(path)
    try:
        return pyarrow.parquet.read_table(path)
    except (OSError, ValueError, TypeError, MemoryError, pyarrow.ArrowException) as error:
        raise DataError(f"{path} must be a Parquet file. Could not read it: {error}") from error


def noted_features(table: Any) -> dict[str, Any]:
    """What Hugging Face's library notes of the columns; nothing where it has noted nothing, or not in its way."""
    try:
        about = parse_json((table.schema.metadata or {}).get(METADATA, b"{}"))
        features = about.get("info", {}).get("features")
    except (ValueError, AttributeError):
        return {}
    return features if isinstance(features, dict) else {}
