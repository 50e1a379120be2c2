"""How fast pictures become features, beside what the backbone alone can do; and how much memory that takes.

The backbone alone: its net on one normalised batch again and again, half before and half after the other measurement,
so that a machine that grows busy hurts both. Pictures are random and lie in a file, as decoded ones do.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np
import torch

from bench.record import OURS, Findings, Say, Trial
from bench.trial import peak_bytes, wait_for
from labelmend.ensemble.torch_state import choose_device
from labelmend.errors import ConfigError
from labelmend.inputs.backbones import Backbone, load_backbone
from labelmend.inputs.pictures.features import BATCH_CPU, BATCH_GPU, backbone_features

USUAL_N, QUICK_N = 500, 20
ALONE = "backbone alone"
ALONE_SHARE = 5  # the backbone alone sees one picture in so many, before and after


def measure_embedding(n: int, name: str, n_repetitions: int, say: Say) -> Findings:
    if n < 1:
        raise ConfigError(f"--pictures must be at least 1. Got {n} instead.")
    backbone, device = load_backbone(name), choose_device("auto")
    backbone.net.to(device)
    case = f"{n:,} pictures of {backbone.size} px"
    trials = []
    with tempfile.TemporaryDirectory() as folder:
        pixels = random_file(Path(folder) / "pixels.npy", n, backbone.size)
        before = peak_bytes()
        for repetition in range(n_repetitions):
            alone = own_rate(backbone, device, n)
            began = time.perf_counter()
            backbone_features(pixels, backbone, Path(folder) / str(repetition), "random", device)
            wait_for(device)
            seconds = time.perf_counter() - began
            alone = 2 / (1 / alone + 1 / own_rate(backbone, device, n))
            rate = n / seconds
            say(f"{case}  {rate:.1f} pictures/s  {rate / alone:.0%} of the backbone's {alone:.1f}")
            trials.append(Trial(case, ALONE, {"pictures_per_second": alone}))
            peak = peak_bytes()
            figures = {"seconds": seconds, "pictures_per_second": rate, "share_of_backbone": rate / alone}
            memory = {"peak_bytes": float(peak), "used_bytes": float(peak - before)}
            trials.append(Trial(case, OURS, {**figures, **memory}))
    notes = [
        f"{backbone.name} on {device}, random pictures from a file, features written to a file.",
        "Memory: peak of the whole process, and what of it came after imports, weights and writing the pictures.",
    ]
    return Findings(trials, {"repeated": "repetitions", "notes": notes})


def own_rate(backbone: Backbone, device: torch.device, n: int) -> float:
    """Pictures per second of the net alone, over a share of `n` of them."""
    size = BATCH_GPU if device.type == "cuda" else BATCH_CPU
    batch = backbone.preprocess(
        torch.zeros(min(size, n), backbone.size, backbone.size, 3, dtype=torch.uint8).to(device)
    )
    passes = max(1, round(n / ALONE_SHARE / len(batch)))
    with torch.inference_mode():
        backbone.net(batch)
        wait_for(device)
        began = time.perf_counter()
        for _ in range(passes):
            backbone.net(batch)
        wait_for(device)
    return passes * len(batch) / (time.perf_counter() - began)


def random_file(path: Path, n: int, side: int) -> np.memmap[tuple[int, ...], np.dtype[np.uint8]]:
    """Pictures written one by one: no array of all of them in the memory that is measured."""
    rng = np.random.default_rng(0)
    with path.open("wb") as file:
        for _ in range(n):
            file.write(rng.bytes(side * side * 3))
    return np.memmap(path, np.uint8, "r", shape=(n, side, side, 3))
