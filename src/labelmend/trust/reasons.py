"""Why a sample is in doubt: it fits another class, two classes, or none. `result.reason`, reasons.csv.

How badly a sample fits is one number, its misfit, from two voices of the deployed net: its logits (centred over the
classes), and how far its features go in the direction of each class. Of each, the mean over the classes is taken,
weighted by what the graphs say without the sample's own label: it is small where the net speaks softly, where the
graphs cannot decide, and where net and graphs speak of different classes. The misfit is how far it falls below what is
usual in its class, in quartiles: one is the distance from the median of clean-looking samples to their lower quartile;
the mean of the two voices, and UNSURE times how unsure the decision is.

A sample that fits no class is not relabelled: of the least fitting ones (`share`, 2 %) none gets another label, and
those that lie far outside what clean-looking samples show are for review even where their label stands. To leave a
label standing is to believe it, so the share falls where more than SOME_WRONG of the labels seem wrong, and is none
from MANY_WRONG on.

Knows arrays and the decision; does not know true labels.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from labelmend.decide import REVIEW, Decision
from labelmend.trust.testimony import TINY, Floats, Testimony

ANOTHER, TWO, NONE = "fits another class", "fits two classes", "fits no class"
REASONS = ("", ANOTHER, TWO, NONE)  # a code is a position here
REASON_TYPE = np.dtype("<U18")
UNSURE = 2.0  # AUROC of two classes of CIFAR-10 among the other eight, 20 % wrong labels: .853; without .826
SOME_WRONG, MANY_WRONG = 0.25, 0.35  # noise rates
FAR = 5.0  # quartiles above the median: of clean digits 0.2 % lie beyond
LOOKS_CLEAN = 0.9  # confidence of a kept label
FEWEST = 10  # clean-looking samples by which a class has a usual misfit of its own
SECOND, BOTH = 0.25, 0.8  # least share of the second class, and of the two together, of a sample that fits two


def misfit(told: Testimony) -> Floats:
    """(n,) how badly each sample fits the classes; about 0 is usual."""
    voices = [-(voice * told.graphs).sum(axis=1).astype(np.float64) for voice in (told.logits, told.reach)]
    usual = sum(_against_class(raw, told) for raw in voices) / len(voices)
    return np.asarray(usual + UNSURE * (1 - told.confidence))


def held_share(share: float, noise_rate: float) -> float:
    """How many of all samples are held back for not fitting: `share`, or fewer where labels are not to be believed."""
    return float(share * np.interp(noise_rate, [SOME_WRONG, MANY_WRONG], [1.0, 0.0]))


def _against_class(raw: Floats, told: Testimony) -> Floats:
    clean = told.kept & (told.confidence > LOOKS_CLEAN)
    clean = clean if clean.sum() >= FEWEST else np.ones(len(raw), dtype=bool)
    out = _quartiles_above(raw, raw[clean])
    for code in range(told.n_classes):
        own = clean & (told.decided == code)
        if own.sum() >= FEWEST:
            members = told.decided == code
            out[members] = _quartiles_above(raw[members], raw[own])
    return out


def least_fitting(scores: Floats, fixed: NDArray[np.bool_], share: float) -> NDArray[np.bool_]:
    """The given share of the samples with the largest scores above 0; those that are fixed are never among them."""
    asked = np.where(fixed, -np.inf, scores)
    chosen = np.argsort(-asked, kind="stable")[: int(share * len(asked))]
    out = np.zeros(len(asked), dtype=bool)
    out[chosen[asked[chosen] > 0]] = True
    return out


def outliers(told: Testimony, scores: Floats, share: float) -> NDArray[np.bool_]:
    """Least fitting samples whose label would change, or that lie far outside what is usual."""
    changes = (told.given >= 0) & (told.given != told.decided)
    return np.asarray(least_fitting(scores, told.fixed, share) & (changes | (scores > FAR)))


def reason_codes(told: Testimony, foreign: NDArray[np.bool_]) -> NDArray[np.int8]:
    """(n,) positions in REASONS; `foreign` samples fit no class."""
    codes = np.where((told.given >= 0) & (told.given != told.decided), REASONS.index(ANOTHER), 0)
    codes[_between_two(told)] = REASONS.index(TWO)
    codes[told.fixed] = 0
    codes[foreign] = REASONS.index(NONE)
    return codes.astype(np.int8)


def hold(decision: Decision, probabilities: Tensor, given: Tensor, foreign: NDArray[np.bool_]) -> Decision:
    """The decision with the labels of foreign samples left as they were given, for review; filled ones stay filled."""
    held = torch.from_numpy(foreign).to(given.device) & (given >= 0)
    changed = held & (decision.labels != given)
    own = probabilities.gather(1, given.clamp(min=0).unsqueeze(1)).squeeze(1)
    return replace(
        decision,
        labels=torch.where(changed, given, decision.labels),
        confidence=torch.where(changed, own, decision.confidence),
        runner_up=torch.where(changed, decision.labels, decision.runner_up),
        status=torch.where(held, REVIEW, decision.status),
    )


def _between_two(told: Testimony) -> NDArray[np.bool_]:
    """Graphs and net together divide a sample between two classes, of which the given label, if any, is one."""
    together = np.sqrt(np.maximum(told.graphs * told.net(), TINY))
    together /= together.sum(axis=1, keepdims=True)
    two = np.argpartition(-together, min(1, told.n_classes - 1), axis=1)[:, :2]
    shares = np.take_along_axis(together, two, axis=1)
    named = (two == told.given[:, None]).any(axis=1) | (told.given < 0)
    return np.asarray((shares.min(axis=1) >= SECOND) & (shares.sum(axis=1) >= BOTH) & named)


def _quartiles_above(values: Floats, usual: Floats) -> Floats:
    median, upper = np.quantile(usual, [0.5, 0.75])
    return np.asarray((values - median) / max(upper - median, 1e-6))
