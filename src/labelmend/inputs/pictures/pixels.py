"""One picture as pixels: decoded, turned upright, on white, eight bits, fitted to a size.

Knows Pillow; does not know labels, other pictures or the cache. A picture that cannot be read raises `Unreadable` with
a reason a person understands; nothing else leaves. Opening never waits: pipes and devices are refused unopened.

Differs from what Pillow does by itself in: 16-bit greys are scaled, not cut off at 255; transparency shows white;
formats that start another program to be read (EPS) are not tried.
"""

from __future__ import annotations

import errno
import io
import os
import stat
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from labelmend.errors import MissingExtraError

if TYPE_CHECKING:
    from PIL import Image

Source = Path | bytes | NDArray[np.uint8] | None  # a file, an encoded picture, pixels, or nothing where a cell is empty

MAX_PIXELS = 178_956_970  # where Pillow calls a picture an attack: a small file that unpacks to half a gigabyte
LARGE_PIXELS = 25_000_000  # above it one picture at a time is decoded, so that memory does not grow with the cores
FORMATS = ("JPEG", "PNG", "GIF", "BMP", "DIB", "WEBP", "TIFF", "PPM", "JPEG2000", "AVIF", "HEIF", "JXL", "ICO", "TGA")
TOO_LARGE = f"it has more than {MAX_PIXELS // 1_000_000} million pixels"
ALPHA_MODES = ("RGBA", "LA", "PA", "RGBa", "La")
ORIENTATION = 0x0112  # the EXIF tag
TIFF_WIDTH, TIFF_HEIGHT = 0x0100, 0x0101  # tags of the header, as the picture is stored
_one_large = threading.Lock()


class Sources(Protocol):
    """A list of sources, or anything that fetches one when asked, from any thread."""

    def __len__(self) -> int: ...

    def __getitem__(self, place: int, /) -> Any: ...


class Unreadable(Exception):
    """The reason, in words that follow the name of a file and a colon."""


def require_pillow() -> None:
    """Import Pillow and its formats here, once, not in several threads at a time."""
    try:
        from PIL import Image
    except ImportError:
        raise MissingExtraError("reading pictures needs Pillow", "images") from None
    Image.init()


@contextmanager
def quiet() -> Iterator[None]:
    """No warnings of Pillow about odd files, which are handled.

    Filters of warnings are shared by all threads: the one that starts the others calls this, not each of them.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def read_size(source: Source) -> tuple[int, int]:
    """(height, width) as the picture will be shown, from its header."""
    if isinstance(source, np.ndarray):
        return source.shape[0], source.shape[1]
    with reasons(source), _opened(source) as image:
        width, height = image.size
        if image.format == "TIFF":  # newer versions of Pillow give its size as turned already
            tags: Any = getattr(image, "tag_v2", {})
            width, height = int(tags.get(TIFF_WIDTH, width)), int(tags.get(TIFF_HEIGHT, height))
        return (width, height) if _orientation(image) >= 5 else (height, width)


def read_pixels(source: Source, size: tuple[int, int]) -> NDArray[np.uint8]:
    """(height, width, 3): the short side fits, the long one is cut on both ends."""
    from PIL import Image, ImageOps

    height, width = size
    with reasons(source), _opened(source) as image:
        # A JPEG can be decoded at a half, quarter or eighth. With half as much again left to the filter, a picture of
        # 1000 x 750 for 224 takes 5.6 ms instead of 10.1, and its pixels differ by 1.4 of 255 on average.
        side = -(-max(size) * 3 // 2)
        image.draft(None, (side, side))
        large = image.width * image.height > LARGE_PIXELS
        with _one_large if large else nullcontext():
            image.load()
            upright = _upright(_rgb(image), _orientation(image))
            return np.array(ImageOps.fit(upright, (width, height), Image.Resampling.BICUBIC))


def read_picture(source: Source, side: int | None = None) -> Image.Image:
    """The whole picture, for people to look at. With `side` a JPEG may come smaller, but no side below it."""
    with reasons(source), _opened(source) as image:
        if side is not None:
            image.draft(None, (side, side))
        with _one_large if image.width * image.height > LARGE_PIXELS else nullcontext():
            image.load()
            return _upright(_rgb(image), _orientation(image)).copy()


def read_format(source: Source) -> str:
    """What the name of a file with this content would end in; nothing for what is no picture."""
    endings = {"JPEG": ".jpg", "TIFF": ".tif", "JPEG2000": ".jp2"}
    try:
        with reasons(source), _opened(source) as image:
            return endings.get(image.format or "", f".{(image.format or 'png').lower()}")
    except Unreadable:
        return ""


@contextmanager
def open_source(source: Path | bytes | None) -> Iterator[io.BytesIO | io.BufferedReader]:
    """The encoded bytes as a file."""
    if source is None:
        raise Unreadable("no picture is given")
    if isinstance(source, bytes):
        if not source:
            raise Unreadable("the picture is empty (0 bytes)")
        yield io.BytesIO(source)
        return
    status = os.stat(source)
    if stat.S_ISDIR(status.st_mode):
        raise Unreadable("it is a folder, not a file")
    if not stat.S_ISREG(status.st_mode):
        raise Unreadable("it is a pipe, socket or device, not a file")
    if status.st_size == 0:
        raise Unreadable("the file is empty (0 bytes)")
    with open(source, "rb") as file:
        yield file


@contextmanager
def reasons(source: Source) -> Iterator[None]:
    """Whatever goes wrong inside leaves as `Unreadable`."""
    try:
        yield
    except Unreadable:
        raise
    except Exception as error:  # a damaged file can make its decoder raise anything
        raise Unreadable(_reason(error, source)) from error


def _reason(error: Exception, source: Source) -> str:
    from PIL import Image, UnidentifiedImageError

    if isinstance(error, FileNotFoundError) and isinstance(source, Path) and source.is_symlink():
        return "it is a link that points nowhere"
    if isinstance(error, OSError) and error.errno == errno.ELOOP:
        return "it is a link that points to itself"
    known: dict[type[Exception], str] = {
        FileNotFoundError: "there is no such file",
        PermissionError: "permission denied",
        MemoryError: "it does not fit into memory",
        UnidentifiedImageError: "it is not a picture, or of a format that cannot be read here",
        Image.DecompressionBombError: TOO_LARGE,
    }
    damaged = f"it is damaged or cut off ({error or type(error).__name__})"
    return next((reason for kind, reason in known.items() if isinstance(error, kind)), damaged)


@contextmanager
def _opened(source: Source) -> Iterator[Image.Image]:
    """The picture with its header read, and not more."""
    from PIL import Image

    if isinstance(source, np.ndarray):
        yield Image.fromarray(source[:, :, 0] if source.ndim == 3 and source.shape[2] == 1 else source)
        return
    formats = [name for name in FORMATS if name in Image.OPEN]
    with open_source(source) as file, Image.open(file, formats=formats) as image:
        if image.width * image.height > MAX_PIXELS:
            raise Unreadable(TOO_LARGE)
        yield image


def _orientation(image: Image.Image) -> int:
    """1 to 8. Asked after loading it is 1 for a TIFF, which Pillow turns itself."""
    try:
        value = image.getexif().get(ORIENTATION, 1)
    except Exception:  # damaged EXIF does not make a picture unreadable
        return 1
    return value if isinstance(value, int) and 1 <= value <= 8 else 1


def _upright(image: Image.Image, orientation: int) -> Image.Image:
    from PIL.Image import Transpose

    turns = {
        2: Transpose.FLIP_LEFT_RIGHT,
        3: Transpose.ROTATE_180,
        4: Transpose.FLIP_TOP_BOTTOM,
        5: Transpose.TRANSPOSE,
        6: Transpose.ROTATE_270,
        7: Transpose.TRANSVERSE,
        8: Transpose.ROTATE_90,
    }
    return image.transpose(turns[orientation]) if orientation in turns else image


def _rgb(image: Image.Image) -> Image.Image:
    from PIL import Image

    if image.mode in ("I", "F") or image.mode.startswith("I;16"):
        return Image.fromarray(_eight_bits(np.asarray(image))).convert("RGB")
    if image.mode not in ALPHA_MODES and "transparency" not in image.info:
        return image if image.mode == "RGB" else image.convert("RGB")
    clear = image.convert("RGBA")
    white = Image.new("RGBA", clear.size, "white")
    return Image.alpha_composite(white, clear).convert("RGB")


def _eight_bits(grey: NDArray[np.generic]) -> NDArray[np.uint8]:
    """Whole numbers are 16-bit greys, fractions go from 0 to 1; what does not fit is stretched to its own range."""
    values = np.nan_to_num(grey.astype(np.float32), nan=0, posinf=0, neginf=0)
    low, high = 0.0, 1.0 if grey.dtype.kind == "f" else 65535.0
    if values.min() < low or values.max() > high:
        low, high = float(values.min()), float(values.max())
    scaled: NDArray[np.uint8] = np.rint((values - low) * (255 / max(high - low, 1e-30))).astype(np.uint8)
    return scaled
