"""The rows and columns of the paper's tables on CIFAR: what each row changes, the factors of its losses, its figures.

The factors are the paper's own, per noise rate, in the rows that reproduce it; nothing else here follows the noise.
The text can be read in several ways; READINGS lists them, and each is a few changes of a row. "(the net's answer)" is
another reading of the soft label: its first part is the corrected net's answer instead of the voted label. Loads
without torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bench.paper.experiment import preset_of
from labelmend.config import make_config, resolve

PICTURES, PAPER_BATCH = 50_000, 128
SYMMETRIC = {f"symmetric {rate} %": f"symmetric{rate}" for rate in (20, 50, 80, 90)}
COLUMNS = {"cifar10": {**SYMMETRIC, "asymmetric 40 %": "asymmetric40"}, "cifar100": SYMMETRIC}
WARM_UP = {"cifar10": 10, "cifar100": 30}  # passes
# en_ce, en_mae, cor_ce, cor_mse of the paper's table of weighting factors.
FACTORS: dict[str, dict[str, tuple[float, float, float, float]]] = {
    "cifar10": {
        "symmetric 20 %": (1, 0, 1, 0),
        "symmetric 50 %": (1, 0, 1, 1),
        "symmetric 80 %": (1, 1, 1, 10),
        "symmetric 90 %": (1, 1, 1, 10),
        "asymmetric 40 %": (1, 0, 1, 1),
    },
    "cifar100": {
        "symmetric 20 %": (2.5, 0, 1, 10),
        "symmetric 50 %": (2.5, 1, 1, 40),
        "symmetric 80 %": (2.5, 1, 1, 80),
        "symmetric 90 %": (2.5, 1, 1, 80),
    },
}
CROSS_ENTROPY, MIXUP, DEFAULT = "cross entropy", "mixup", "default"
WITHOUT, WITH_MIXUP = "w/o noisy branch", "+ mixup"  # each row adds to the one before
SOFT, NET, PLUS = f"{WITH_MIXUP} + soft label", f"{WITH_MIXUP} + soft label (the net's answer)", "plus"
# What tables call a row where its stored name would be misread: "default" is a preset of the library, too.
TITLES = {DEFAULT: "all nets (the paper's default)", PLUS: "preset default of labelmend"}
ROWS = (CROSS_ENTROPY, MIXUP, DEFAULT, WITHOUT, WITH_MIXUP, SOFT, NET, PLUS)
PLAIN = (CROSS_ENTROPY, MIXUP)
CHANGED_LOSSES = (WITHOUT, WITH_MIXUP, SOFT, NET)  # rows whose losses the text describes apart from the default's
# What the rows of CHANGED_LOSSES may be read as, beside the losses being the same for all samples.
READINGS = {
    "split": "corrected net: cross entropy on kept samples, factor x absolute (soft: squared) error on changed ones",
    "kept": "the same, and with hard labels nothing on changed ones",
    "semi-supervised": "soft labels: the step of DivideMix with kept and changed samples as its two groups",
    "sharp": "soft labels sharpened with temperature 0.5",
    "penalty": "a penalty on leaving classes out",
    "own-batches": "every branch has a batch as large as the corrected net's, and a mean over its kept samples",
    "same-round": "second label source: the first vote of the same round",
    "persistent": "branches begin between the corrected net and what they were the round before",
}
CHOSEN = ("kept", "semi-supervised")  # on symmetric 50 and 80 % of CIFAR-10, 30 epochs, one seed: docs/experiments.md
BRANCHES = 5  # M of preset paper
# Best and last of the paper, in the order of the columns.
THEIR_BEST: dict[str, dict[str, tuple[float, ...]]] = {
    "cifar10": {
        CROSS_ENTROPY: (86.8, 79.4, 62.9, 42.7, 85.0),
        MIXUP: (95.6, 87.1, 71.6, 52.2),
        DEFAULT: (90.1, 81.8, 64.4, 46.2, 88.6),
        WITHOUT: (93.3, 91.1, 77.1, 52.2, 91.2),
        WITH_MIXUP: (93.9, 91.8, 81.3, 61.6, 92.1),
        SOFT: (94.2, 93.9, 92.5, 76.2, 92.3),
    },
    "cifar100": {
        CROSS_ENTROPY: (62.0, 46.7, 19.9, 10.1),
        MIXUP: (67.8, 57.3, 30.8, 14.6),
        DEFAULT: (65.6, 50.3, 23.1, 10.4),
        WITHOUT: (74.1, 65.9, 40.8, 15.2),
        WITH_MIXUP: (76.1, 70.2, 45.3, 21.8),
        SOFT: (76.6, 73.9, 57.2, 28.6),
    },
}
THEIR_LAST: dict[str, dict[str, tuple[float, ...]]] = {
    "cifar10": {
        CROSS_ENTROPY: (82.7, 57.9, 26.1, 16.8, 72.3),
        MIXUP: (92.3, 77.6, 46.7, 43.9),
        DEFAULT: (88.8, 81.6, 56.1, 39.8, 88.4),
        WITHOUT: (93.1, 90.8, 76.5, 45.6, 90.9),
        WITH_MIXUP: (93.4, 91.2, 80.4, 59.8, 91.8),
        SOFT: (94.0, 93.7, 92.3, 73.6, 92.1),
    },
    "cifar100": {
        CROSS_ENTROPY: (61.8, 37.3, 8.8, 3.5),
        MIXUP: (66.0, 46.6, 17.6, 8.1),
        DEFAULT: (65.0, 49.8, 21.6, 8.2),
        WITHOUT: (73.8, 65.5, 40.3, 13.2),
        WITH_MIXUP: (75.9, 69.8, 44.6, 19.9),
        SOFT: (76.4, 73.1, 56.9, 28.4),
    },
}


def ablation_changes(
    row: str, factors: Sequence[float], readings: Sequence[str] = (), batch_size: int | None = None
) -> dict[str, Any]:
    """What a row of the paper's ablation changes in preset paper, with en_ce, en_mae, cor_ce, cor_mse.

    What was decided otherwise before is written in full, so that a result of then does not count as one of now.
    """
    en_ce, en_mae, cor_ce, cor_mse = (float(factor) for factor in factors)
    changes: dict[str, Any] = {} if row in PLAIN else {"scale_columns": True}
    if row in CHANGED_LOSSES:
        changes |= {"noisy_branch": False, "branch_loss": "cross-entropy-mae", "ce_factor": en_ce, "mae_factor": en_mae}
    if row in (MIXUP, WITH_MIXUP, SOFT, NET):
        changes |= {"mixup": True}
    if row in (SOFT, NET):
        changes |= {"soft_labels": True, "soft_ce_factor": cor_ce, "soft_mse_factor": cor_mse}
        changes |= {"soft_source": "net" if row == NET else "vote"}
    return changes | reading_changes(row, (cor_ce, cor_mse), readings, batch_size)


def reading_changes(
    row: str, factors: tuple[float, float], readings: Sequence[str], batch_size: int | None
) -> dict[str, Any]:
    """What readings change in a row; `factors` are cor_ce, cor_mse. A reading that is not about a row leaves it."""
    soft = row in (SOFT, NET)
    changes: dict[str, Any] = {}
    if row in PLAIN:
        return changes
    if "own-batches" in readings:
        changes |= {"branch_batch_size": BRANCHES * (batch_size or PAPER_BATCH)}
    if "same-round" in readings:
        changes |= {"corrected_source": "same-round"}
    if row not in CHANGED_LOSSES:
        return changes
    if "own-batches" in readings:
        changes |= {"branch_loss": "split"}
    if "persistent" in readings:
        changes |= {"persistent_branches": True}
    if "split" in readings or "kept" in readings:
        nothing = "kept" in readings and not soft
        changes |= {"corrected_loss": "split", "soft_ce_factor": factors[0]}
        changes |= {"soft_mse_factor": 0.0 if nothing else factors[1]}
    if "penalty" in readings:
        changes |= {"class_penalty": 1.0}
    if soft and "sharp" in readings:
        changes |= {"soft_temperature": 0.5}
    if soft and "semi-supervised" in readings:
        changes |= {"corrected_loss": "semi-supervised", "soft_temperature": 0.5, "class_penalty": 1.0}
        changes |= {"mixup_shape": 4}
    return changes


def paper_figures(name: str) -> dict[tuple[str, str], Sequence[float]]:
    """(last, best) of the paper by row and column; mixup has none for asymmetric noise."""
    return {
        (row, column): (last, best)
        for row in THEIR_BEST[name]
        for column, last, best in zip(COLUMNS[name], THEIR_LAST[name][row], THEIR_BEST[name][row], strict=False)
    }


def paper_shares(name: str, row: str, column: str) -> list[float]:
    """The same as shares."""
    return [round(value / 100, 4) for value in paper_figures(name)[row, column]]


def batch_changes(size: int | None, preset: str, n_classes: int = 10) -> dict[str, Any]:
    """Another batch size for CIFAR, and the learning rate in proportion to that of the preset."""
    if size is None:
        return {}
    usual = resolve(make_config(preset_of(preset), "pictures"), PICTURES, n_classes, "pictures")
    return {"batch_size": size, "lr": usual.lr * size / (usual.batch_size or size)}
