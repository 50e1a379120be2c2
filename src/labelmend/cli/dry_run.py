"""What a run would do and cost, from sizes, labels and headers alone: `--dry-run`.

The rates are those of two CPU cores with nothing else to do; the estimate is meant to be right within a factor of two.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from labelmend.api import with_assumption
from labelmend.cli.reading import Given, Parameters, PictureInput, TableInput
from labelmend.cli.terminal import shortened
from labelmend.config import Data, RunConfig, Settings, make_config, resolve
from labelmend.ensemble.torch_state import choose_device
from labelmend.inputs.arrays import read_all
from labelmend.inputs.backbones import LITE0, load_backbone
from labelmend.inputs.labels import check_classes
from labelmend.inputs.pictures.cache import header_sizes
from labelmend.inputs.pictures.find import Pictures
from labelmend.labels import Labels
from labelmend.report.wording import printable, seconds_in_words, size_in_words
from labelmend.runs.pictures import PictureSetting, choose_mode, default_cache, read_given

FEATURES = 1280  # of the usual backbone, for the estimate of memory
MODELS = 5  # whose names are shown


def print_plan(given: Given, parameters: Parameters, as_json: bool) -> None:
    if isinstance(given, PictureInput):
        facts = plan(given.pictures, missing=given.missing, **given.named, **parameters)
    else:
        facts = _table_plan(given, parameters)
    print(json.dumps(facts) if as_json else "\n".join(dry_run_lines(facts)))


def _table_plan(given: TableInput, parameters: Parameters) -> dict[str, Any]:
    table, alone = given.table, given.features is None
    matrix, labels, trusted, probabilities = read_all(
        given.features, table.labels, table.trusted, given.missing, table.annotators, given.pred_probs
    )
    config = with_assumption(make_config(**parameters), parameters.get("assume"), alone)
    settings = resolve(config, len(labels.codes), len(labels.classes))
    choose_device(settings.device)
    (n_rows, n_columns), n_classes = matrix.shape, len(labels.classes)
    cost = estimate(settings, n_rows, n_columns, n_classes)
    return {
        "rows": n_rows,
        "columns": n_columns,
        "classes": n_classes,
        **_counts(labels, trusted),
        **({} if probabilities is None else {"pred_probs": list(probabilities.models), "features": not alone}),
        "estimated_bytes": round(cost.n_bytes),
        "estimated_seconds": round(cost.seconds, 1),
        "parameters": dataclasses.asdict(settings),
        "warnings": table.notes,
    }


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
    in_memory = isinstance(pictures.sources, np.ndarray)
    unreadable = 0 if in_memory else sum(isinstance(found, str) for found in header_sizes(pictures))
    n, n_classes = len(pictures) - unreadable, len(given.classes)  # as many as the run will have
    settings = setting.resolved(n, n_classes)
    if chosen == "embed":
        frozen = load_backbone(backbone, size)
        decoded_size = (frozen.size, frozen.size)
        cost = estimate(settings, n, FEATURES, n_classes)
        embedding = n * (frozen.size / 224) ** 2 / PICTURES_PER_SECOND
        seconds = cost.seconds + embedding if frozen.name == LITE0 else None
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
        **_counts(given, certain),
        "estimated_bytes": round(cost.n_bytes),
        "estimated_seconds": None if seconds is None else round(seconds, 1),
        "cache": str(default_cache() if cache is None else cache),
        "cache_bytes": n * decoded_size[0] * decoded_size[1] * 3,
        "parameters": dataclasses.asdict(settings),
        "warnings": [*notes, *pictures.notes],
    }


def _config(parameters: Mapping[str, Any], data: Data) -> RunConfig:
    return make_config(data=data, **parameters)


def _counts(labels: Labels, trusted: Any) -> dict[str, int]:
    """Of the labels, and of the annotators if there are any."""
    counts = {"missing_labels": int((labels.codes < 0).sum()), "trusted": int(trusted.sum())}
    given = labels.annotations
    return (
        counts
        if given is None
        else {**counts, "annotators": len(given.names), "labels_by_annotators": len(given.sample)}
    )


def dry_run_lines(facts: dict[str, Any]) -> list[str]:
    """The plan in plain words."""
    parameters = facts["parameters"]
    width = parameters["width"] if facts.get("mode") == "train" else parameters["hidden"]
    return [
        *_size_lines(facts),
        _count_line(facts),
        *_probability_lines(facts),
        _cost_line(facts),
        f"rounds {parameters['n_rounds']}, neighbours {_alternating(parameters, 'graph_k', '{}')}, "
        f"alpha {_alternating(parameters, 'alpha', '{:.2f}')}, width {width}",
        *(f"note: {printable(text)}" for text in facts["warnings"]),
        "dry run: nothing was corrected or written",
    ]


def _size_lines(facts: dict[str, Any]) -> list[str]:
    classes = f"{facts['classes']:,} classes"
    if "pictures" not in facts:
        columns = f" x {facts['columns']:,} columns" if facts.get("features", True) else ""
        return [f"{facts['rows']:,} rows{columns}, {classes}"]
    how = "trained on" if facts["mode"] == "train" else f"embedded by {facts['backbone']}"
    height, width = facts["size"]
    unreadable = [f"{facts['unreadable']:,} with unreadable headers"] if facts["unreadable"] else []
    return [f"{facts['pictures']:,} pictures, {classes}; {how} at {height} x {width} pixels", *unreadable]


def _count_line(facts: dict[str, Any]) -> str:
    counts = f"{facts['missing_labels']:,} labels missing, {facts['trusted']:,} trusted"
    if "annotators" not in facts:
        return counts
    return f"{counts}, {facts['labels_by_annotators']:,} labels by {facts['annotators']:,} annotators"


def _probability_lines(facts: dict[str, Any]) -> list[str]:
    """The user's own models, and what is assumed about the classes."""
    assume, models, lines = facts["parameters"].get("assume", "auto"), facts.get("pred_probs"), []
    if models:
        names = ", ".join(map(shortened, models[:MODELS])) + (", ..." if len(models) > MODELS else "")
        features = "with the features" if facts["features"] else "without features"
        lines.append(f"probabilities of {len(models):,} model{'s' if len(models) > 1 else ''}, {features}: {names}")
    if models or assume != "auto":
        how = {"auto": "overlap estimated from the data", "apart": "assumed apart", "overlapping": "assumed to overlap"}
        lines.append(f"classes: {how[assume]} (assume={assume})")
    return lines


def _cost_line(facts: dict[str, Any]) -> str:
    seconds = facts["estimated_seconds"]
    time_needed = "time unknown" if seconds is None else f"{seconds_in_words(seconds)} on two CPU cores"
    disk = f", {size_in_words(facts['cache_bytes'])} of disk in {facts['cache']}" if "cache" in facts else ""
    return f"about {size_in_words(facts['estimated_bytes'])} of memory, {time_needed}{disk}"


def _alternating(parameters: dict[str, Any], name: str, form: str) -> str:
    """A value, and that of every other round if it differs."""
    value, fine = (form.format(parameters[key]) for key in (name, f"fine_{name}"))
    return value if value == fine else f"{fine} and {value} in turn"


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
