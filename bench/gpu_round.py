"""How long one full round takes: 3 training passes, 6 forward passes, 5 graphs, 100 columns propagated, the vote.

The round is that of a run with the nets and the batch of the accuracy runs, without what they add to the paper's round
(mixup, consistency, averages): those are more arithmetic, not a slower machine. Rounds are timed as they run. Others
after them, in which the program waits for the GPU at every border, give the stages, and take a little longer.
"""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

import numpy as np
import torch

from bench.picture_data import QUICK, PictureSet, random_pictures, read_pictures
from bench.record import OURS, Findings, Say, Trial
from bench.trial import wait_for
from labelmend.config import Settings, make_config, resolve
from labelmend.ensemble.nets import PreActResNet
from labelmend.ensemble.records import RoundRecord
from labelmend.ensemble.run import play_round
from labelmend.ensemble.state import Problem, RoundState, start
from labelmend.ensemble.torch_state import choose_device, fast_arithmetic, seeded
from labelmend.ensemble.train import warm_up
from labelmend.errors import ConfigError
from labelmend.inputs.labels import read_labels
from labelmend.runs.task import make_problem
from labelmend.samples import ImageSamples, colour_statistics

WARM_UP_ROUNDS = 2
STAGE_ROUNDS = 3
ROUND = "one round"
TRAINING_PASSES, FORWARD_PASSES = 3, 1  # the latter beside one for every branch
TRAINING_COST = 3  # forward passes' worth of arithmetic: forward, and backward to weights and to activations
PRODUCT_SIDE, QUICK_PRODUCT_SIDE = 8192, 128
PRODUCTS = 20


def measure_round(data: Path | None, batch_size: int, n_rounds: int, quick: bool, say: Say) -> Findings:
    if n_rounds < 1:
        raise ConfigError(f"--rounds must be at least 1. Got {n_rounds} instead.")
    pictures = random_pictures(quick) if data is None else read_pictures(data, quick)
    device = choose_device("auto")
    config = round_config(pictures, batch_size, quick)
    problem = make_round_problem(pictures, config, device)
    say(f"{len(pictures.pixels):,} pictures on {device}")
    with seeded(config.seed, device), fast_arithmetic(device):
        trials = time_rounds(problem, config, pictures, n_rounds, say)
        rate = product_rate(device, QUICK_PRODUCT_SIDE if quick else PRODUCT_SIDE)
    median = float(np.median([trial.figures["round_seconds"] for trial in trials if trial.name == ROUND]))
    flop = arithmetic(pictures, config)
    return Findings(trials, facts(config, pictures, data is None, flop, rate, median))


def round_config(pictures: PictureSet, batch_size: int, quick: bool) -> Settings:
    """Preset plus for pictures as far as it is the paper's round."""
    changes = {
        "warmup_passes": 0,
        "correct_every": 1,
        "mixup": False,
        "consistency": 0.0,
        "average_decay": 0.0,
        "round_labels": "vote",
        "branch_samples": "all",  # else the pass of the branches is shorter by the labels that changed
        "batch_size": batch_size,
        "n_rounds": 10**6,  # the learning rate hardly falls
    }
    config = make_config("default", "pictures", **{**(QUICK if quick else {}), **changes})
    return resolve(config, len(pictures.pixels), pictures.n_classes, "pictures")


def make_round_problem(pictures: PictureSet, config: Settings, device: torch.device) -> Problem:
    pixels = torch.from_numpy(pictures.pixels).to(device)
    samples = ImageSamples(pixels, *colour_statistics(pixels), min(pixels.shape[1:3]), device)
    labels = read_labels(pictures.true_labels)
    return make_problem(samples, labels, np.zeros(len(labels.codes), dtype=bool), config)


def time_rounds(problem: Problem, config: Settings, pictures: PictureSet, n_rounds: int, say: Say) -> list[Trial]:
    device = problem.samples.device
    make_net = partial(PreActResNet, pictures.pixels.shape[3], problem.n_classes, config.width)
    state = start(problem, make_net, config)
    warm_up(state, problem, config)
    for _ in range(WARM_UP_ROUNDS):  # kernels are chosen, steps recorded; from the second on labels have two sources
        _timed_round(state, problem, config, stages=False)
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    trials = []
    for number in range(n_rounds):
        seconds, _ = _timed_round(state, problem, config, stages=False)
        say(f"round {number + 1} of {n_rounds}  {seconds:.3f} s")
        trials.append(Trial(ROUND, OURS, {"round_seconds": seconds, **_gpu_memory(device)}))
    for _ in range(min(n_rounds, STAGE_ROUNDS)):
        _, record = _timed_round(state, problem, config, stages=True)
        trials += [Trial(f"  {name}", OURS, {"round_seconds": s}) for name, s in record.seconds.items()]
    return trials


def arithmetic(pictures: PictureSet, config: Settings) -> float:
    """Floating-point operations of the nets in a round; the graphs' are few beside them."""
    from torch.utils.flop_counter import FlopCounterMode

    side = min(pictures.pixels.shape[1:3])
    with torch.device("meta"):
        net = PreActResNet(pictures.pixels.shape[3], pictures.n_classes, config.width).eval()
        counter = FlopCounterMode(display=False)
        with counter, torch.no_grad():
            net(torch.empty(1, pictures.pixels.shape[3], side, side))
    passes = TRAINING_COST * TRAINING_PASSES + FORWARD_PASSES + config.n_branches
    return float(counter.get_total_flops()) * len(pictures.pixels) * passes


def product_rate(device: torch.device, side: int) -> float:
    """Operations per second of a plain matrix product in the precision of the nets: what this machine can do."""
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    matrix = torch.randn(side, side, device=device).to(dtype)
    matrix @ matrix
    wait_for(device)
    began = time.perf_counter()
    for _ in range(PRODUCTS):
        matrix @ matrix
    wait_for(device)
    return PRODUCTS * 2 * side**3 / (time.perf_counter() - began)


def facts(
    config: Settings, pictures: PictureSet, is_random: bool, flop: float, rate: float, median: float
) -> dict[str, object]:
    shape = " x ".join(map(str, pictures.pixels.shape[1:]))
    kind = "random pictures (no --data)" if is_random else "pictures"
    columns = 2 * config.n_branches * pictures.n_classes
    floor = flop / rate
    return {
        "repeated": "rounds",
        "arithmetic": {"flop": flop, "product_flop_per_second": rate, "floor_seconds": floor, "share": floor / median},
        "notes": [
            f"{len(pictures.pixels):,} {kind} of {shape}, width {config.width}, M = {config.n_branches}, batch "
            f"{config.batch_size}, {columns} columns propagated on each graph; after {WARM_UP_ROUNDS} other rounds.",
            f"Stages: from {STAGE_ROUNDS} more rounds at most, with a wait at every border.",
            f"{flop / 1e15:.3g} PFLOP in the nets; a plain product of matrices runs at {rate / 1e15:.3g} PFLOP/s here, "
            f"so {floor:.3g} s is the floor, and {floor / median:.0%} of that speed was reached.",
        ],
    }


def _timed_round(state: RoundState, problem: Problem, config: Settings, stages: bool) -> tuple[float, RoundRecord]:
    device = problem.samples.device
    wait = partial(wait_for, device)
    wait()
    began = time.perf_counter()
    record = play_round(state, problem, config, wait=wait if stages else None)
    wait()
    return time.perf_counter() - began, record


def _gpu_memory(device: torch.device) -> dict[str, float | None]:
    return {"gpu_bytes": float(torch.cuda.max_memory_allocated(device))} if device.type == "cuda" else {}
