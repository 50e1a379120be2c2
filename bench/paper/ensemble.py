"""The paper's analyses of its ensemble: branches, patches, their combinations, losses, re-splitting, architecture."""

from __future__ import annotations

from functools import partial

from bench.paper.charts import draw_by_row, draw_curves, draw_in_panels
from bench.paper.rows import DEFAULT, NET, SOFT, WITH_MIXUP, WITHOUT, ablation_changes
from bench.paper.sweep import Sweep

BRANCHES = {f"M = {m}": {"n_branches": m} for m in range(2, 11)}
PATCHES = {f"B = {2**power}": {"packages_per_branch": 2**power} for power in range(12)}
# M B = 20 and 40; the paper's list for 40 has misprints, its text has (8, 5).
PAIRS = ((2, 10), (4, 5), (5, 4), (10, 2), (2, 20), (4, 10), (5, 8), (8, 5), (10, 4))
COMBINATIONS = {f"M = {m}, B = {b}": {"n_branches": m, "packages_per_branch": b} for m, b in PAIRS}
PANELS = {"M B = 20": list(COMBINATIONS)[:4], "M B = 40": list(COMBINATIONS)[4:]}
LOSSES = {
    "cross entropy": "cross-entropy",
    "GS + feature + L2": "smoothness-features",
    "GS + softmax + L2": "smoothness-unweighted",
    "weighted GS + softmax + L2": "smoothness",
    "weighted GS + softmax + KL": "smoothness-kl",
    "weighted GS + softmax + JS": "smoothness-js",
}
THEIR_LOSSES = (74.08, 74.47, 75.15, 75.17, 74.92, 74.98)
CLOTHING1M_FACTORS = (1, 1, 1, 1)  # en_ce, en_mae, cor_ce, cor_mse
ARCHITECTURE = (DEFAULT, WITHOUT, WITH_MIXUP, SOFT, NET)
THEIR_ARCHITECTURE = {DEFAULT: 75.17, WITHOUT: 73.91, WITH_MIXUP: 73.87, SOFT: 73.90}

branches = Sweep(
    BRANCHES,
    paper_rows={"M = 5": 75.17},
    heading="B = 4",
    note="In the paper accuracy saturates at M = 5; its figure prints no other number.",
    draw=partial(draw_by_row, "branches", "branches M (B = 4)", "M = "),
)
patches = Sweep(
    PATCHES,
    paper_rows={"B = 4": 75.17},
    heading="M = 5",
    note=(
        "The paper's best is B = 4; its figure prints no other number. From M B = size of the largest class on every "
        "sample is a package of its own, and the rows are the same run."
    ),
    draw=partial(draw_by_row, "patches", "packages B per class and branch (M = 5)", "B = "),
)
combinations = Sweep(
    COMBINATIONS,
    paper_rows={"M = 4, B = 5": 75.15, "M = 8, B = 5": 75.05},
    heading="M B = 20, then 40",
    note="The paper's figure prints two numbers.",
    draw=partial(draw_in_panels, "combinations", PANELS),
)
losses = Sweep(
    {row: {"branch_loss": name} for row, name in LOSSES.items()},
    paper_rows=dict(zip(LOSSES, THEIR_LOSSES, strict=True)),
    heading="loss of the branches",
)
resplit = Sweep(
    {"re-splitting": {}, "split once": {"resplit": False}},
    paper_rows={"re-splitting": 75.17, "split once": 75.13},
    note="Split once: on the features of the net that the warm-up trained by cross entropy on the given labels.",
)
architecture = Sweep(
    {row: ablation_changes(row, CLOTHING1M_FACTORS) for row in ARCHITECTURE},
    paper_rows=THEIR_ARCHITECTURE,
    note="Each row adds to the one before; factors of the losses as the paper has them for Clothing1M, all 1.",
)

similarity = Sweep(
    {row: BRANCHES[row] for row in ("M = 2", "M = 3", "M = 5", "M = 7", "M = 10")},
    heading="B = 4",
    note=(
        "The drawings have the mean cosine over the edges of the graphs and the test accuracy, epoch by epoch, mean of "
        "the seeds. In the paper the best accuracy is where that cosine is between 0.7 and 0.8."
    ),
    draw=partial(draw_curves, "similarity", {"similarity": "mean cosine over the edges", "test": "test accuracy, %"}),
)

EXPERIMENTS = {
    "branches": branches.experiment("number of branches, M = 2 to 10"),
    "patches": patches.experiment("number of local patches, B = 1 to 2048"),
    "combinations": combinations.experiment("combinations of M and B with M B = 20 and 40"),
    "losses": losses.experiment("the six losses of the branches"),
    "resplit": resplit.experiment("new packages every round, or split once"),
    "similarity": similarity.experiment("average similarity of the graphs and accuracy, epoch by epoch, by M"),
    "architecture": architecture.experiment("with and without the noisy branch"),
}
