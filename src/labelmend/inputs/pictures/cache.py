"""All pictures as one array of pixels, decoded once into a file and mapped from there.

Pictures are known by hashes of what they hold: the same content is recognised wherever it lies, a changed file is
noticed.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from labelmend.errors import CacheError, ConfigError, DataError
from labelmend.files.reading import read_json
from labelmend.files.writing import clear_leftovers
from labelmend.inputs.pictures.find import Pictures
from labelmend.inputs.pictures.pixels import (
    Source,
    Sources,
    Unreadable,
    open_source,
    quiet,
    read_pixels,
    read_size,
    reasons,
    require_pillow,
)

DECODER = 1  # a change in how pixels are made is a new number, and old caches are not used
AHEAD = 4  # pictures per core that are decoded before the first of them is written
T = TypeVar("T")


@dataclass(frozen=True)
class DecodedPictures:
    pixels: NDArray[np.uint8]  # (readable pictures, height, width, 3), read-only
    readable: NDArray[np.int64]  # their positions in `Pictures`
    unreadable: dict[int, str]  # position -> reason
    fingerprint: str  # SHA-256 of contents and size


def decode(
    pictures: Pictures, size: int | tuple[int, int] | None, cache: Path, progress: Callable[[str], None]
) -> DecodedPictures:
    """Pixels of all readable pictures at `size`, (height, width) or one number for both; None: the size they share."""
    wanted = _check_size(size)
    sources = pictures.sources
    if isinstance(sources, np.ndarray) and wanted in (None, sources.shape[1:3]):
        return _as_they_are(sources)
    require_pillow()
    with quiet():
        wanted = wanted or _shared_size(pictures)
        key = _key(pictures, wanted, cache, progress)
        target = Path(cache) / f"{key}.npy"
        found = _load(target, len(pictures), wanted)
        if found is None:
            _write(pictures, wanted, target, progress)
            found = _load(target, len(pictures), wanted)
    if found is None:
        raise CacheError(f"the cache must be left alone while it is used. {target} was changed; run again.")
    return found


def native_size(pictures: Pictures) -> tuple[int, int] | None:
    """(height, width) if all pictures whose headers can be read share it, else None."""
    if isinstance(pictures.sources, np.ndarray):
        return pictures.sources.shape[1], pictures.sources.shape[2]
    shared = None
    with closing(header_sizes(pictures)) as sizes:
        for size in sizes:
            if isinstance(size, str):
                continue
            if shared not in (None, size):
                return None
            shared = size
    return shared


def header_sizes(pictures: Pictures) -> Generator[tuple[int, int] | str, None, None]:
    """(height, width) of each picture by its header, or why that cannot be read."""
    return _each(read_size, pictures.sources)


def decoded(sources: Sources, size: tuple[int, int]) -> Generator[NDArray[np.uint8] | str, None, None]:
    """The pixels of each picture at `size`, or why it cannot be read; a few at a time, and nothing is kept."""
    return _each(lambda source: read_pixels(source, size), sources)


def in_three_colours(array: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """(N, H, W), (N, H, W, 1) or (N, H, W, 3) as the last of these."""
    colours = array.reshape(*array.shape[:3], -1)
    return np.ascontiguousarray(np.broadcast_to(colours, (*array.shape[:3], 3)))


def _shared_size(pictures: Pictures) -> tuple[int, int]:
    size = native_size(pictures)
    if size is None:
        raise DataError("pictures must share one size where none is asked for. They differ, or none can be read.")
    return size


def _check_size(size: int | tuple[int, int] | None) -> tuple[int, int] | None:
    if size is None:
        return None
    sides = size if isinstance(size, tuple) else (size, size)
    if len(sides) != 2 or not all(isinstance(side, int | np.integer) and side > 0 for side in sides):
        raise ConfigError(f"size must be a number of pixels above 0, or (height, width). Got {size!r} instead.")
    return int(sides[0]), int(sides[1])


def _as_they_are(array: NDArray[np.uint8]) -> DecodedPictures:
    pixels = in_three_colours(array)
    pixels.flags.writeable = False
    digest = hashlib.sha256(f"{DECODER} {pixels.shape}".encode())
    digest.update(pixels.data)
    return DecodedPictures(pixels, np.arange(len(array)), {}, digest.hexdigest())


def _key(pictures: Pictures, size: tuple[int, int], cache: Path, progress: Callable[[str], None]) -> str:
    """Contents in their order, size, and what decodes: another Pillow may read more formats, or other pixels."""
    import PIL

    with disk_errors(cache):
        Path(cache).mkdir(parents=True, exist_ok=True)
        contents = Contents(Path(cache))
        digest = hashlib.sha256(f"{DECODER} {PIL.__version__} {size[0]}x{size[1]}".encode())
        tell = _Counter("checking pictures", len(pictures), progress)
        with closing(_each(contents.hash, pictures.sources)) as hashes:
            for content in hashes:
                digest.update(b"\n" + content.encode("utf-8", "backslashreplace"))
                tell.one_more()
        contents.save()
    return digest.hexdigest()


def _load(target: Path, n: int, size: tuple[int, int]) -> DecodedPictures | None:
    """What an earlier call wrote; None where that is missing or damaged."""
    try:
        about = read_json(target.with_suffix(".json"))
        unreadable = {int(place): str(why) for place, why in about["unreadable"].items()}
        pixels = np.load(target, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, EOFError):
        return None
    readable = np.setdiff1d(np.arange(n), list(unreadable))
    if about.get("pictures") != n or pixels.shape != (len(readable), *size, 3):
        return None
    return DecodedPictures(pixels, readable, unreadable, target.stem)


def _write(pictures: Pictures, size: tuple[int, int], target: Path, progress: Callable[[str], None]) -> None:
    clear_leftovers(target.parent, ".*.partial")
    with disk_errors(target.parent):
        _refuse_full(target.parent, len(pictures) * size[0] * size[1] * 3)
        with whole_file(target) as file:
            unreadable = _write_pixels(pictures, size, file, progress)
            with whole_file(target.with_suffix(".json")) as about:
                about.write(json.dumps({"pictures": len(pictures), "unreadable": unreadable}).encode())


def _write_pixels(
    pictures: Pictures, size: tuple[int, int], file: IO[bytes], progress: Callable[[str], None]
) -> dict[int, str]:
    """An .npy written from front to back; a full disk is then an error, where a mapped file would end the process."""
    unreadable: dict[int, str] = {}
    write_header(file, np.dtype(np.uint8), (len(pictures), *size, 3))
    tell = _Counter("decoding pictures", len(pictures), progress)
    with closing(decoded(pictures.sources, size)) as all_pixels:
        for place, pixels in enumerate(all_pixels):
            if isinstance(pixels, str):
                unreadable[place] = pixels
            else:
                file.write(pixels.data)
            tell.one_more()
    if len(unreadable) == len(pictures):
        raise DataError(f"at least one picture must be readable. None is; {pictures.ids[0]}: {unreadable[0]}.")
    file.seek(0)  # how many pictures are readable is known only now; numpy leaves room for that number to change
    write_header(file, np.dtype(np.uint8), (len(pictures) - len(unreadable), *size, 3))
    return unreadable


def write_header(file: IO[bytes], dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
    """Of an .npy. Not by `np.save`, whose error on a full disk does not say so."""
    np.lib.format.write_array_header_1_0(file, {"descr": dtype.str, "fortran_order": False, "shape": shape})


def _each(read: Callable[[Any], T], sources: Sources) -> Generator[T | str, None, None]:
    """What `read` makes of each source, in order, or why it cannot be read."""

    def one(place: int) -> T | str:
        try:
            with reasons(None):
                source = sources[place]
            return read(source)
        except Unreadable as error:
            return str(error)

    require_pillow()
    # Pillow and hashing let other threads run.
    workers = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with quiet(), closing(in_order(one, len(sources), workers, AHEAD * workers)) as found:
        yield from found


def in_order(work: Callable[[int], T], n: int, workers: int, ahead: int) -> Generator[T, None, None]:
    """work(0), work(1), ...: done by threads, at most `ahead` of them before they are taken."""
    pool = ThreadPoolExecutor(workers, thread_name_prefix="labelmend-pictures")
    waiting: deque[Future[T]] = deque()
    try:
        for place in range(n):
            waiting.append(pool.submit(work, place))
            if len(waiting) >= ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


class _Counter:
    """Says how far it is, at most once a second."""

    def __init__(self, what: str, n: int, progress: Callable[[str], None]) -> None:
        self.what, self.n, self.progress = what, n, progress
        self.done, self.told = 0, time.monotonic()
        progress(f"{what} (0 of {n:,})")

    def one_more(self) -> None:
        self.done += 1
        if time.monotonic() - self.told > 1:
            self.told = time.monotonic()
            self.progress(f"{self.what} ({self.done:,} of {self.n:,})")


@contextmanager
def whole_file(target: Path, folder: Path | None = None) -> Iterator[IO[bytes]]:
    """A file that takes its name when everything in it is on the disk; until then it lies in `folder`."""
    partial = (folder or target.parent) / f".{target.name}.{secrets.token_hex(4)}.partial"
    try:
        with partial.open("xb") as file:
            yield file
            _flush(file)
        partial.replace(target)
    finally:
        with suppress(OSError):
            partial.unlink()


def _flush(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())


def _refuse_full(folder: Path, n_bytes: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < n_bytes:
        raise CacheError(
            f"the cache {folder} must have room for {n_bytes / 1e9:.1f} GB. There are {free / 1e9:.1f} GB free; make "
            "room, choose another folder for it, or a smaller size."
        )


@contextmanager
def disk_errors(folder: Path) -> Iterator[None]:
    """An error of the disk, as an error that says what to do."""
    try:
        yield
    except CacheError:
        raise
    except OSError as error:
        raise CacheError(
            f"the cache {folder} must be writable and have room. Got: {error.strerror or error}. Make room or choose "
            "another folder, and run again; what is finished is kept."
        ) from error


INDEX = "contents.json"
SETTLED_NS = 2_000_000_000  # a file changed less than this ago may change again without a new time


class Contents:
    """Hashes of sources, remembered in `folder`. A damaged or missing index costs time, nothing else."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / INDEX
        self.known: dict[str, list[Any]] = _read(self.path)
        self.changed = False

    def hash(self, source: Source) -> str:
        """SHA-256 of the bytes; for what cannot be read, the reason, so that a repaired file counts as changed."""
        try:
            with reasons(source):
                if isinstance(source, np.ndarray):
                    return hashlib.sha256(str(source.shape).encode() + source.tobytes()).hexdigest()
                return self._file(source) if isinstance(source, Path) else _digest(source)
        except Unreadable as error:
            return f"unreadable: {error}"

    def _file(self, path: Path) -> str:
        status = os.stat(path)
        stamp = [status.st_size, status.st_mtime_ns, status.st_ctime_ns]
        name = os.path.abspath(path)
        entry = self.known.get(name, [])
        if entry[:-1] == stamp:
            return str(entry[-1])
        digest = _digest(path)
        if time.time_ns() - max(stamp[1:]) > SETTLED_NS:
            self.known[name] = [*stamp, digest]
            self.changed = True
        return digest

    def save(self) -> None:
        """Whole or not at all; of two writers the last one stays, and the other's files are hashed again."""
        if not self.changed:
            return
        with whole_file(self.path) as file:
            file.write(json.dumps(self.known).encode("ascii"))


def _digest(source: Path | bytes | None) -> str:
    with open_source(source) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read(path: Path) -> dict[str, list[Any]]:
    try:
        known = read_json(path)
    except (OSError, ValueError):
        return {}
    return {name: entry for name, entry in known.items() if isinstance(entry, list)} if isinstance(known, dict) else {}
