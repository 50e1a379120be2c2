"""Files of numpy, .npy and .npz, that may have been written by anybody.

Nothing in a file is executed: arrays of Python objects, which numpy would unpickle, are refused. An array is only made
room for once the file is known to hold as much as its header says.
"""

from __future__ import annotations

import math
import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from labelmend.data.regular_file import regular_file
from labelmend.errors import DataError

DENSEST = 1100  # times that deflate can make bytes fewer: 1032, and a little for its own
MAGIC = b"\x93NUMPY"


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
