"""The benchmarks on pictures: the options of each, and what it measures. `command.py` runs them.

Each hands back trials and facts; machine, versions, n and spread are added where all benchmarks get them.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.datasets import IntArray
from bench.paper import rows
from bench.picture_data import QUICK, PictureSet, given_labels, is_drawn, pictures_to_mend, read_pictures
from bench.record import OURS, Benchmark, Facts, Findings, Say, Trial
from labelmend.errors import ConfigError
from labelmend.self_test.comparison import Figures

COUNTED = (
    "Seconds: all that correct_images does, from arrays in memory to the result; the test after every round is not "
    "counted."
)
SETS = ("random1", "worst", "aggregate", "symmetric50")
SMOKE_WIDTH = 8
PAPER = "paper, 200 epochs"
ABLATION_NOISE = "symmetric50"
# The rows of the paper's ablation on CIFAR-10 with 50 % symmetric noise; `python -m bench paper cifar10` has all.
ABLATION: dict[str, tuple[dict[str, Any], Figures]] = {
    name: (
        rows.ablation_changes(row, rows.FACTORS["cifar10"]["symmetric 50 %"]),
        dict(zip(("test_last", "test_best"), rows.paper_shares("cifar10", row, "symmetric 50 %"), strict=True)),
    )
    for name, row in (
        ("default", rows.DEFAULT),
        ("without noisy branch", rows.WITHOUT),
        ("+ mixup", rows.WITH_MIXUP),
        ("+ soft label", rows.SOFT),
    )
}


def pictures_options(options: argparse.ArgumentParser) -> None:
    _add_data(options)
    options.add_argument("--labels", type=Path, metavar="FILE.npz", help="cifar10_train and the cifar10n_* arrays")
    options.add_argument(
        "--sets",
        nargs="+",
        default=list(SETS),
        metavar="NAME",
        help=f"NAME of cifar10n_NAME, symmetricNN, asymmetricNN or clean (default {' '.join(SETS)})",
    )
    options.add_argument("--preset", choices=("default", "paper"), default="default")
    options.add_argument("--rounds", type=int, metavar="N", help="default: that of the preset")
    options.add_argument(
        "--time-limit", metavar="TIME", help="of each run, such as 6m; tests are not counted, the last decision is"
    )


def pictures(options: argparse.Namespace, n_seeds: int, say: Say) -> Findings:
    data = read_pictures(options.data, options.quick)
    changes = _changes(options)
    trials = []
    for seed in range(n_seeds):
        for label_set in options.sets:
            given = given_labels(data, label_set, options.labels, seed)
            trials.append(_train(data, given, label_set, seed, options.preset, changes, say, options.time_limit))
    drawn = [name for name in options.sets if is_drawn(name)]
    notes = [f"Drawn anew with every seed: {', '.join(drawn)}."] if drawn else []
    return Findings(trials, _facts(trials, [f"Preset {options.preset}, the same setting for every set.", *notes]))


def ablation_options(options: argparse.ArgumentParser) -> None:
    _add_data(options)
    options.add_argument("--rounds", type=int, default=40, metavar="N", help="default 40; the paper has 200")
    options.add_argument(
        "--batch-size",
        type=int,
        metavar="N",
        help="default: the preset's 128; another one is faster and takes a learning rate in proportion",
    )
    options.add_argument("--rows", nargs="+", choices=list(ABLATION), default=list(ABLATION), help="default: all four")


def ablation(options: argparse.Namespace, n_seeds: int, say: Say) -> Findings:
    data = read_pictures(options.data, options.quick)
    trials = []
    for seed in range(n_seeds):
        given = given_labels(data, ABLATION_NOISE, None, seed)
        for row in options.rows:
            changes = {**rows.batch_changes(options.batch_size, "paper"), **_changes(options), **ABLATION[row][0]}
            trials.append(_train(data, given, row, seed, "paper", changes, say))
    beside = [
        trial
        for row in options.rows
        for trial in (*(t for t in trials if t.name == row), Trial(row, PAPER, ABLATION[row][1]))
    ]
    notes = ["CIFAR-10 with half of the labels drawn from all classes, preset paper for pictures."]
    return Findings(beside, _facts(trials, notes))


def smoke_options(options: argparse.ArgumentParser) -> None:
    options.add_argument(
        "--data", type=Path, metavar="FILE.npz", help="the first pictures of this file, not those that come with it"
    )
    options.add_argument("--width", type=int, default=SMOKE_WIDTH, metavar="N", help=f"default {SMOKE_WIDTH}")
    options.add_argument("--rounds", type=int, metavar="N", help="default: what few pictures get")


def smoke(options: argparse.Namespace, n_seeds: int, say: Say) -> Findings:
    trials = []
    for seed in range(n_seeds):
        data, given = pictures_to_mend(options.data, seed, options.quick)
        changes = {"width": options.width, **_changes(options), "device": "cpu"}
        name = f"{len(given):,} pictures{' of clothes' if options.data is None else ''}"
        trials.append(_train(data, given, name, seed, "default", changes, say))
    notes = ["A fifth of the labels wrong, confusing; on a CPU whatever there is."]
    return Findings(trials, _facts(trials, notes))


def gpu_round_options(options: argparse.ArgumentParser) -> None:
    _add_data(options)
    options.add_argument("--batch-size", type=int, default=256, metavar="N", help="default 256")
    options.add_argument("--rounds", type=int, default=7, metavar="N", help="rounds timed, after 2 others (default 7)")


def gpu_round(options: argparse.Namespace, n_seeds: int, say: Say) -> Findings:
    from bench.gpu_round import measure_round

    return measure_round(options.data, options.batch_size, options.rounds, options.quick, say)


def embed_options(options: argparse.ArgumentParser) -> None:
    options.add_argument("--pictures", type=int, metavar="N", help="default 500")
    options.add_argument("--backbone", default="efficientnet-lite0", metavar="NAME", help="default efficientnet-lite0")


def embed(options: argparse.Namespace, n_seeds: int, say: Say) -> Findings:
    from bench.embedding import QUICK_N, USUAL_N, measure_embedding

    n = options.pictures or (QUICK_N if options.quick else USUAL_N)
    return measure_embedding(n, options.backbone, n_seeds, say)


def review_options(options: argparse.ArgumentParser) -> None:
    options.add_argument("--samples", type=int, metavar="N", help="default 100,000, all of them doubtful")
    options.add_argument("--decisions", type=int, metavar="N", help="in one go (default 100)")


def review(options: argparse.Namespace, n_seeds: int, say: Say) -> Findings:
    from bench.review_speed import measure_review

    n = (400 if options.quick else 100_000) if options.samples is None else options.samples
    decisions = (10 if options.quick else 100) if options.decisions is None else options.decisions
    return measure_review(n, decisions, n_seeds, say)


def annotators_options(options: argparse.ArgumentParser) -> None:
    options.add_argument("--data", type=Path, metavar="DIR", help="folder with cifar10_features.npz and labels.npz")


def annotators(options: argparse.Namespace, n_seeds: int, say: Say) -> Findings:
    from bench.annotators import measure_annotators

    return measure_annotators(options.data, n_seeds, options.quick, say)


PICTURE_BENCHMARKS: dict[str, Benchmark] = {
    "gpu-round": Benchmark("time of one round on CIFAR-10 by stage (--data)", gpu_round_options, gpu_round, None),
    "pictures": Benchmark(
        "test and label accuracy on CIFAR-10 with human and drawn labels (--data, --labels)", pictures_options, pictures
    ),
    "ablation": Benchmark(
        "the paper's four variants on CIFAR-10, half of the labels drawn (--data)", ablation_options, ablation
    ),
    "pictures-smoke": Benchmark("labels of 2,000 pictures of clothes, a narrow net on a CPU", smoke_options, smoke),
    "embed": Benchmark("throughput of embedding pictures of 224 px", embed_options, embed),
    "review": Benchmark("first paint and time per decision of the review page, in Chromium", review_options, review, 5),
    "annotators": Benchmark(
        "several people's labels, against cleanlab's multiannotator and a majority vote (--data)",
        annotators_options,
        annotators,
        5,
    ),
}


def _train(
    data: PictureSet,
    given: IntArray,
    name: str,
    seed: int,
    preset: str,
    changes: dict[str, Any],
    say: Say,
    time_limit: str | None = None,
) -> Trial:
    from bench.picture_trial import train_on

    say(f"{name}  seed {seed}")
    try:
        figures, tests = train_on(data, given, seed, preset, changes, say, time_limit)
    except RuntimeError as error:  # out of memory, a broken GPU: the others still count
        say(f"{name}  seed {seed}  failed: {error}")
        return Trial(name, OURS, {}, f"failed: {str(error).splitlines()[0]}")
    tested = f"  {figures['test_last']:.4f} of the test pictures" if "test_last" in figures else ""
    say(f"{name}  seed {seed}  {figures['label_accuracy']:.4f} of the labels right{tested}  {figures['seconds']:.1f} s")
    return Trial(name, OURS, figures, test_by_round=tests)


def _changes(options: argparse.Namespace) -> dict[str, Any]:
    """What differs from the preset."""
    if options.rounds is not None and options.rounds < 1:
        raise ConfigError(f"--rounds must be at least 1. Got {options.rounds} instead.")
    if options.quick:
        return {**QUICK, "n_rounds": 2}
    return {} if options.rounds is None else {"n_rounds": options.rounds}


def _facts(trials: Sequence[Trial], notes: list[str]) -> Facts:
    curves = [
        {"case": t.name, "method": t.method, "test_by_round": [round(v, 4) for v in t.test_by_round]} for t in trials
    ]
    return {"notes": [*notes, COUNTED], "curves": curves}


def _add_data(options: argparse.ArgumentParser) -> None:
    options.add_argument(
        "--data", type=Path, metavar="FILE.npz", help="x_train, y_train, x_test, y_test: uint8 pictures and classes"
    )
