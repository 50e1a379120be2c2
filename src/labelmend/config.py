"""Every decision of a run in one frozen record, and the presets that hold decisions together.

Stages never see this: configuration stops at `loop.py`, which hands them plain numbers.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any


def _option(default: Any, help: str, choices: tuple[str, ...] | None = None) -> Any:
    return field(default=default, metadata={"help": help, "choices": choices})


@dataclass(frozen=True)
class RunConfig:
    n_branches: int = 5
    packages_per_branch: int = 4
    n_rounds: int | None = None
    warmup_passes: int | None = None
    resplit: bool = True
    noisy_branch: bool = True
    hidden: int | None = None
    lr: float = 0.05
    momentum: float = 0.9
    weight_decay: float = 5e-4
    batch_size: int | None = None
    lr_milestones: tuple[float, ...] = ()
    branch_loss: str = "smoothness"
    branch_samples: str = "kept"
    smoothness_scale: float = 2.0
    ce_factor: float = 1.0
    mae_factor: float = 0.0
    mixup: bool = False
    soft_labels: bool = False
    soft_source: str = "net"
    soft_ce_factor: float = 1.0
    soft_mse_factor: float = 1.0
    graph_k: int | None = None
    gamma: float = 3.0
    alpha: float | None = None
    scale_columns: bool = True
    own_subset_votes: bool = True
    corrected_source: str = "previous"
    label_delay: int = 0
    tolerance: float = 1e-3
    max_iter: int = 100
    certainty_percentiles: tuple[float, float] = (0.0, 1.0)
    n_probe: int = 20
