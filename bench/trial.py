"""One measurement: one method on one data set with one seed, in this process or in a fresh one.

Time is that of the method alone: imports and data come before. Memory is the peak of a whole fresh process, and what
of it came on top of the imports.
"""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.datasets import SOURCES, Dataset
from labelmend.errors import LabelmendWarning
from labelmend.self_test.comparison import METHODS, Figures, prepare, score, score_review

if TYPE_CHECKING:
    import torch


class TrialFailedError(RuntimeError):
    """A fresh process ended early, out of memory for example; the text is its last words."""


@dataclass(frozen=True)
class Case:
    """One line of a benchmark."""

    name: str
    source: str  # a name in datasets.SOURCES
    arguments: dict[str, Any]
    neighbours: int = 10  # of the k-NN vote
    seeded: bool = True  # the data are drawn anew with every seed

    def load(self, seed: int) -> Dataset:
        return SOURCES[self.source](**self.arguments, **({"seed": seed} if self.seeded else {}))


def measure(case: Case, method: str, seed: int) -> Figures:
    """Accuracy and seconds."""
    prepare(method)
    data = case.load(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LabelmendWarning)  # tiny classes and the like: known, and the same every time
        began = time.perf_counter()
        outcome = METHODS[method](data.features, data.given_labels, case.neighbours, seed)
        seconds = time.perf_counter() - began
    figures = score(data.true_labels, data.given_labels, outcome.labels)
    if outcome.in_review is not None:
        figures |= score_review(data.true_labels, outcome.labels, outcome.in_review)
    return {**figures, "noise_rate": outcome.noise_rate, "seconds": seconds}


def measure_alone(case: Case, method: str, seed: int) -> Figures:
    """The same in a fresh process, and its memory."""
    order = json.dumps({"case": dataclasses.asdict(case), "method": method, "seed": seed})
    done = subprocess.run([sys.executable, "-m", __name__], input=order, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        words = done.stderr.strip().splitlines()
        raise TrialFailedError(words[-1] if words else f"ended with code {done.returncode}")
    figures: Figures = json.loads(done.stdout.splitlines()[-1])
    return figures


def answer(order: str) -> str:
    """What the fresh process does."""
    wanted = json.loads(order)
    prepare(wanted["method"])
    imports = peak_bytes()
    figures = measure(Case(**wanted["case"]), wanted["method"], wanted["seed"])
    peak = peak_bytes()
    return json.dumps({**figures, "peak_bytes": peak, "used_bytes": peak - imports})


def wait_for(device: torch.device) -> None:
    """What is left to do on a GPU is part of what is timed."""
    if device.type == "cuda":
        import torch

        torch.cuda.synchronize(device)


def peak_bytes(status: Path = Path("/proc/self/status")) -> int:
    """Peak memory of this process.

    On Linux from VmHWM: ru_maxrss, the way elsewhere, starts there at the size of the process that started this one.
    """
    if status.is_file():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    import resource  # not on Windows, where time and memory are not measured, but the rest runs

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


if __name__ == "__main__":
    print(answer(sys.stdin.read()))
