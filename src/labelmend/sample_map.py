"""The map of a run: some of its samples on a plane, as the classifier it hands over sees them.

Drawn at the end of a run, since features are not kept. Knows the nets of the run and what was decided; how points come
to lie on a plane is `layout.py`.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from labelmend.embed import embed
from labelmend.layout import lay_out
from labelmend.result import SampleMap
from labelmend.state import Problem, RoundState

MOST = 5_000  # samples on a map


def draw_map(
    state: RoundState, problem: Problem, labels: NDArray[np.int64], status: NDArray[np.int64], seed: int
) -> SampleMap:
    """Positions from the features of the deployed net. The same seed gives the same map."""
    indices = choose_samples(labels, status, MOST, np.random.default_rng(seed))
    chosen = torch.from_numpy(indices).to(problem.samples.device)
    features = embed(state.deployed_net, problem.samples, indices=chosen)[0]
    return SampleMap(indices, lay_out(features.float().cpu().numpy(), seed))


def choose_samples(
    labels: NDArray[np.int64], status: NDArray[np.int64], most: int, generator: np.random.Generator
) -> NDArray[np.int64]:
    """All samples; of more than `most`, as many of each status as the root of its size says, evenly over the classes.

    The root lets the few that were corrected or are doubtful be seen beside the many that were kept.
    """
    if len(labels) <= most:
        return np.arange(len(labels))
    kinds, sizes = np.unique(status, return_counts=True)
    parts = []
    for kind, places in zip(kinds, _places(sizes, most), strict=True):
        members = generator.permutation(np.flatnonzero(status == kind))
        by_class = members[np.argsort(labels[members], kind="stable")]
        parts.append(by_class[np.arange(places) * len(members) // max(places, 1)])
    return np.sort(np.concatenate(parts))


def _places(sizes: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """`most` dealt out by the roots of the sizes, but to nobody more than its size."""
    places = np.zeros_like(sizes)
    while (left := most - places.sum()) > 0:
        open_to = places < sizes
        shares = np.sqrt(sizes) * open_to
        more = np.floor(left * shares / shares.sum()).astype(np.int64)
        if not more.any():
            more[np.argmax(shares)] = 1
        places = np.minimum(places + more, sizes)
    return places
