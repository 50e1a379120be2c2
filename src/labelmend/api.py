"""`correct` and `correct_images`: read what the user has, run the method, hand back a `Correction`.

Each call goes through the same four steps: one configuration, one task, one run, one assembly.
"""

from __future__ import annotations

import inspect
import time
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from labelmend.config import RunConfig, read_config
from labelmend.decision.verdict import APART
from labelmend.ensemble.records import read_limit
from labelmend.ensemble.run import Callback, Progress
from labelmend.ensemble.torch_state import own_torch
from labelmend.errors import LabelmendWarning
from labelmend.inputs.arrays import notice, read_all, read_ids
from labelmend.inputs.backbones import LITE0
from labelmend.models.vectors import NetFactory
from labelmend.result import Correction
from labelmend.runs.pictures import annotator_columns, choose_mode, picture_task, read_source
from labelmend.runs.solve import assemble, solve
from labelmend.runs.task import vector_task
from labelmend.storage.checkpoint import CHECKPOINT_SECONDS
from labelmend.storage.source import ARRAYS, call_text, source_of_pictures


@own_torch()
def correct(
    X: Any = None,
    y: Any = None,
    *,
    pred_probs: Any = None,
    annotators: Any = None,
    trusted: Any = None,
    ids: Any = None,
    missing: Any = None,
    assume: str | None = None,
    review_below: float | None = None,
    precision: float = 0.0,
    budget: int = 0,
    audit: float = 0.0,
    preset: str = "default",
    seed: int = 0,
    device: str = "auto",
    time_limit: Any = None,
    checkpoints: str | Path | None = None,
    checkpoint_every: float = CHECKPOINT_SECONDS,
    callback: Callback | None = None,
    progress: Progress | None = None,
    net: NetFactory | None = None,
    config: RunConfig | None = None,
    expert: Mapping[str, Any] | None = None,
    **former: Any,
) -> Correction:
    """Correct the labels `y` of the feature vectors `X`.

    X: rows by columns, dense (numpy, pandas, polars, torch, nested lists) or scipy sparse. May be left out where there
        are pred_probs.
    y: one label per row, of any type; None, NaN and pandas.NA are missing labels, and so is the value `missing`.
    pred_probs: probabilities of your own model, out of sample: rows by classes, in the order of the sorted classes, or
        a DataFrame whose columns name them; a dict or list of several models'.
    annotators: who gave the labels. One name per row; or, where several people labelled a row, a table with a row for
        each row of X and a column for each annotator, missing where someone gave no label: a pandas or polars
        DataFrame, a dict {name: labels}, or a two-dimensional array. With a table, y may be left out: the given labels
        are then the consensus of the annotators, weighted by how good each of them is. `labels_by_annotator` makes the
        table from triples. See `annotators` in the result.
    trusted: marks rows whose label is certain; it is kept, and helps the others.
    ids: names of the rows for the run folder; their positions by default.
    assume: "apart" (classes do not overlap, so the best guess is taken), "overlapping" (only what stands out is
        changed) or "auto" (found from the data; the default, but "apart" with pred_probs alone).
    review_below: confidence below which a label is for review; by default .85, or .7 where an audit calibrated it.
    precision: change only what is expected to be right in this share of the changes; the rest is for review.
    budget: samples a person will look at: so many are for review, those that help most; 0: by review_below.
    audit: share of labels in which errors are planted and taken out again, to measure the run (`result.audit`).
    preset: "default" (what measured best) or "paper" (as the text has it).
    seed: the same seed gives the same result on a CPU. device: "cpu", "cuda" or "auto".
    time_limit: seconds, or "10m": stops before exceeding it; the final decision is not included.
    checkpoints: folder in which the run is kept between rounds, at least `checkpoint_every` seconds apart; the same
        call resumes from there after any interruption.
    callback: called after each round with its record and the state; progress: with the name of each stage.
    net: builds another net than the default, from (number of inputs, number of classes).
    config: a `RunConfig` in place of preset, seed, device and all below. expert: any of its fields by name, such as
        {"n_rounds": 10}.
    """
    began = time.perf_counter()
    limit = read_limit(time_limit)
    public = _public(assume, review_below, precision, budget, audit, seed, device)
    chosen = with_assumption(
        read_config(preset, config, expert, public, former, ARGUMENTS)("vectors"), assume, X is None
    )
    matrix, labels, certain, probabilities = read_all(X, y, trusted, missing, annotators, pred_probs)
    names = read_ids(ids, len(labels.codes))
    task = vector_task(matrix, labels, certain, chosen, net, probabilities, alone=X is None)
    notes = notice(labels, task.duplicates, task.settings)
    for note in notes:
        warnings.warn(note, LabelmendWarning, stacklevel=3)  # own_torch stands in between
    with task.checkpoints_in(checkpoints, checkpoint_every) as keeper:
        solution = solve(task, callback, progress, keeper, limit)
    result = assemble(solution, task, labels, names, notes, time.perf_counter() - began)
    named = {"pred_probs": pred_probs, "annotators": annotators, "trusted": trusted, "ids": ids, "missing": missing}
    named |= _named(public, preset, net, config, {**former, **(expert or {})})
    data, named = ({"X": X, "y": y}, named) if X is not None else ({}, {"y": y, **named})
    return replace(result, source=ARRAYS, repeat=call_text("correct", data, named))


@own_torch()
def correct_images(
    source: Any,
    y: Any = None,
    *,
    mode: str = "auto",
    backbone: Any = LITE0,
    size: int | None = None,
    cache: str | Path | None = None,
    labels: str | None = None,
    annotators: Any = None,
    trusted: Any = None,
    ids: Any = None,
    missing: Any = None,
    assume: str | None = None,
    review_below: float | None = None,
    precision: float = 0.0,
    budget: int = 0,
    audit: float = 0.0,
    preset: str = "default",
    seed: int = 0,
    device: str = "auto",
    time_limit: Any = None,
    checkpoints: str | Path | None = None,
    checkpoint_every: float = CHECKPOINT_SECONDS,
    callback: Callback | None = None,
    progress: Progress | None = None,
    net: NetFactory | None = None,
    config: RunConfig | None = None,
    expert: Mapping[str, Any] | None = None,
    **former: Any,
) -> Correction:
    """Correct the labels of pictures. Those that cannot be read are listed in the result with the reason.

    source: a folder of class folders, a .csv or .parquet with the columns path and label, a folder saved by Hugging
        Face's `datasets`, an .npz with the arrays images and labels; or, with the labels `y`, a list of paths or an
        array of uint8 (N, H, W[, 1 or 3]).
    mode: "embed": features of a frozen backbone, then the method for vectors; "train": the nets of the method are
        trained on the pictures; "auto": train where there is a GPU, embed elsewhere.
    backbone: for "embed"; "efficientnet-lite0", "hf:NAME", a folder with a transformers model, or a torch.nn.Module.
    size: side in pixels to which pictures are fitted; by default the backbone's; in train mode the pictures' own if it
        is the same for all and at most 64, else 256, of which the net sees 224.
    cache: folder for decoded pixels and features; by default labelmend in $XDG_CACHE_HOME or ~/.cache.
    labels, ids, trusted: name columns; with `y`, ids and trusted are one value per picture, as in `correct`.
    annotators: names the column that says who gave the label, or a list of columns that hold the labels of each; with
        an array or a list of paths, as in `correct`.
    net: from (number of features, or 3 colours; number of classes). All else as in `correct`.
    """
    began = time.perf_counter()
    limit = read_limit(time_limit)
    public = _public(assume, review_below, precision, budget, audit, seed, device)
    make = read_config(preset, config, expert, public, former, (*ARGUMENTS, *OF_PICTURES))
    where = device if config is None else config.device
    chosen, notes = choose_mode(mode, (expert or {}).get("device", where), make)
    pictures = read_source(source, y, labels, ids, trusted, annotators)
    origin = source_of_pictures(source, labels, ids, trusted, annotator_columns(annotators))
    if progress is not None:
        for note in notes:
            progress(note)
    ready = picture_task(pictures, chosen, make, y, missing, backbone, size, cache, net, progress)
    notes, kept = [*notes, *ready.notes], ready.readable
    for note in notes:
        warnings.warn(note, LabelmendWarning, stacklevel=3)
    with ready.task.checkpoints_in(checkpoints, checkpoint_every) as keeper:
        solution = solve(ready.task, callback, progress, keeper, limit)
    seconds = time.perf_counter() - began
    result = assemble(solution, ready.task, ready.given, pictures.ids, notes, seconds, kept.rows, ready.unreadable)
    named = {"mode": mode, "backbone": backbone, "size": size, "labels": labels, "ids": ids, "trusted": trusted}
    named |= {"annotators": annotators, "missing": missing}
    named |= _named(public, preset, net, config, {**former, **(expert or {})})
    data = {"source": source} if y is None else {"source": source, "y": y}
    origin = replace(origin, missing=None if missing is None else str(missing))
    return replace(result, source=origin, repeat=call_text("correct_images", data, named))


ARGUMENTS = ("X", "y", *inspect.unwrap(correct).__kwdefaults__)
OF_PICTURES = ("mode", "backbone", "size", "cache", "labels")


def with_assumption(config: RunConfig, assume: str | None, alone: bool) -> RunConfig:
    """Probabilities alone say nothing about whether classes are apart: that is assumed, unless the user said."""
    open_yet = assume is None and config.assume == "auto"
    return replace(config, assume=APART) if alone and open_yet else config


def _public(
    assume: str | None, review_below: float | None, precision: float, budget: int, audit: float, seed: int, device: str
) -> dict[str, Any]:
    found = {"review_below": review_below, "precision": precision, "budget": budget, "audit": audit}
    return {**found, "seed": seed, "device": device, **({} if assume is None else {"assume": assume})}


def _named(
    public: Mapping[str, Any], preset: str, net: Any, config: RunConfig | None, expert: Mapping[str, Any]
) -> dict[str, Any]:
    """The parameters of the method, as far as they are not the defaults, as a call would name them."""
    named = {name: value for name, value in public.items() if value != getattr(RunConfig, name)}
    return {"preset": preset, "net": net, **named, "config": config, "expert": dict(expert) or None}
