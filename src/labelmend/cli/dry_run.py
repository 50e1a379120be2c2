"""What a run would do and cost, from sizes, labels and headers alone: `--dry-run`.

The rates are those of two CPU cores with nothing else to do; the estimate is meant to be right within a factor of two.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from labelmend.config import Data, RunConfig, Settings, make_config
from labelmend.inputs.backbones import LITE0, load_backbone
from labelmend.inputs.labels import check_classes
from labelmend.inputs.pictures.cache import header_sizes
from labelmend.inputs.pictures.find import Pictures
from labelmend.labels import Labels
from labelmend.runs.pictures import PictureSetting, choose_mode, default_cache, read_given

FEATURES = 1280  # of the usual backbone, for the estimate of memory


def plan(
    pictures: Pictures,
    *,
    mode: str = "auto",
    backbone: Any = LITE0,
    size: int | None = None,
    cache: str | Path | None = None,
    missing: Any = None,
    **parameters: Any,
) -> dict[str, Any]:
    """What `correct_images` would do and cost, from labels and headers alone; ready for JSON."""
    make = partial(_config, parameters)
    chosen, notes = choose_mode(mode, parameters.get("device", "auto"), make)
    given, certain = read_given(pictures, None, missing)
    check_classes(given)
    setting = PictureSetting.of(chosen, pictures, size, make)
    unreadable = _unreadable(pictures)
    n, n_classes = len(pictures) - unreadable, len(given.classes)  # as many as the run will have
    settings = setting.resolved(n, n_classes)
    if chosen == "embed":
        frozen = load_backbone(backbone, size)
        decoded_size = (frozen.size, frozen.size)
        cost = estimate(settings, n, FEATURES, n_classes)
        seconds = cost.seconds + embedding_seconds(n, frozen.size) if frozen.name == LITE0 else None
        how = {"mode": chosen, "backbone": frozen.name}
    else:
        decoded_size = setting.decoded or (0, 0)
        cost = estimate(settings, n, 8 * settings.width, n_classes)
        seconds, how = None, {"mode": chosen}
    return {
        **how,
        "pictures": len(pictures),
        "size": list(decoded_size),
        "classes": n_classes,
        "unreadable": unreadable,
        "missing_labels": int((given.codes < 0).sum()),
        "trusted": int(certain.sum()),
        **annotator_facts(given),
        "estimated_bytes": round(cost.n_bytes),
        "estimated_seconds": None if seconds is None else round(seconds, 1),
        "cache": str(default_cache() if cache is None else cache),
        "cache_bytes": n * decoded_size[0] * decoded_size[1] * 3,
        "parameters": dataclasses.asdict(settings),
        "warnings": [*notes, *pictures.notes],
    }


def _config(parameters: Mapping[str, Any], data: Data) -> RunConfig:
    return make_config(data=data, **parameters)


def annotator_facts(labels: Labels) -> dict[str, int]:
    """How many annotators and labels of theirs there are, if there are any."""
    said = labels.annotations
    return {} if said is None else {"annotators": len(said.names), "labels_by_annotators": len(said.sample)}


def _unreadable(pictures: Pictures) -> int:
    if isinstance(pictures.sources, np.ndarray):
        return 0
    return sum(isinstance(found, str) for found in header_sizes(pictures))


BASE_BYTES = 400 * 2**20  # interpreter and torch
START_SECONDS = 2.5  # to load torch and scikit-learn
PRODUCTS_PER_SECOND = 60e9  # multiply-adds of blocked matrix products, top-k included
SPARSE_PER_SECOND = 4e9  # multiply-adds of sparse products, with the solver's vector work
STEPS_PER_SECOND = 900.0  # training steps of a small net
PICTURES_PER_SECOND = 50.0  # of 224 x 224 pixels through EfficientNet-Lite0
EDGES_PER_NEIGHBOR = 1.6  # a graph of k neighbours made symmetric
POOL_SECONDS, POOL_PER_ROW, MORE_PER_ROW = 0.4, 8e-4, 2e-4  # members, joining and classifier; the first many rows cost
POOL_ROWS = 12_000
MEMBERS = 7  # arrays of (rows, classes) that the pool holds
SOLVER_ENTRIES = 2**23  # the solver works on blocks of columns no larger than this


@dataclass(frozen=True)
class Cost:
    n_bytes: float
    seconds: float


def estimate(settings: Settings, n_rows: int, n_columns: int, n_classes: int) -> Cost:
    return Cost(_bytes(settings, n_rows, n_columns, n_classes), _seconds(settings, n_rows, n_classes))


def embedding_seconds(n_pictures: int, size: int) -> float:
    """To run EfficientNet-Lite0 over pictures of this side."""
    return n_pictures * (size / 224) ** 2 / PICTURES_PER_SECOND


def _bytes(settings: Settings, n_rows: int, n_columns: int, n_classes: int) -> float:
    k, branches, hidden = settings.graph_k, settings.n_branches, settings.hidden
    inputs = 2 * n_rows * n_columns * 4  # as they came, and scaled
    embeddings = 2 * n_rows * hidden * 4
    graphs = branches * n_rows * EDGES_PER_NEIGHBOR * k * 8
    solver = 6 * min(n_rows * 2 * branches * n_classes, SOLVER_ENTRIES) * 4
    probabilities = 6 * n_rows * n_classes * 4
    suggestions = n_rows * 2 * branches**2 * 12
    pool = 0 if settings.decide == "votes" else MEMBERS * n_rows * n_classes * 4 + 2 * n_rows * n_columns * 8
    return BASE_BYTES + inputs + embeddings + graphs + solver + probabilities + suggestions + pool


def _seconds(settings: Settings, n_rows: int, n_classes: int) -> float:
    branches, rounds = settings.n_branches, settings.n_rounds
    candidates = n_rows if n_rows <= settings.exact_rows else min(n_rows, settings.n_probe * n_rows**0.5)
    search = n_rows * candidates * ((settings.hidden) + 150) / PRODUCTS_PER_SECOND
    turns = ((settings.graph_k, settings.alpha), (settings.fine_graph_k, settings.fine_alpha))
    steps = sum(_products(n_rows, k, alpha, settings.tolerance) for k, alpha in turns) / len(turns)
    solve = steps * 2 * branches * n_classes / SPARSE_PER_SECOND
    held_out = settings.cross_fits * (settings.held_out_folds - 1) * settings.held_out_passes
    passes = settings.warmup_passes + 3 * rounds + held_out
    train = passes * n_rows / settings.batch_size / STEPS_PER_SECOND
    pool = 0.0 if settings.decide == "votes" else _pool_seconds(n_rows, n_classes)
    return START_SECONDS + rounds * branches * (search + solve) + train + pool


def _pool_seconds(n_rows: int, n_classes: int) -> float:
    """Most members and the classifier learn from so many rows at most; what they say of all rows costs less."""
    scores = 2 * n_rows * n_classes * MEMBERS / PRODUCTS_PER_SECOND * 100
    return POOL_SECONDS + POOL_PER_ROW * min(n_rows, POOL_ROWS) + MORE_PER_ROW * n_rows + scores


def _products(n_rows: int, k: int, alpha: float, tolerance: float) -> float:
    """Edges of a graph times the most steps that conjugate gradients take on it."""
    steps = 1 + math.log(2 / tolerance) * math.sqrt(1 / (1 - alpha)) / 2
    return steps * n_rows * EDGES_PER_NEIGHBOR * k
