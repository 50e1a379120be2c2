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

import numpy as np
import torch

from bench.picture_data import PictureSet
from bench.record import Say
from labelmend.api import choose_device
from labelmend.ensemble.embed import embed
from labelmend.ensemble.records import RoundRecord
from labelmend.ensemble.state import RoundState
from labelmend.ensemble.time_limit import TimeLimit, read_seconds
from labelmend.errors import LabelmendWarning
from labelmend.images import correct_images
from labelmend.inputs.pictures.cache import in_three_colours
from labelmend.samples import ImageSamples, Samples, colour_statistics
from labelmend.selftest.scores import Figures, score, score_review

LAST_ROUNDS = 10  # whose mean is the test accuracy
TELL_EVERY = 10  # rounds


class TestBench:
    """Accuracy on the test pictures, after every round; `seconds` is what that took."""

    __test__ = False  # not what pytest looks for

    def __init__(self, pictures: PictureSet, device: torch.device, say: Say) -> None:
        self.pictures, self.device, self.say = pictures, device, say
        self.accuracies: list[float] = []
        self.seconds = 0.0
        self._samples: Samples | None = None
        self._labels = torch.from_numpy(pictures.test_labels).to(device)

    def __call__(self, record: RoundRecord, state: RoundState) -> None:
        wait_for(self.device)  # what the round left to do on a GPU is the round's
        began = time.perf_counter()
        if len(self._labels):
            answers = embed(state.deployed_net, self._test_samples())[1].argmax(dim=1)
            self.accuracies.append(float((answers == self._labels).double().mean()))
        if record.round_index % TELL_EVERY == 0 or record.round_index == record.n_rounds:
            tested = f", {self.accuracies[-1]:.4f} of the test pictures right" if self.accuracies else ""
            self.say(f"  round {record.round_index} of {record.n_rounds}{tested}")
        self.seconds += time.perf_counter() - began

    def figures(self) -> Figures:
        if not self.accuracies:
            return {}
        last = self.accuracies[-LAST_ROUNDS:]
        return {"test_last": float(np.mean(last)), "test_best": max(self.accuracies)}

    def _test_samples(self) -> Samples:
        """Normalised like the pictures the net learns from, as a model of it would do."""
        if self._samples is None:
            mean, spread = colour_statistics(torch.from_numpy(in_three_colours(self.pictures.pixels)))
            pixels = torch.from_numpy(in_three_colours(self.pictures.test_pixels)).to(self.device)
            self._samples = ImageSamples(pixels, mean, spread, min(pixels.shape[1:3]), self.device)
        return self._samples


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
    bench = TestBench(pictures, choose_device(parameters.get("device", "auto")), say)
    seconds = math.inf if time_limit is None else read_seconds(time_limit)
    limit = TimeLimit(seconds, lambda: time.monotonic() - bench.seconds)  # the tests do not count here either
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LabelmendWarning)  # tiny classes of a quick run
        result = correct_images(
            pictures.pixels,
            given,
            mode="train",
            preset=preset,
            seed=seed,
            callback=bench,
            time_limit=limit,
            **parameters,
        )
    figures = {
        **score(pictures.true_labels, given, result.labels),
        **score_review(pictures.true_labels, result.labels, result.status == "review"),
        **bench.figures(),
        "noise_rate": result.noise_rate,
        "rounds": float(len(result.history)),
        "seconds": result.seconds - bench.seconds,
        "test_seconds": bench.seconds,
    }
    return figures, bench.accuracies


def wait_for(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
