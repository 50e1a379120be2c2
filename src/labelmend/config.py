"""Every decision of a run in one frozen record, and the presets that hold decisions together.

Stages never see this: configuration stops at `loop.py`, which hands them plain numbers. A value of None means "follow
the data"; `follow` turns it into a number by one documented rule each, and no rule looks at the noise rate. Only
`review_below` stays open until the run knows whether its confidence is calibrated.
"""

from __future__ import annotations

import dataclasses
import math
import warnings
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, Literal

from labelmend.errors import ConfigError, LabelmendWarning

SMOOTHNESS = {
    "smoothness": ("softmax", "l2", True),
    "smoothness-unweighted": ("softmax", "l2", False),
    "smoothness-features": ("features", "l2", False),
    "smoothness-kl": ("softmax", "kl", True),
    "smoothness-js": ("softmax", "js", True),
}

BRANCH_LOSSES = (*SMOOTHNESS, "cross-entropy", "cross-entropy-mae", "split")

CORRECTED_LOSSES = ("all", "split", "semi-supervised")


SMALL, LARGE = 4_000, 8_000  # rows up to which time hardly matters, and from which it does more than 0.1 points
FEW_PICTURES = 5_000  # below it a round is a handful of steps
PACKAGES, FINE_PACKAGES = 4, 16  # B by turns: large patches find errors that sit together, small ones those at borders
FINE_K, FINE_ALPHA = 10, 0.9  # by the same turns: few neighbours and a long way, many and a short one
REVIEW_BELOW, CALIBRATED_REVIEW_BELOW = 0.85, 0.7  # known when a run ends: of random1 9 and 8 % of the samples
AVERAGE_ROUNDS = 2.5  # rounds that the averaged net remembers, at most 500 steps: a decay of .998

ASSUME = ("auto", "apart", "overlapping")
MOST = 1_000_000_000  # of anything that is counted and has no bound of its own; more is a slip of the finger

# pictures: a net is trained on them; embedded ones are vectors. photographs: pictures of more than 64 pixels a side
Data = Literal["vectors", "pictures", "photographs"]


def _option(
    default: Any,
    help: str,
    choices: tuple[str, ...] | None = None,
    minimum: float | None = None,
    maximum: float = MOST,
) -> Any:
    return field(default=default, metadata={"help": help, "choices": choices, "minimum": minimum, "maximum": maximum})


@dataclass(frozen=True)
class RunConfig:
    """All parameters of a run. The defaults are preset `plus`; `paper` is the paper's text, see `preset`."""

    preset: str = _option("plus", "paper: as the text has it; plus: what measured best", ("paper", "plus"))
    seed: int = _option(0, "random seed; the same seed gives the same result on a CPU", minimum=0, maximum=2**63 - 1)
    device: str = _option("auto", "cpu, cuda or auto (a GPU where there is one)")
    # The ensemble
    n_branches: int = _option(5, "M, number of ensemble branches and subsets", minimum=2, maximum=100)
    packages_per_branch: int | None = _option(
        None,
        "B, packages per class and branch; large B approaches random subsets; follows the data: 4",
        minimum=1,
    )
    fine_packages: int | None = _option(
        None,
        "B of every other round; follows the data: 16, or packages_per_branch where that is set or there are pictures",
        minimum=1,
    )
    n_rounds: int | None = _option(
        None,
        "rounds; follows the data: 10, 8 from 4,000 rows, 3 above 8,000; training on pictures 64, or 20 below 5,000",
        minimum=1,
    )
    correct_every: int = _option(1, "rounds between corrections; the others only train the deployed net", minimum=1)
    resplit: bool = _option(True, "make new packages every round")
    noisy_branch: bool | None = _option(
        None, "keep a net trained on the given labels; follows the data: not for vectors, for pictures"
    )
    # Nets and training
    hidden: int | None = _option(
        None, "width of the net; follows the data: 512, or 256 above 8,000 rows", minimum=1, maximum=2**16
    )
    architecture: str = _option(
        "auto",
        "net for pictures; auto: resnet50 above 64 pixels a side, else preact-resnet18",
        ("auto", "preact-resnet18", "resnet50"),
    )
    weights: str = _option("", "file with pretrained weights of that net, .safetensors or .pth of tensors")
    width: int | None = _option(
        None, "channels of the first stage of the net for pictures; follows the data: 64", minimum=1, maximum=2**12
    )
    warmup_passes: int = _option(
        5, "passes of plain cross entropy on the given labels before the first round", minimum=0
    )
    batch_size: int | None = _option(
        None, "samples a step; follows the data: rows / 20, between 64 (pictures: 32) and 256", minimum=2
    )
    branch_batch_size: int | None = _option(
        None,
        "samples a step of all branches together; follows the data: batch_size, M times that for 5,000 pictures",
        minimum=2,
    )
    balanced: bool = _option(False, "draw every class equally often in a pass: large ones in part, small ones again")
    lr: float = _option(0.05, "learning rate", minimum=0)
    lr_schedule: str = _option("steps", "steps: by lr_milestones; cosine: down to 0", ("steps", "cosine"))
    lr_milestones: tuple[float, ...] = _option(
        (), "shares of the rounds after which the learning rate drops to a tenth"
    )
    momentum: float = _option(0.9, "momentum of SGD", minimum=0)
    weight_decay: float = _option(5e-4, "L2 regularisation", minimum=0)
    branch_loss: str = _option("smoothness", "loss of the branches", BRANCH_LOSSES)
    branch_samples: str = _option(
        "kept", "samples in the branch loss: those whose label was kept, or all", ("kept", "all")
    )
    smoothness_scale: float = _option(2.0, "a in exp(-a * distance) of the graph smoothness loss", minimum=0)
    ce_factor: float = _option(1.0, "factor of cross entropy in cross-entropy-mae and split", minimum=0)
    mae_factor: float = _option(0.0, "factor of the mean absolute error in cross-entropy-mae and split", minimum=0)
    persistent_branches: bool = _option(
        False, "branches begin between the corrected net and what they were themselves, not the noisy net"
    )
    warmup_penalty: float = _option(0.0, "factor of the penalty on being sure in the warm-up", minimum=0)
    corrected_loss: str = _option(
        "all",
        "loss of the corrected-label branch; all: the same for all samples; split: cross entropy where the label was "
        "kept, soft_mse_factor times the absolute (soft labels: squared) error where it was changed; semi-supervised: "
        "the same on soft labels made anew in every step, half of a batch kept, half changed",
        CORRECTED_LOSSES,
    )
    mixup: bool = _option(False, "mixup in the corrected-label branch")
    mixup_shape: int = _option(1, "a of the Beta(a, a) that mixup draws from in split and semi-supervised", minimum=1)
    soft_labels: bool = _option(False, "train the corrected-label branch on soft labels")
    soft_source: str = _option(
        "vote", "first part of a soft label: the corrected net, or the voted label", ("net", "vote")
    )
    soft_temperature: float = _option(1.0, "soft labels are raised to 1 / this power and normalised: below 1 sharper")
    class_penalty: float = _option(
        0.0, "factor of the penalty on answers that leave classes out, in split and semi-supervised", minimum=0
    )
    soft_ce_factor: float = _option(1.0, "factor of cross entropy on soft labels", minimum=0)
    soft_mse_factor: float = _option(1.0, "factor of the squared error on soft labels; see corrected_loss", minimum=0)
    average_decay: float | None = _option(
        0.0, "the deployed net is an exponential average of the trained one; 0: the trained one itself", minimum=0
    )
    consistency: float = _option(
        0.0, "factor of the loss that asks for the averaged net's answer on strongly changed pictures", minimum=0
    )
    consistency_threshold: float = _option(0.8, "probability from which that answer counts", minimum=0)
    fine_tune_passes: int = _option(
        0, "passes of the corrected-label branch over the trusted samples alone, after the last round", minimum=0
    )
    # Graphs and votes
    graph_k: int | None = _option(
        None,
        "neighbours; follows the data: rows per class / 12, from 5 to 20 (above 8,000 rows 32, pictures 50)",
        minimum=1,
    )
    fine_graph_k: int | None = _option(
        None,
        "neighbours in every other round, that of fine_packages; follows the data: at most 10, or graph_k where that "
        "is set, for pictures, in preset paper, and above 8,000 rows",
        minimum=1,
    )
    gamma: float = _option(3.0, "power of the similarity in the graph", minimum=0)
    alpha: float | None = _option(None, "reach of propagation; follows the data: .9 for small classes, .5 for large")
    fine_alpha: float | None = _option(
        None, "reach in the rounds of fine_packages; follows the data: .9, or alpha by the same rule as fine_graph_k"
    )
    scale_columns: bool = _option(True, "divide the starting labels by the size of their class")
    own_subset_votes: bool = _option(True, "count suggestions that start from the sample's own subset")
    corrected_source: str = _option(
        "previous", "second label source: the previous vote, or this round's first vote", ("previous", "same-round")
    )
    label_delay: int = _option(0, "1: train with the labels of the previous vote", minimum=0)
    low_percentile: float = _option(0.0, "certainty below this percentile becomes 0; the paper's minimum is 0")
    high_percentile: float = _option(1.0, "certainty above this percentile becomes 1; the paper's maximum is 1")
    round_labels: str = _option(
        "vote",
        "labels the nets learn from: the winning vote, or from half of the rounds on the argmax of the posterior",
        ("vote", "posterior"),
    )
    evidence_kept: float = _option(
        1.0, "share of what earlier rounds' graphs said that each new round keeps", minimum=0
    )
    tolerance: float = _option(1e-3, "relative residual at which the solver stops", minimum=0)
    max_iter: int = _option(100, "cap on solver iterations", minimum=1)
    exact_rows: int = _option(
        12_000, "above this many rows (on a GPU: 500,000) neighbours are searched in nearby cells only", minimum=0
    )
    n_probe: int = _option(8, "cells searched for the neighbours of a cell", minimum=1)
    # The decision
    decide: str = _option(
        "posterior", "final labels: argmax of the posterior, or every winning vote", ("posterior", "votes")
    )
    net_power: float = _option(
        0.0, "power of the deployed net's answer beside that of the graphs in the posterior; 0: graphs alone", minimum=0
    )
    held_out_passes: int | None = _option(
        None,
        "passes of the nets that judge samples they have not seen; follows the data: 0, or 6 above 8,000 rows",
        minimum=0,
    )
    held_out_folds: int = _option(
        3, "folds of those nets: each judges one share and learns from the others", minimum=2, maximum=100
    )
    examinations: int = _option(4, "how often those nets are trained anew on the decided labels", minimum=0)
    review_below: float | None = _option(
        None, "posterior below which a sample is for review; by default .7 where it is calibrated, else .85", minimum=0
    )
    outlier_share: float = _option(
        0.02, "share of the samples, those that fit worst, that get no other label", minimum=0
    )
    min_class_size: int = _option(3, "a label whose class has fewer samples is left alone", minimum=1)
    precision: float = _option(
        0.0, "change only what is expected to be right in this share of the changes; the rest is for review", minimum=0
    )
    budget: int = _option(
        0, "samples a person will look at: so many are for review, those that help most; 0: by review_below", minimum=0
    )
    assume: str = _option(
        "auto",
        "do classes overlap? auto: found from the data; apart: they do not, so take the best guess; overlapping: they "
        "do, so change only what stands out; with probabilities alone apart",
        ASSUME,
    )
    audit: float = _option(
        0.0, "share of labels to plant errors in and restore, to measure what the run finds; 0: none", minimum=0
    )

    def __post_init__(self) -> None:
        for entry in dataclasses.fields(self):
            value, choices, least = getattr(self, entry.name), entry.metadata["choices"], entry.metadata["minimum"]
            self._check_type(entry.name, str(entry.type), value)
            if choices is not None and value not in choices:
                raise ConfigError(f"{entry.name} must be one of {', '.join(choices)}. Got {value!r} instead.")
            if least is not None and value is not None and not value >= least:
                raise ConfigError(f"{entry.name} must be at least {least}. Got {value!r} instead.")
            if isinstance(value, Integral) and value > entry.metadata["maximum"]:
                raise ConfigError(f"{entry.name} must be at most {entry.metadata['maximum']:,}. Got {value!r} instead.")
        for name in ("consistency_threshold", "evidence_kept"):
            if getattr(self, name) > 1:
                raise ConfigError(f"{name} must be at most 1. Got {getattr(self, name)!r} instead.")
        if self.average_decay is not None and not self.average_decay < 1:
            raise ConfigError(f"average_decay must be below 1. Got {self.average_decay!r} instead.")
        if self.consistency and self.average_decay == 0:
            raise ConfigError("consistency needs an averaged net to ask: set average_decay above 0. Got 0 instead.")
        if self.corrected_loss == "semi-supervised" and (not self.soft_labels or self.consistency):
            raise ConfigError("corrected_loss semi-supervised needs soft_labels, and takes no consistency.")
        if not self.soft_temperature > 0:
            raise ConfigError(f"soft_temperature must be above 0. Got {self.soft_temperature!r} instead.")
        for name in ("review_below", "precision", "outlier_share"):
            if (getattr(self, name) or 0) > 1:
                raise ConfigError(f"{name} must be a probability, at most 1. Got {getattr(self, name)!r} instead.")
        if self.audit > 0.5:
            raise ConfigError(f"audit must be a share of the labels, at most 0.5. Got {self.audit!r} instead.")
        for name in ("alpha", "fine_alpha"):
            if getattr(self, name) is not None and not 0 < getattr(self, name) < 1:
                raise ConfigError(
                    f"{name} must be between 0 and 1, both excluded. Got {getattr(self, name)!r} instead."
                )
        if not 0 <= self.low_percentile < self.high_percentile <= 1:
            raise ConfigError(
                "low_percentile and high_percentile must satisfy 0 <= low < high <= 1. "
                f"Got {self.low_percentile!r} and {self.high_percentile!r} instead."
            )
        for entry in dataclasses.fields(self):
            value = getattr(self, entry.name)
            if not all(_is_finite(number) for number in (value if isinstance(value, tuple) else (value,))):
                raise ConfigError(f"{entry.name} must be finite. Got {value!r} instead.")

    @staticmethod
    def _check_type(name: str, declared: str, value: Any) -> None:
        """Annotations are the rule: whole numbers where they say int, true or false where they say bool."""
        if value is None and "None" in declared:
            return
        if declared.startswith("bool"):
            right = isinstance(value, bool)
        elif declared.startswith("int"):
            right = isinstance(value, Integral) and not isinstance(value, bool)
        elif declared.startswith("float"):
            right = isinstance(value, Real) and not isinstance(value, bool)
        else:
            right = isinstance(value, str if declared == "str" else tuple)
        if not right:
            raise ConfigError(f"{name} must be of type {declared}. Got {value!r} instead.")


def _is_finite(value: Any) -> bool:
    """Also of whole numbers that no float can hold; what is no number at all is left to others."""
    if not isinstance(value, Real):
        return True
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


# Where the paper's text differs from the defaults above (values of k, alpha and gamma are those of the work it cites).
PAPER: dict[str, Any] = {
    "n_rounds": 15,
    "noisy_branch": True,
    "packages_per_branch": PACKAGES,
    "graph_k": 50,
    "alpha": 0.99,
    "gamma": 3.0,
    "scale_columns": True,  # not in the text, but in the code of the work it cites
    "decide": "votes",
    "outlier_share": 0.0,
    "lr_milestones": (1 / 3, 2 / 3),
    "tolerance": 1e-4,
}

# Where training a net on pictures differs from the defaults above. None: `follow` has a rule for pictures.
PICTURES_PLUS: dict[str, Any] = {
    "n_rounds": None,
    "warmup_passes": 10,
    "lr": 0.05,
    "lr_schedule": "cosine",
    "held_out_passes": 0,
    "mixup": True,
    "average_decay": None,
    "consistency": 1.0,
    "correct_every": 3,
    "round_labels": "posterior",
    "evidence_kept": 0.5,
    "net_power": 1.0,
    "outlier_share": 0.0,
}
# Where the CIFAR recipe of the paper's field differs from PAPER.
PICTURES_PAPER: dict[str, Any] = {
    "n_rounds": 200,
    "warmup_passes": 10,
    "batch_size": 128,
    "lr": 0.02,
    "lr_milestones": (0.75,),
    "weight_decay": 5e-4,
    "held_out_passes": 0,
}
# The paper's recipe for Clothing1M and Food101-N, meant for pretrained weights.
PHOTOGRAPHS: dict[str, Any] = {
    "n_rounds": 15,
    "warmup_passes": 0,
    "batch_size": 64,
    "lr": 0.01,
    "lr_milestones": (1 / 3, 2 / 3),
    "weight_decay": 5e-3,
}
BASES: dict[tuple[str, Data], dict[str, Any]] = {
    ("plus", "vectors"): {},
    ("paper", "vectors"): PAPER,
    ("plus", "pictures"): PICTURES_PLUS,
    ("paper", "pictures"): {**PAPER, **PICTURES_PAPER},
    ("plus", "photographs"): {**PICTURES_PLUS, **PHOTOGRAPHS, "lr_schedule": "cosine", "correct_every": 1},
    ("paper", "photographs"): {**PAPER, **PICTURES_PAPER, **PHOTOGRAPHS},
}


def make_config(preset: str = "plus", data: Data = "vectors", **changes: Any) -> RunConfig:
    """The preset for this kind of data with some values changed; unknown names are errors."""
    known = {entry.name for entry in dataclasses.fields(RunConfig)}
    if changes.pop("tune", None) is not None:
        warnings.warn("tune has no effect any more: the weights of the pool follow the data.", LabelmendWarning, 4)
    unknown = sorted(set(changes) - known)
    if unknown:
        raise ConfigError(f"parameters must be among {', '.join(sorted(known))}. Got {', '.join(unknown)} instead.")
    return RunConfig(**{**BASES.get((str(preset), data), {}), **changes, "preset": preset})


def follow(config: RunConfig, n_rows: int, n_classes: int, data: Data = "vectors") -> RunConfig:
    """Fill every None from the size of the data, but for `review_below`. Rules measured in docs/experiments.md."""
    class_size = max(n_rows / n_classes, 1)
    large, pictures = n_rows > LARGE, data != "vectors"
    batch_size = config.batch_size or min(256, max(32 if pictures else 64, n_rows // 20))
    rounds = 10 if n_rows < SMALL else 3 if large else 8
    if pictures:
        rounds = 20 if n_rows < FEW_PICTURES else 64
    # The paper's step is shared by all branches; full batches of many small pictures keep a GPU busy.
    full = config.preset == "plus" and data == "pictures" and n_rows >= FEW_PICTURES
    packages = config.packages_per_branch or PACKAGES
    fine_packages = config.fine_packages or config.packages_per_branch or (PACKAGES if pictures else FINE_PACKAGES)
    by_turns = config.preset == "plus" and not large and not pictures
    graph_k = config.graph_k or min(50 if pictures else 32 if large else 20, max(5, round(class_size / 12)))
    alpha = config.alpha or min(0.9, max(0.5, 0.9 - 0.25 * (math.log10(class_size) - 2.1)))
    rules: dict[str, Any] = {
        "noisy_branch": pictures,
        "packages_per_branch": packages,
        "fine_packages": fine_packages,
        "n_rounds": rounds,
        "hidden": 256 if large else 512,
        "width": 64,
        "batch_size": batch_size,
        "branch_batch_size": batch_size * (config.n_branches if full else 1),
        "average_decay": 1 - 1 / min(500.0, max(10.0, AVERAGE_ROUNDS * n_rows / batch_size)),
        "graph_k": graph_k,
        "fine_graph_k": min(FINE_K, graph_k) if by_turns and config.graph_k is None else graph_k,
        "alpha": alpha,
        "fine_alpha": FINE_ALPHA if by_turns and config.alpha is None else alpha,
        "held_out_passes": 6 if large else 0,
    }
    missing = {name: value for name, value in rules.items() if getattr(config, name) is None}
    return dataclasses.replace(config, **missing)
