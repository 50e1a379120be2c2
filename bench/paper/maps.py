"""Maps of a clean and a noisy set by t-SNE, coloured by true, given and corrected labels; symmetric 50 and 40 %.

The clean set is drawn as a net sees it that learned the TRUE labels by plain cross entropy, the noisy set as the noisy
net of the method sees it after the last round: the features by which the data are split. The same samples on both,
drawn at random. The paper names neither the net nor the number of samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from bench.paper.charts import COLOURS, add_legend, by_column, file_name, new_figure, save_and_link
from bench.paper.experiment import Cell, Experiment, Measured, Options, Result
from bench.paper.rows import DEFAULT
from bench.paper.sweep import CIFAR10, NEEDS, Sweep, missing, task_of
from bench.paper.trial import Truth, mend, train_plainly
from bench.paper.vectors import DIGITS, FEATURES, SYMMETRIC40, SYMMETRIC50
from bench.record import Say
from labelmend.ensemble.fit import embed
from labelmend.runs.task import Task

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST = 2_000  # samples on a map
SIDE = 3.0  # inches of a map
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
    for group in by_column(results):
        first = min(group.results, key=lambda result: result.cell.seed)
        figure = maps_figure(first.measured.more["points"])
        links.append(save_and_link(figure, images, file_name("maps", group.title), f"maps: {group.title}"))
    return "\n\n".join(links)


def maps_figure(points: dict[str, Any]) -> Figure:
    """Rows: clean and noisy set; columns: whose labels give the colours. Dots are pixels in the SVG, too."""
    classes = sorted({label for name in COLOURED for label in points[name]})
    figure, axes = new_figure(len(SETS), len(COLOURED), SIDE, SIDE)
    pairs = [(place, name) for place in SETS for name in COLOURED]
    for map_axes, (place, name) in zip(axes, pairs, strict=True):
        colours = [COLOURS[classes.index(label) % len(COLOURS)] for label in points[name]]
        map_axes.scatter(*zip(*points[place], strict=True), s=4, c=colours, linewidths=0, rasterized=True)
        map_axes.set(title=f"{SETS[place]}, {COLOURED[name]}", xticks=[], yticks=[])
    shown = classes[: len(COLOURS)]
    dots = [axes[0].scatter([], [], c=COLOURS[number], label=f"class {label}") for number, label in enumerate(shown)]
    add_legend(figure, dots, [f"class {label}" for label in shown])
    return figure


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
