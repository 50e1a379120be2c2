"""Every decision of a run in one frozen record, and the presets that hold decisions together.

`RunConfig` is what was asked for: None means "follow the data". `resolve` turns it into `Settings`, where every value
is set, by one documented rule each; no rule looks at the noise rate.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import warnings
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
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

TYPES: dict[str, Any] = {"bool": bool, "int": Integral, "float": Real, "tuple": tuple, "str": str}

# pictures: a net is trained on them; embedded ones are vectors. photographs: pictures of more than 64 pixels a side
Data = Literal["vectors", "pictures", "photographs"]


def _option(
    default: Any,
    help: str,
    choices: tuple[str, ...] | None = None,
    minimum: float | None = None,
    maximum: float | None = None,
) -> Any:
    return field(default=default, metadata={"help": help, "choices": choices, "minimum": minimum, "maximum": maximum})


def _resolved() -> Any:
    """A field of `RunConfig` that may be None there: checked there, and here for not being it."""
    return _option(None, "")


@dataclass(frozen=True)
class RunConfig:
    """All parameters of a run. The defaults are preset `default`; `paper` is the paper's text, see `preset`."""

    preset: str = _option("default", "default: best in benchmarks; paper: as published", ("default", "paper"))
    seed: int = _option(0, "the same seed gives the same result on a CPU", minimum=0, maximum=2**63 - 1)
    device: str = _option("auto", "cpu, cuda or auto (a GPU if there is one)")
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
        0.0,
        "the deployed net is an exponential average of the trained one; 0: the trained one itself",
        minimum=0,
        maximum=1,
    )
    consistency: float = _option(
        0.0, "factor of the loss that asks for the averaged net's answer on strongly changed pictures", minimum=0
    )
    consistency_threshold: float = _option(0.8, "probability from which that answer counts", minimum=0, maximum=1)
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
    alpha: float | None = _option(
        None, "reach of propagation; follows the data: .9 for small classes, .5 for large", minimum=0, maximum=1
    )
    fine_alpha: float | None = _option(
        None,
        "reach in the rounds of fine_packages; follows the data: .9, or alpha by the same rule as fine_graph_k",
        minimum=0,
        maximum=1,
    )
    scale_columns: bool = _option(True, "divide the starting labels by the size of their class")
    own_subset_votes: bool = _option(True, "count suggestions that start from the sample's own subset")
    corrected_source: str = _option(
        "previous", "second label source: the previous vote, or this round's first vote", ("previous", "same-round")
    )
    label_delay: int = _option(0, "1: train with the labels of the previous vote", minimum=0)
    low_percentile: float = _option(
        0.0, "certainty below this percentile becomes 0; the paper's minimum is 0", minimum=0, maximum=1
    )
    high_percentile: float = _option(
        1.0, "certainty above this percentile becomes 1; the paper's maximum is 1", minimum=0, maximum=1
    )
    round_labels: str = _option(
        "vote",
        "labels the nets learn from: the winning vote, or from half of the rounds on the argmax of the posterior",
        ("vote", "posterior"),
    )
    evidence_kept: float = _option(
        1.0, "share of what earlier rounds' graphs said that each new round keeps", minimum=0, maximum=1
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
    cross_fits: int = _option(4, "repetitions of that cross-fitting, each on the labels decided by the last", minimum=0)
    review_below: float | None = _option(
        None,
        "review labels with a confidence below this; .85",
        minimum=0,
        maximum=1,
    )
    outlier_share: float = _option(
        0.02, "share of the samples, those that fit worst, that get no other label", minimum=0, maximum=1
    )
    min_class_size: int = _option(3, "a label whose class has fewer samples is left alone", minimum=1)
    precision: float = _option(
        0.0,
        "expected share of changed labels that are right, at least",
        minimum=0,
        maximum=1,
    )
    budget: int = _option(0, "number of rows a person will review; 0: use review_below", minimum=0)
    assume: str = _option(
        "auto",
        "auto, apart or overlapping: do the classes overlap?",
        ASSUME,
    )
    audit: float = _option(
        0.0,
        "share of labels that get a planted error, later undone, to measure what is found; 0: none",
        minimum=0,
        maximum=0.5,
    )

    def __post_init__(self) -> None:
        for entry in dataclasses.fields(self):
            _check(entry, getattr(self, entry.name))
        if self.average_decay == 1:
            raise ConfigError("average_decay must be below 1. Got 1 instead.")
        if self.consistency and self.average_decay == 0:
            raise ConfigError("consistency needs an averaged net to ask: set average_decay above 0. Got 0 instead.")
        if self.corrected_loss == "semi-supervised" and (not self.soft_labels or self.consistency):
            raise ConfigError("corrected_loss semi-supervised needs soft_labels, and takes no consistency.")
        if self.soft_temperature == 0:
            raise ConfigError("soft_temperature must be above 0. Got 0 instead.")
        for name in ("alpha", "fine_alpha"):
            if getattr(self, name) in (0, 1):
                raise ConfigError(
                    f"{name} must be between 0 and 1, both excluded. Got {getattr(self, name)!r} instead."
                )
        if not self.low_percentile < self.high_percentile:
            raise ConfigError(
                "low_percentile and high_percentile must satisfy 0 <= low < high <= 1. "
                f"Got {self.low_percentile!r} and {self.high_percentile!r} instead."
            )


def _check(entry: dataclasses.Field[Any], value: Any) -> None:
    """Its annotation is the rule for the type: whole numbers where it says int, true or false where it says bool."""
    name, declared, choices = entry.name, str(entry.type), entry.metadata["choices"]
    least, most = entry.metadata["minimum"], entry.metadata["maximum"]
    if value is None and "None" in declared:
        return
    kind = next((kind for kind in TYPES if declared.startswith(kind)), "str")
    if not isinstance(value, TYPES[kind]) or (isinstance(value, bool) and kind != "bool"):
        raise ConfigError(f"{name} must be of type {declared}. Got {value!r} instead.")
    if not all(_is_finite(number) for number in (value if isinstance(value, tuple) else (value,))):
        raise ConfigError(f"{name} must be finite. Got {value!r} instead.")
    if choices is not None and value not in choices:
        raise ConfigError(f"{name} must be one of {', '.join(choices)}. Got {value!r} instead.")
    if least is not None and not value >= least:
        raise ConfigError(f"{name} must be at least {least}. Got {value!r} instead.")
    bound = MOST if most is None and kind == "int" else most
    if bound is not None and value > bound:
        raise ConfigError(f"{name} must be at most {bound:,}. Got {value!r} instead.")


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

# Where training a net on pictures differs from the defaults above. None: `resolve` has a rule for pictures.
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
    ("default", "vectors"): {},
    ("paper", "vectors"): PAPER,
    ("default", "pictures"): PICTURES_PLUS,
    ("paper", "pictures"): {**PAPER, **PICTURES_PAPER},
    ("default", "photographs"): {**PICTURES_PLUS, **PHOTOGRAPHS, "lr_schedule": "cosine", "correct_every": 1},
    ("paper", "photographs"): {**PAPER, **PICTURES_PAPER, **PHOTOGRAPHS},
}


PUBLIC = ("seed", "device", "assume", "review_below", "precision", "budget", "audit")  # the others are for experts
RENAMED = {"examinations": "cross_fits"}  # former name -> name, for one release
MakeConfig = Callable[[Data], RunConfig]  # what was asked for, once it is known what the data are
EXPERT_NAMES = tuple(e.name for e in dataclasses.fields(RunConfig) if e.name not in (*PUBLIC, "preset"))


def make_config(preset: str = "default", data: Data = "vectors", **changes: Any) -> RunConfig:
    """The preset for this kind of data with some values changed."""
    if preset == "plus":
        preset = "default"
        warnings.warn('preset "plus" is called "default" now.', LabelmendWarning, 4)
    refuse_unknown(changes, (*PUBLIC, *EXPERT_NAMES))
    return RunConfig(**{**BASES.get((str(preset), data), {}), **changes, "preset": preset})


def read_config(
    preset: str,
    config: RunConfig | None,
    expert: Mapping[str, Any] | None,
    public: Mapping[str, Any],
    former: Mapping[str, Any],
    known: Collection[str],
) -> MakeConfig:
    """From the arguments of a call. `former`: what was an argument once; `known`: the names of those there are now."""
    former = dict(former)
    if former.pop("tune", None) is not None:
        warnings.warn("tune has no effect any more: the weights of the pool follow the data.", LabelmendWarning, 4)
    former, expert = _renamed(former), _renamed(expert or {})
    refuse_unknown(former, (*known, *EXPERT_NAMES))
    if former:
        words = ", ".join(f'"{name}": {value!r}' for name, value in former.items())
        warnings.warn(f"for experts there is one argument now: expert={{{words}}}.", LabelmendWarning, 4)
    given = {name: value for name, value in public.items() if value != getattr(RunConfig, name)}
    changes = {**former, **expert, **given}
    if config is None:
        return partial(make_config, preset, **changes)
    if not isinstance(config, RunConfig) or isinstance(config, Settings):
        raise ConfigError(f"config must be a RunConfig. Got {type(config).__name__} instead.")
    if changes or preset != "default":
        raise ConfigError("config holds all parameters. Leave out the others, or change it: dataclasses.replace.")
    return lambda _: config


def _renamed(parameters: Mapping[str, Any]) -> dict[str, Any]:
    for name in RENAMED.keys() & parameters.keys():
        warnings.warn(f"{name} is called {RENAMED[name]} now.", LabelmendWarning, 5)
    return {RENAMED.get(name, name): value for name, value in parameters.items()}


def as_arguments(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters by name as arguments of a call: those for experts in one."""
    expert = {name: value for name, value in parameters.items() if name in EXPERT_NAMES}
    public = {name: value for name, value in parameters.items() if name not in EXPERT_NAMES}
    return {**public, "expert": expert} if expert else public


def as_word(value: Any) -> str:
    """A parameter as `--expert NAME=VALUE` takes it."""
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def refuse_unknown(named: Collection[str], known: Collection[str]) -> None:
    """An error that names the nearest parameter."""
    for name in named:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}?" if near else "help(labelmend.RunConfig) lists those for experts."
            raise ConfigError(f"{name} is not a parameter; {hint}")


@dataclass(frozen=True)
class Turn:
    """What differs between rounds that correct: small packages and near neighbours, large ones and far, by turns."""

    packages: int  # B
    k: int
    alpha: float


@dataclass(frozen=True)
class Settings(RunConfig):
    """A configuration resolved for data of a known size: what a run goes by, and what a dry run shows."""

    packages_per_branch: int = _resolved()
    fine_packages: int = _resolved()
    n_rounds: int = _resolved()
    noisy_branch: bool = _resolved()
    hidden: int = _resolved()
    width: int = _resolved()
    batch_size: int = _resolved()
    branch_batch_size: int = _resolved()
    average_decay: float = _resolved()
    graph_k: int = _resolved()
    fine_graph_k: int = _resolved()
    alpha: float = _resolved()
    fine_alpha: float = _resolved()
    held_out_passes: int = _resolved()
    review_below: float = _resolved()

    def turn(self, round_index: int) -> Turn:
        """The first round that corrects is a fine one."""
        if round_index // self.correct_every % 2 == 0:
            return Turn(self.fine_packages, self.fine_graph_k, self.fine_alpha)
        return Turn(self.packages_per_branch, self.graph_k, self.alpha)


def stored(parameters: Mapping[str, Any]) -> Settings:
    """Settings as a file holds them, also one of an older version."""
    now = {RENAMED.get(name, name): value for name, value in parameters.items()}
    return Settings(**{**now, "preset": "default" if now["preset"] == "plus" else now["preset"]})


def resolve(config: RunConfig, n_rows: int, n_classes: int, data: Data = "vectors") -> Settings:
    """Every None filled from the size of the data. Rules measured in docs/experiments.md."""
    class_size = max(n_rows / n_classes, 1)
    large, pictures = n_rows > LARGE, data != "vectors"
    batch_size = config.batch_size or min(256, max(32 if pictures else 64, n_rows // 20))
    rounds = 10 if n_rows < SMALL else 3 if large else 8
    if pictures:
        rounds = 20 if n_rows < FEW_PICTURES else 64
    # The paper's step is shared by all branches; full batches of many small pictures keep a GPU busy.
    full = config.preset == "default" and data == "pictures" and n_rows >= FEW_PICTURES
    packages = config.packages_per_branch or PACKAGES
    fine_packages = config.fine_packages or config.packages_per_branch or (PACKAGES if pictures else FINE_PACKAGES)
    by_turns = config.preset == "default" and not large and not pictures
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
        "review_below": REVIEW_BELOW,
    }
    chosen: dict[str, Any] = {entry.name: getattr(config, entry.name) for entry in dataclasses.fields(RunConfig)}
    chosen |= {name: value for name, value in rules.items() if chosen[name] is None}
    return Settings(**chosen)
