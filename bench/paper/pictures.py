"""Pictures of a file as a task: the data of the experiments on CIFAR, ready for the method or for a plain net.

The recipe is that of preset paper for pictures, the one of the paper's field.
"""

from __future__ import annotations

from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bench.datasets import IntArray
from bench.paper.experiment import Options, preset_of
from bench.paper.trial import Truth, codes_of
from bench.picture_data import QUICK, PictureSet, given_labels, read_pictures
from labelmend.config import make_config
from labelmend.inputs.pictures.cache import in_three_colours
from labelmend.runs.pictures import picture_task as made_ready
from labelmend.runs.pictures import read_source
from labelmend.runs.task import Task
from labelmend.samples import ImageSamples


@lru_cache(maxsize=1)
def pictures_in(path: Path, quick: bool) -> PictureSet:
    return read_pictures(path, quick)


def picture_task(
    path: Path, label_set: str, labels: Path | None, seed: int, preset: str, changes: dict[str, Any], options: Options
) -> tuple[Task, Truth]:
    """The pictures of a file with the labels of a set ("symmetric50", "worst", ...), and what is true of them."""
    data = pictures_in(path, options.quick)
    return task_of_pictures(data, given_labels(data, label_set, labels, seed), seed, preset, changes, options)


def task_of_pictures(
    data: PictureSet, given: IntArray, seed: int, preset: str, changes: dict[str, Any], options: Options
) -> tuple[Task, Truth]:
    """Pictures with these labels; `changes` are those to the preset."""
    chosen = {"device": options.device, **changes, **(QUICK if options.quick else {})}
    make = partial(make_config, preset_of(preset), seed=seed, **chosen)
    ready = made_ready(read_source(data.pixels, given), "train", make)
    task, labels = ready.task, ready.given
    samples = task.problem.samples
    assert isinstance(samples, ImageSamples)
    tests = torch.from_numpy(in_three_colours(data.test_pixels)).to(samples.device)
    mean, spread = (colour.flatten() for colour in (samples.mean, samples.spread))
    classes = np.asarray(labels.classes)
    test = ImageSamples(tests, mean, spread, samples.crop, samples.device)
    return task, Truth(codes_of(data.true_labels, classes), test, codes_of(data.test_labels, classes))
