"""One measurement on pictures: nets are trained on them as `correct_images` does, and tested on others meanwhile.

Test labels choose nothing: after every round the deployed net answers for the test pictures, and the answers are only
written down. Seconds are those of `correct_images` from arrays in memory to the result; the time the tests take has
a clock of its own and is left out.
"""

from __future__ import annotations

import math
import time
import warnings
from typing import Any

import torch

from bench.paper.trial import Observer, Truth
from bench.picture_data import PictureSet
from bench.record import Say
from labelmend.api import correct_images
from labelmend.config import as_arguments
from labelmend.ensemble.records import TimeLimit, read_seconds
from labelmend.ensemble.torch_state import choose_device
from labelmend.errors import LabelmendWarning
from labelmend.inputs.pictures.cache import in_three_colours
from labelmend.runs.pictures import pixels_as_tensor
from labelmend.samples import ImageSamples, colour_statistics
from labelmend.self_test.comparison import Figures, score, score_review


def train_on(
    pictures: PictureSet,
    given: Any,
    seed: int,
    preset: str,
    parameters: dict[str, Any],
    say: Say,
    time_limit: str | None = None,
) -> tuple[Figures, list[float]]:
    """The figures of one run, and the accuracy on the test pictures after every round."""
    device = choose_device(parameters.get("device", "auto"))
    observer = Observer(truth_of(pictures, device), device, say)
    seconds = math.inf if time_limit is None else read_seconds(time_limit)
    limit = TimeLimit(seconds, lambda: time.monotonic() - observer.seconds)  # the tests do not count here either
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LabelmendWarning)  # tiny classes of a quick run
        result = correct_images(
            pictures.pixels,
            given,
            mode="train",
            preset=preset,
            seed=seed,
            callback=observer.after_round,
            time_limit=limit,
            **as_arguments(parameters),
        )
    figures = {
        **score(pictures.true_labels, given, result.labels),
        **score_review(pictures.true_labels, result.labels, result.status == "review"),
        **{name: value for name, value in observer.figures().items() if name != "test_final"},
        "noise_rate": result.noise_rate,
        "rounds": float(len(result.history)),
        "seconds": result.seconds - observer.seconds,
        "test_seconds": observer.seconds,
    }
    return figures, observer.curves.get("test", [])


def truth_of(pictures: PictureSet, device: torch.device) -> Truth:
    """The test pictures, normalised like those the net learns from, as a model of it would do."""
    if not len(pictures.test_labels):
        return Truth()
    cpu = torch.device("cpu")
    learnt, tested = (pixels_as_tensor(in_three_colours(x), cpu) for x in (pictures.pixels, pictures.test_pixels))
    mean, spread = colour_statistics(learnt)
    pixels = tested.to(device)
    samples = ImageSamples(pixels, mean, spread, min(pixels.shape[1:3]), device)
    return Truth(test_samples=samples, test_labels=pictures.test_labels)
