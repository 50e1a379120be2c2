"""Known errors on top of whatever noise there is: planted into samples that look clean, to see what becomes of them.

The given label of such a sample is taken for the truth. It is not always: what looks clean may be wrong all the same,
and what looks clean is easier than the rest. Figures from planted errors are therefore a little kinder than life.

    random      another class, uniformly
    confusing   the samples nearest to another class get it, by what a run knows of them without their own label
    patch       whole neighbourhoods get the class whose mean is nearest
    mixed       a third of each, on different samples
    like suspects   for the audit: where neighbours are as mixed as around the labels they object to, see there

Trusted and missing labels are never touched, nor those of classes with fewer than SMALL_CLASS samples. Knows codes and
probabilities; does not know runs. The generators are those of the benchmarks, `noise.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from labelmend.diagnosis import noise
from labelmend.ensemble.graphs import neighbors_of
from labelmend.errors import DataError

Codes = NDArray[np.int64]
Mask = NDArray[np.bool_]

KINDS = ("random", "confusing", "patch", "mixed")
SMALL_CLASS = 10  # samples below which a class is left alone: one error more would be a different class
NEAR = 2  # confusing errors are drawn from this many times their number of samples nearest to another class
NEIGHBOURS = 10
TRIES = 4  # suspects that are looked at for every error wanted: the class of some may have no sample that looks clean


@dataclass(frozen=True)
class Planted:
    labels: Codes  # with the errors in place; -1: missing
    rows: NDArray[np.int64]  # where they are, ascending
    originals: Codes  # what was there before, along `rows`

    @classmethod
    def among(cls, labels: Codes, rows: Codes, changed: Codes) -> Planted:
        """`changed` are the labels of `rows` with the errors in place."""
        planted = labels.copy()
        planted[rows] = changed
        wrong = np.flatnonzero(planted != labels)
        return cls(planted, wrong, labels[wrong])


def plant(
    kind: str,
    labels: Codes,
    may_change: Mask,
    share: float,
    features: NDArray[Any],
    probabilities: NDArray[np.floating[Any]],
    rng: np.random.Generator,
) -> Planted:
    """Errors of one kind in a `share` of the labelled samples, among those that `may_change`, see `plantable`.

    `probabilities` are what is known of each sample without its own label, (n, C).
    """
    labelled = np.flatnonzero(labels >= 0)
    codes, free = labels[labelled], may_change[labelled]
    # At most half of what looks clean, so that as many good labels stay to be watched.
    number = min(max(1, round(share * len(codes))), int(free.sum()) // 2)
    if number == 0:
        raise too_few_clean(int(free.sum()), len(codes))
    known = features[labelled], probabilities[labelled].astype(np.float64)
    changed = codes.copy()
    parts = ("random", "confusing", "patch") if kind == "mixed" else (kind,)
    for left, part in zip(range(len(parts), 0, -1), parts, strict=True):
        # The rest of the errors, dealt to the kinds that are left: rounding loses none.
        count = round((number - int((changed != codes).sum())) / left)
        one = _plant_one(part, codes, free & (changed == codes), count, *known, rng)
        changed = np.where(one != codes, one, changed)
    return Planted.among(labels, labelled, changed)


def plantable(labels: Codes, trusted: Mask, clean: Mask, n_classes: int) -> Mask:
    """Where an error may be planted."""
    sizes = np.bincount(labels[labels >= 0], minlength=n_classes)
    large: Mask = sizes[labels.clip(min=0)] >= SMALL_CLASS
    return clean & ~trusted & (labels >= 0) & large


def plant_like_suspects(
    labels: Codes,
    may_change: Mask,
    rows: Codes,
    counts: NDArray[Any],
    number: int,
    rng: np.random.Generator,
) -> Planted:
    """Errors that look like those of these data: each takes after a suspect, a sample whose neighbours object to it.

    `counts` are the labels of the neighbours of the samples `rows`. Of the class that a suspect's neighbours say, the
    sample that looks clean and is most like it gets the suspect's label: one around which that class and that label are
    about as frequent as around the suspect. So errors sit where errors of these data sit, and go where they go. Where
    there are no suspects to take after, they are random.
    """
    given = labels[rows]
    clean, source = looks_clean(given, counts), noise.nearest_rival(given, counts)[0]
    suspects, free = np.flatnonzero(~clean & may_change[rows]), clean & may_change[rows]
    number = min(number, int(free.sum()) // 2)
    errors = given.copy()
    for model in np.resize(rng.permutation(suspects), TRIES * number if len(suspects) else 0):
        candidates = np.flatnonzero(free & (errors == given) & (given == source[model]))
        if number == 0 or len(candidates) == 0:
            continue
        classes = [source[model], given[model]]
        misfit = np.abs(counts[candidates][:, classes] - counts[model, classes]).sum(axis=1)
        errors[candidates[(misfit + rng.random(len(candidates))).argmin()]] = given[model]
        number -= 1
    errors = noise.random(errors, number / len(errors), counts.shape[1], rng, free & (errors == given))
    return Planted.among(labels, rows, errors)


def looks_clean(labels: Codes, counts: NDArray[Any]) -> Mask:
    """Whether more neighbours have the sample's label than any other."""
    return np.asarray(noise.nearest_rival(labels, counts)[1] > 0)


def neighbour_counts(rows: Tensor, given: Tensor, places: Tensor, n_classes: int, k: int = NEIGHBOURS) -> Tensor:
    """(len(places), C) given labels of the k nearest samples, by cosine, of each of the samples at `places`.

    `rows` are of length one. A sample is not its own neighbour; one without a label counts for no class.
    """
    labels = torch.where(given < 0, n_classes, given)
    nearest = labels[neighbors_of(places, rows, k).indices]
    counts = torch.zeros(len(places), n_classes + 1, device=rows.device)
    counts.scatter_add_(1, nearest, torch.ones_like(nearest, dtype=counts.dtype))
    return counts[:, :n_classes]


def near_borders(margin: NDArray[np.floating], free: Mask, count: int) -> Codes:
    """The free samples nearest to another class: NEAR times as many as errors, else all repetitions would be alike."""
    return np.argsort(np.where(free, margin, np.inf), kind="stable")[: min(NEAR * count, int(free.sum()))]


def _plant_one(
    kind: str,
    codes: Codes,
    free: Mask,
    count: int,
    features: NDArray[Any],
    probabilities: NDArray[np.float64],
    rng: np.random.Generator,
) -> Codes:
    if kind == "random":
        return noise.random(codes, count / len(codes), probabilities.shape[1], rng, free)
    if kind == "patch":
        return noise.patch(codes, count / len(codes), features, rng, among=free)
    rival, margin = noise.nearest_rival(codes, probabilities)
    return noise.replaced(codes, rng.permutation(near_borders(margin, free, count))[:count], rival)


def too_few_clean(n_free: int, n_asked: int) -> DataError:
    return DataError(
        f"there must be samples that look clean, in classes of at least {SMALL_CLASS}, to plant errors in. "
        f"Got {n_free} among {n_asked} instead; label more, or go without."
    )
