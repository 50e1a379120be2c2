"""How certain the votes are at three epochs: the paper's histograms on CIFAR-10 with 80 % symmetric noise.

At 5, 50 and 100 % of the epochs, the paper's 10th, 100th and 200th. The bars are cut by whether the corrected label is
right, which the paper does not show.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from bench.paper.charts import HEIGHT, WIDTH, add_legend, file_name, new_figure, save_and_link
from bench.paper.experiment import Cell, Experiment, Measured, Options, Result
from bench.paper.rows import DEFAULT
from bench.paper.sweep import CIFAR10, NEEDS, Sweep, missing, task_of
from bench.paper.tables import grouped
from bench.paper.trial import mend
from bench.paper.vectors import DIGITS, FEATURES, SYMMETRIC80
from bench.record import Say
from labelmend.ensemble.records import RoundRecord
from labelmend.ensemble.state import RoundState

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHARES = (0.05, 0.5, 1.0)  # of the epochs
BINS = 20
NOTE = (
    "The drawings have the certainty of the votes at three epochs of seed 0. In the paper the number of samples with "
    "large certainty grows with the epochs."
)
Counts = list[int]


def shown_epochs(epochs: int) -> list[int]:
    return list(dict.fromkeys(max(1, round(share * epochs)) for share in SHARES))


def play(cell: Cell, options: Options, say: Say) -> Measured:
    task, truth = task_of(cell, options)
    wanted = shown_epochs(cell.epochs)
    true = torch.from_numpy(truth.true_labels).to(task.problem.samples.device)
    histograms: dict[str, dict[str, Counts]] = {}

    def look(record: RoundRecord, state: RoundState) -> None:
        if record.round_index in wanted:
            right = state.corrected_labels == true
            histograms[str(record.round_index)] = {
                name: torch.histc(state.omega[among].float().cpu(), BINS, 0, 1).int().tolist()
                for name, among in (("right", right), ("wrong", ~right))
            }

    found = mend(task, truth, say, look)
    return Measured(found.figures, found.curves, {"histograms": histograms})


def draw(results: Sequence[Result], images: Path) -> str:
    """A row of histograms for the first seed of each kind of run."""
    links = []
    for group in grouped(results):
        first = min(group.results, key=lambda result: result.cell.seed)
        title = f"certainty: {group.title}, {first.cell.column}"
        figure = histograms_figure(first.measured.more["histograms"])
        links.append(save_and_link(figure, images, file_name("certainty", group.title), title))
    return "\n\n".join(links)


def histograms_figure(histograms: dict[str, dict[str, Counts]]) -> Figure:
    """A panel per epoch; wrong labels stand upon the right ones."""
    figure, axes = new_figure(1, max(len(histograms), 1), WIDTH, HEIGHT, sharey=True)
    edges = [number / BINS for number in range(BINS)]
    for place, (epoch, counts) in zip(axes, histograms.items(), strict=False):
        place.bar(edges, counts["right"], 0.9 / BINS, align="edge", label="corrected label right")
        place.bar(edges, counts["wrong"], 0.9 / BINS, counts["right"], align="edge", label="wrong")
        place.set(title=f"epoch {epoch}: samples", xlabel="certainty", xlim=(0, 1))
    add_legend(figure, *axes[0].get_legend_handles_labels())
    return figure


sweep = Sweep({DEFAULT: {}}, dict.fromkeys((DIGITS, FEATURES, CIFAR10), (SYMMETRIC80,)), note=NOTE, draw=draw)
EXPERIMENTS = {
    "certainty": Experiment(
        "histograms of the certainty at three epochs, symmetric 80 %", NEEDS, missing, sweep.cells, play, sweep.show
    )
}
