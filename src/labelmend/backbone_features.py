"""Pictures -> features of a frozen backbone, computed once and kept on disk.

Knows pixels, a backbone and the cache; does not know labels or how pictures are read. A killed run goes on where it
was; a finished one is read back without opening the backbone. A thread reads the next pictures while the net works.
"""

from __future__ import annotations

import hashlib
import mmap
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from labelmend.errors import ConfigError, DataError
from labelmend.feature_cache import FeatureCache, Span
from labelmend.nets.backbone import Backbone

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
    if pixels.dtype != np.uint8 or pixels.ndim != 4 or pixels.shape[3] != 3 or 0 in pixels.shape:
        raise DataError(
            "pictures must be an array of uint8 with the shape (n, height, width, 3), n at least 1. "
            f"Got {pixels.dtype} of shape {pixels.shape} instead."
        )
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

    with ThreadPoolExecutor(1, "labelmend-read") as reader:
        waiting: Future[Tensor] | None = None
        for span in spans:
            upcoming = reader.submit(read, *span)
            if waiting is not None:
                yield waiting.result()
            waiting = upcoming
        if waiting is not None:
            yield waiting.result()


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
