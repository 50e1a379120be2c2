"""Maps of a clean and a noisy set by t-SNE, coloured by true, given and corrected labels; symmetric 50 and 40 %.

The clean set is drawn as a net sees it that learned the TRUE labels by plain cross entropy, the noisy set as the noisy
net of the method sees it after the last round: the features by which the data are split. The same samples on both,
drawn at random. The paper says neither which net nor how many samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from bench.paper.charts import LEGEND_LINE, file_name, legend, save_and_link
from bench.paper.drawing import COLOURS, PALE, Sheet
from bench.paper.experiment import Cell, Experiment, Measured, Options, Result
from bench.paper.rows import DEFAULT
from bench.paper.sweep import CIFAR10, NEEDS, Sweep, missing, task_of
from bench.paper.tables import grouped
from bench.paper.trial import Truth, mend, train_plainly
from bench.paper.vectors import DIGITS, FEATURES, SYMMETRIC40, SYMMETRIC50
from bench.runner import Say
from labelmend.ensemble.embed import embed
from labelmend.runs.task import Task

MOST = 2_000  # samples on a map
SIDE, MARGIN, HEAD = 300, 12, 26
SETS = {"clean": "clean set", "noisy": "noisy set"}
COLOURED = {"true": "true labels", "given": "given labels", "corrected": "corrected labels"}
NOTE = "The drawings have the first seed; each sample is one dot, at the same place in a row of maps."


def play(cell: Cell, options: Options, say: Say) -> Measured:
    task, truth = task_of(cell, options)
    found = mend(task, truth, say)
    assert found.state is not None
    assert truth.true_labels is not None
    true = torch.from_numpy(truth.true_labels).to(task.problem.samples.device)
    clean_task = replace(task, problem=replace(task.problem, given_labels=true))
    clean = train_plainly(clean_task, Truth(), lambda _: None)
    given = task.problem.given_labels.cpu().numpy()
    some = np.sort(np.random.default_rng(cell.seed).permutation(len(given))[:MOST])
    labels = {"true": truth.true_labels, "given": given, "corrected": found.labels}
    points: dict[str, Any] = {
        "clean": positions(clean.net, task, some, cell.seed),
        "noisy": positions(found.state.noisy_net, task, some, cell.seed),
        **{name: values[some].tolist() for name, values in labels.items()},
    }
    return Measured(found.figures, found.curves, {"points": points})


def positions(net: nn.Module, task: Task, some: NDArray[np.intp], seed: int) -> list[list[float]]:
    """Where t-SNE puts the samples by the net's features, in a square from 0 to 1."""
    from sklearn.manifold import TSNE

    samples = task.problem.samples
    features = embed(net, samples, indices=torch.from_numpy(some).to(samples.device))[0].float().cpu().numpy()
    features /= np.linalg.norm(features, axis=1, keepdims=True).clip(min=1e-12)
    perplexity = min(30.0, (len(some) - 1) / 3)
    placed = TSNE(perplexity=perplexity, init="pca", random_state=seed).fit_transform(features)
    low, high = placed.min(axis=0), placed.max(axis=0)
    found: list[list[float]] = ((placed - low) / np.maximum(high - low, 1e-12)).round(3).tolist()
    return found


def draw(results: Sequence[Result], images: Path) -> str:
    links = []
    for group in grouped(results):
        for column in dict.fromkeys(r.cell.column for r in group.results):
            first = min((r for r in group.results if r.cell.column == column), key=lambda r: r.cell.seed)
            title = f"maps: {group.title}, {column}"
            sheet = map_sheet(first.measured.more["points"])
            links.append(save_and_link(sheet, images, file_name("maps", group.title, column), title))
    return "\n\n".join(links)


def map_sheet(points: dict[str, Any]) -> Sheet:
    """Rows: clean and noisy set; columns: whose labels give the colours."""
    classes = sorted({label for name in COLOURED for label in points[name]})
    sheet = Sheet(len(COLOURED) * SIDE, len(SETS) * (SIDE + HEAD) + LEGEND_LINE + 12)
    for down, (place, set_name) in enumerate(SETS.items()):
        for across, (name, words) in enumerate(COLOURED.items()):
            x, y = across * SIDE, down * (SIDE + HEAD)
            sheet.text(x + MARGIN, y + 18, f"{set_name}, {words}", size=13)
            sheet.line(_frame(x + MARGIN / 2, y + HEAD, SIDE - MARGIN), PALE)
            for (right, low), label in zip(points[place], points[name], strict=True):
                at = x + MARGIN + right * (SIDE - 2 * MARGIN), y + HEAD + MARGIN / 2 + low * (SIDE - 2 * MARGIN)
                sheet.dot(*at, 1.7, COLOURS[classes.index(label) % len(COLOURS)])
    legend(sheet, [f"class {label}" for label in classes][: len(COLOURS)], MARGIN, sheet.height - 10, sheet.width)
    return sheet


def _frame(x: float, y: float, side: float) -> list[tuple[float, float]]:
    return [(x, y), (x + side, y), (x + side, y + side), (x, y + side), (x, y)]


COLUMNS = dict.fromkeys((DIGITS, FEATURES, CIFAR10), (SYMMETRIC50, SYMMETRIC40))
sweep = Sweep({DEFAULT: {}}, COLUMNS, note=NOTE, draw=draw, seeds=1)
EXPERIMENTS = {
    "maps": Experiment(
        "maps of a clean and a noisy set by t-SNE, coloured by true, given and corrected labels",
        NEEDS,
        missing,
        sweep.cells,
        play,
        sweep.show,
    )
}
