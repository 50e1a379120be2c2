"""Pictures -> features of a frozen backbone, computed once and kept on disk: in blocks while they are computed, in one
.npy when they are complete.
"""

from __future__ import annotations

import hashlib
import mmap
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from labelmend.errors import ConfigError
from labelmend.inputs.backbones import Backbone
from labelmend.inputs.pictures.cache import disk_errors, in_order, whole_file, write_header

CACHE_VERSION = 1
BATCH_CPU, BATCH_GPU = 32, 128
PictureProgress = Callable[[int, int], None]  # pictures done, pictures in all


def backbone_features(
    pixels: NDArray[np.uint8],
    backbone: Backbone,
    cache: Path,
    fingerprint: str,
    device: torch.device,
    progress: PictureProgress | None = None,
) -> NDArray[np.float32]:
    """(n, d) features of the pictures `pixels` (n, H, W, 3), which may be a file mapped into memory.

    fingerprint: stands for the content of the pictures; features are found again under it.
    The result stays on disk until it is read; changes to it stay in memory.
    """
    store = FeatureCache(Path(cache), cache_key(pixels.shape, backbone, fingerprint), len(pixels))
    ready = store.load()
    if ready is not None:
        return ready
    _compute(pixels, backbone, store, device, progress or (lambda done, total: None))
    return store.finish()


def cache_key(shape: Sequence[int], backbone: Backbone, fingerprint: str) -> str:
    """The same for the same features. What a person reads in it is only a help."""
    how = (CACHE_VERSION, fingerprint, tuple(shape), backbone.identity, backbone.size, backbone.mean, backbone.std)
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", backbone.name)[-40:].strip("-.")
    return f"{name}-{backbone.size}-{hashlib.sha256(repr(how).encode()).hexdigest()[:32]}"


def _compute(
    pixels: NDArray[np.uint8], backbone: Backbone, store: FeatureCache, device: torch.device, progress: PictureProgress
) -> None:
    missing = store.missing()
    if not missing:
        return
    backbone.net.to(device)
    size = BATCH_GPU if device.type == "cuda" else BATCH_CPU
    spans = [(a, min(a + size, stop)) for start, stop in missing for a in range(start, stop, size)]
    done = len(pixels) - sum(stop - start for start, stop in missing)
    batches = _read_ahead(pixels, spans, pin=device.type == "cuda")
    for start, stop in missing:
        parts: list[Tensor] = []
        for _ in range(start, stop, size):
            parts.append(backbone.features(next(batches).to(device, non_blocking=True)))
            done += len(parts[-1])
            progress(done, len(pixels))
        rows: NDArray[np.float32] = torch.cat(parts).cpu().numpy()
        _check_finite(rows, start, backbone)
        store.write((start, stop), rows)
        _let_go(pixels)


def _read_ahead(pixels: NDArray[np.uint8], spans: list[Span], pin: bool) -> Iterator[Tensor]:
    """The pictures of each span; the next one is read while the caller works on this one."""

    def read(start: int, stop: int) -> Tensor:
        batch = torch.from_numpy(np.array(pixels[start:stop]))  # a copy: this is where a mapped file is read
        return batch.pin_memory() if pin else batch

    return in_order(lambda place: read(*spans[place]), len(spans), workers=1, ahead=2)


def _let_go(pixels: NDArray[np.uint8]) -> None:
    """Give the memory of a mapped file back: pages that were read would count as ours until the end.

    Only where the file was mapped for reading: elsewhere changes that live in memory would be lost.
    """
    if not isinstance(pixels, np.memmap) or pixels.mode != "r" or not hasattr(mmap, "MADV_DONTNEED"):
        return
    base: object = pixels
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, mmap.mmap):
        base.madvise(mmap.MADV_DONTNEED)


def _check_finite(rows: NDArray[np.float32], start: int, backbone: Backbone) -> None:
    wrong = ~np.isfinite(rows).all(axis=1)
    if wrong.any():
        raise ConfigError(
            f"features must be finite numbers. The backbone {backbone.name} gave others for {int(wrong.sum())} of "
            f"{len(rows)} pictures, the first at position {start + int(wrong.argmax())}."
        )


BLOCK_ROWS = 1024  # at 50 pictures a second, a killed run loses 20 seconds at most
Span = tuple[int, int]


@dataclass(frozen=True)
class FeatureCache:
    folder: Path
    key: str
    n_rows: int

    @property
    def path(self) -> Path:
        return self.folder / f"{self.key}.npy"

    @property
    def blocks(self) -> Path:
        return self.folder / f"{self.key}.blocks"

    def spans(self) -> list[Span]:
        return [(start, min(start + BLOCK_ROWS, self.n_rows)) for start in range(0, self.n_rows, BLOCK_ROWS)]

    def missing(self) -> list[Span]:
        """Blocks that are still to be computed."""
        return [span for span in self.spans() if _read(self._block(span), span[1] - span[0]) is None]

    def load(self) -> NDArray[np.float32] | None:
        """All rows, left on disk until they are read, or None. Changes to the array stay in memory."""
        whole = _read(self.path, self.n_rows)
        if whole is not None:
            shutil.rmtree(self.blocks, ignore_errors=True)
        return whole

    def write(self, span: Span, rows: NDArray[np.float32]) -> None:
        self._put(self._block(span), len(rows), [rows])

    def finish(self) -> NDArray[np.float32]:
        """One file out of all blocks, a block in memory at a time."""
        self._put(self.path, self.n_rows, (np.load(self._block(span), allow_pickle=False) for span in self.spans()))
        whole = self.load()
        assert whole is not None
        return whole

    def _block(self, span: Span) -> Path:
        return self.blocks / f"{span[0]:09d}-{span[1]:09d}.npy"

    def _put(self, target: Path, n_rows: int, parts: Iterable[NDArray[np.float32]]) -> None:
        """Write `parts` one below the other."""
        with disk_errors(self.folder):
            try:
                self.blocks.mkdir(parents=True, exist_ok=True)
                with whole_file(target, self.blocks) as file:
                    for position, rows in enumerate(parts):
                        if position == 0:
                            write_header(file, rows.dtype, (n_rows, rows.shape[1]))
                        file.write(np.ascontiguousarray(rows).data)
            except FileNotFoundError:
                if not self.path.is_file():  # else another run over the same pictures was faster, and cleared up
                    raise


def _read(path: Path, n_rows: int) -> NDArray[np.float32] | None:
    """The array in `path`, or None where there is none, or a damaged one."""
    try:
        rows: NDArray[np.float32] = np.load(path, mmap_mode="c", allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    return rows if rows.dtype == np.float32 and rows.ndim == 2 and len(rows) == n_rows else None
