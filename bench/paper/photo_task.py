"""Photographs of Clothing1M and Food-101N as a task: decoded into the cache, ready for the method or for a plain net.

Knows which lists train, which are trusted and which test; does not know rows of tables. Pixels lie in a file and are
mapped from there, so that memory does not grow with the number of pictures. What cannot be read takes no part and is
reported, with the reason.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.paper.clothing1m import read_clothing1m
from bench.paper.experiment import Options, preset_of
from bench.paper.food101 import read_food101_test, read_food101n
from bench.paper.photo_lists import IntArray, PhotoList, joined
from bench.paper.trial import Truth, codes_of
from bench.picture_data import QUICK
from bench.record import Say
from labelmend.config import make_config
from labelmend.errors import ConfigError
from labelmend.inputs.pictures.cache import decode
from labelmend.runs.pictures import DECODED, default_cache, picture_task, pixels_as_tensor
from labelmend.runs.task import Task
from labelmend.samples import ImageSamples

SIZE, QUICK_SIZE = DECODED, 80  # of the decoded pictures; the net sees seven eighths of it
QUICK_LIMIT = 8  # pictures per class
NO_WEIGHTS = "none"
TELL_SECONDS = 60.0
DIGITS = 12  # of the digest of weights
NAMED = 20  # pictures that cannot be read, by name


@dataclass(frozen=True)
class PhotoSet:
    """What learns and what tests. `trusted` marks labels by people; `verified` is what nothing learns from."""

    train: PhotoList
    test: PhotoList
    trusted: NDArray[np.bool_] | None = None
    verified: IntArray | None = None


@dataclass(frozen=True)
class PhotoTask:
    task: Task
    truth: Truth
    verified: IntArray | None  # of the pictures that take part
    more: Mapping[str, Any]  # for the record: how many pictures, and which could not be read


def clothes(options: Options) -> PhotoSet:
    """The noisy set alone."""
    found = read_clothing1m(_data(options))
    return PhotoSet(found.noisy.limited(_limit(options)), found.test.limited(_limit(options)))


def clothes_and_clean(options: Options) -> PhotoSet:
    """The noisy set and the clean one, whose labels are certain; a picture in both is clean."""
    found = read_clothing1m(_data(options))
    noisy = found.noisy.rows(np.flatnonzero(~np.isin(found.noisy.keys, found.clean.keys)))
    noisy, clean = noisy.limited(_limit(options)), found.clean.limited(_limit(options))
    trusted = np.arange(len(noisy) + len(clean)) >= len(noisy)
    return PhotoSet(joined(noisy, clean), found.test.limited(_limit(options)), trusted)


def food(options: Options) -> PhotoSet:
    """Food-101N to learn from, without its verification labels; Food-101's test pictures."""
    found = read_food101n(_data(options))
    test = read_food101_test(options.food101 or _data(options), found.photos.classes)
    rows = found.photos.chosen(_limit(options))
    return PhotoSet(found.photos.rows(rows), test.limited(_limit(options)), verified=found.verified[rows])


def weights_of(options: Options) -> dict[str, str]:
    """Name and digest of the file the nets begin with, for the record.

    The recipe has no warm-up: without pretrained weights it is another one, to be asked for by name.
    """
    if options.weights == NO_WEIGHTS or (options.weights is None and options.quick):
        return {"name": NO_WEIGHTS, "digest": ""}
    if options.weights is None:
        raise ConfigError(
            "the recipe begins with a ResNet-50 of ImageNet: give its weights with --weights FILE (.safetensors or "
            f".pth), or --weights {NO_WEIGHTS} to begin without. Got no --weights instead."
        )
    path = Path(options.weights)
    if not path.is_file():
        raise ConfigError(f"--weights must be a file, or {NO_WEIGHTS}. Got {path}, which is not one.")
    with path.open("rb") as file:
        return {"name": path.name, "digest": hashlib.file_digest(file, "sha256").hexdigest()[:DIGITS]}


def photo_task(
    photos: PhotoSet, seed: int, preset: str, changes: Mapping[str, Any], options: Options, say: Say
) -> PhotoTask:
    size, cache = QUICK_SIZE if options.quick else SIZE, options.cache or default_cache()
    chosen = {**changes, "device": options.device, "balanced": options.balanced, "seed": seed}
    if options.weights not in (None, NO_WEIGHTS):
        chosen["weights"] = options.weights
    if options.quick:
        chosen |= {**QUICK, "warmup_passes": 0}
    tell = _now_and_then(say)
    pictures, make = photos.train.pictures(photos.trusted), partial(make_config, preset_of(preset), **chosen)
    ready = picture_task(pictures, "train", make, size=size, cache=cache, progress=tell)
    task, kept, labels = ready.task, ready.readable, ready.given
    test_samples, test_rows, unreadable = _test_samples(photos.test, task, size, cache, tell)
    names = np.array(photos.test.classes)[photos.test.labels[test_rows]]
    truth = Truth(None, test_samples, codes_of(names, np.asarray(labels.classes)))
    lost = {str(photos.train.keys[row]): why for row, why in kept.unreadable.items()}
    lost |= {str(photos.test.keys[row]): why for row, why in unreadable.items()}
    if lost:
        name, why = next(iter(lost.items()))
        say(f"  {len(lost)} picture(s) could not be read and take no part, for example {name}: {why}")
    counts = {"pictures": len(kept.rows), "test_pictures": len(test_rows), "unreadable": len(lost)}
    more = {**counts, "unreadable_pictures": dict(list(lost.items())[:NAMED]), "notes": photos.train.notes}
    return PhotoTask(task, truth, None if photos.verified is None else photos.verified[kept.rows], more)


def _test_samples(
    test: PhotoList, task: Task, size: int, cache: Path, tell: Say
) -> tuple[ImageSamples, IntArray, dict[int, str]]:
    """The test pictures, seen as those are that the net learns from."""
    like = task.problem.samples
    assert isinstance(like, ImageSamples)
    pixels = decode(test.pictures(), size, cache, tell)
    tensor = pixels_as_tensor(pixels.pixels, like.device)
    samples = ImageSamples(tensor, like.mean.flatten(), like.spread.flatten(), like.crop, like.device)
    return samples, pixels.readable, pixels.unreadable


def _data(options: Options) -> Path:
    if options.data is None:
        raise ConfigError("--data must name the folder of the pictures. Got none.")
    return options.data


def _limit(options: Options) -> int | None:
    return options.limit or (QUICK_LIMIT if options.quick else None)


def _now_and_then(say: Say) -> Say:
    """Decoding a million pictures takes hours and counts every second."""
    last = time.monotonic()

    def tell(text: str) -> None:
        nonlocal last
        if time.monotonic() - last > TELL_SECONDS:
            last = time.monotonic()
            say(f"  {text}")

    return tell
