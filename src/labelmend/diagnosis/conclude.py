"""The last step of a run: who fits no class, why samples are in doubt, and what the noise looks like.

A sample in doubt fits another class, two classes, or none: `result.reason`, reasons.csv.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from labelmend.decision.deciding import Decided
from labelmend.decision.posterior import REVIEW, Decision
from labelmend.diagnosis.profile import NoiseProfile, noise_profile
from labelmend.diagnosis.reliability import Interval
from labelmend.diagnosis.run_outputs import Floats, RunOutputs
from labelmend.ensemble.state import Problem, RoundState

ANOTHER, TWO, NONE = "fits another class", "fits two classes", "fits no class"
REASONS = ("", ANOTHER, TWO, NONE)  # a code is a position here
REASON_TYPE = np.dtype("<U18")
TINY = 1e-12  # nothing is impossible
SHORT, SCATTERED, UNSURE = 1.0, 1.5, 1.5  # weights of the three signs; the measurements are in docs/experiments.md
SOME_WRONG, MANY_WRONG = 0.25, 0.35  # noise rates
FAR = 12.0  # of clean digits 0.3 % lie beyond
LOOKS_CLEAN = 0.9  # confidence of a kept label
FEWEST = 10  # clean-looking samples by which a class has a usual length of its own
SECOND, BOTH = 0.25, 0.8  # least share of the second class, and of the two together, of a sample that fits two


def misfit(outputs: RunOutputs) -> Floats:
    """(n,) how badly each sample fits the classes; 0 is the mean."""
    largest = np.partition(outputs.graphs, -min(2, outputs.n_classes), axis=1)[:, -2:]
    two = largest.sum(axis=1).round(5)  # what differs less differs by rounding
    signs = (SHORT, _against_class(-outputs.length, outputs)), (SCATTERED, 1 - two), (UNSURE, 1 - outputs.confidence)
    return np.asarray(sum(weight * (_rarity(sign) - 1) for weight, sign in signs))


def _rarity(sign: Floats) -> Floats:
    """-log of the share of samples whose sign is larger, of equal ones half; 1 on average where all differ."""
    _, place, counts = np.unique(sign, return_inverse=True, return_counts=True)
    up_to = np.cumsum(counts) - counts / 2
    return np.asarray(-np.log(1 - up_to[place] / len(sign)))


def held_share(share: float, noise_rate: float) -> float:
    """How many of all samples are held back for not fitting: `share`, or fewer where labels are not to be believed."""
    return float(share * np.interp(noise_rate, [SOME_WRONG, MANY_WRONG], [1.0, 0.0]))


def _against_class(raw: Floats, outputs: RunOutputs) -> Floats:
    """How far above the clean-looking samples of its decided class each one is, in quartiles; or above all of them."""
    clean = outputs.kept & (outputs.confidence > LOOKS_CLEAN)
    clean = clean if clean.sum() >= FEWEST else np.ones(len(raw), dtype=bool)
    out = _quartiles_above(raw, raw[clean])
    for code in range(outputs.n_classes):
        own = clean & (outputs.decided == code)
        if own.sum() >= FEWEST:
            members = outputs.decided == code
            out[members] = _quartiles_above(raw[members], raw[own])
    return out


def least_fitting(scores: Floats, fixed: NDArray[np.bool_], share: float) -> NDArray[np.bool_]:
    """The given share of the samples with the largest scores above 0; those that are fixed are never among them."""
    scores = np.where(fixed, -np.inf, scores)
    chosen = np.argsort(-scores, kind="stable")[: int(share * len(scores))]
    out = np.zeros(len(scores), dtype=bool)
    out[chosen[scores[chosen] > 0]] = True
    return out


def outliers(outputs: RunOutputs, scores: Floats, share: float) -> NDArray[np.bool_]:
    """Least fitting samples, as far as they lie outside what is usual: some always fit least."""
    return np.asarray(least_fitting(scores, outputs.fixed, share) & (scores > FAR))


def reason_codes(outputs: RunOutputs, foreign: NDArray[np.bool_]) -> NDArray[np.int8]:
    """(n,) positions in REASONS; `foreign` samples fit no class."""
    codes = np.where((outputs.given >= 0) & (outputs.given != outputs.decided), REASONS.index(ANOTHER), 0)
    codes[_between_two(outputs)] = REASONS.index(TWO)
    codes[outputs.fixed] = 0
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


def _between_two(outputs: RunOutputs) -> NDArray[np.bool_]:
    """Graphs and net together divide a sample between two classes, of which the given label, if any, is one."""
    together = np.sqrt(np.maximum(outputs.graphs * outputs.net, TINY))
    together /= together.sum(axis=1, keepdims=True)
    two = np.argpartition(-together, min(1, outputs.n_classes - 1), axis=1)[:, :2]
    shares = np.take_along_axis(together, two, axis=1)
    named = (two == outputs.given[:, None]).any(axis=1) | (outputs.given < 0)
    return np.asarray((shares.min(axis=1) >= SECOND) & (shares.sum(axis=1) >= BOTH) & named)


def _quartiles_above(values: Floats, usual: Floats) -> Floats:
    median, upper = np.quantile(usual, [0.5, 0.75])
    return np.asarray((values - median) / max(upper - median, 1e-6))


@dataclass(frozen=True)
class Conclusions:
    decision: Decision  # with outliers left as they were
    reasons: NDArray[np.int8]  # positions in reasons.REASONS
    misfit: NDArray[np.float32]
    profile: NoiseProfile  # classes by their codes


def conclude(
    state: RoundState, problem: Problem, decided: Decided, decision: Decision, outlier_share: float, seed: int
) -> Conclusions:
    """The profile is that of the labels before outliers were held back: where they go astray is not known."""
    problem = replace(problem, given_labels=problem.labels_in_use)
    outputs = RunOutputs.of(state, problem, decided, decision)
    scores = misfit(outputs)
    foreign = outliers(outputs, scores, held_share(outlier_share, decided.noise_rate))
    return Conclusions(
        hold(decision, decided.probabilities, problem.given_labels, foreign),
        reason_codes(outputs, foreign),
        scores.astype(np.float32),
        noise_profile(outputs, np.random.default_rng(seed), _rate_in_question(decided, problem)),
    )


def _rate_in_question(decided: Decided, problem: Problem) -> Interval | None:
    """The noise rate of the labels that are not certain, as the profile counts these alone; None: no interval."""
    if decided.interval is None:
        return None
    labelled = problem.given_labels >= 0
    per_label = int(labelled.sum()) / max(int((labelled & ~problem.trusted).sum()), 1)
    rate, low, high = (value * per_label for value in (decided.noise_rate, *decided.interval))
    return Interval.around(min(rate, 1.0), low, min(high, 1.0))
