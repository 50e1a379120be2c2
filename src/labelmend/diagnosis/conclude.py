"""The last step of a run: who fits no class, why samples are in doubt, and what the noise looks like.

Knows the state of a run after its decision; the parts are `reasons.py` and `profile.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from labelmend.decision.deciding import Decided
from labelmend.decision.posterior import Decision
from labelmend.diagnosis.profile import NoiseProfile, noise_profile
from labelmend.diagnosis.reasons import held_share, hold, misfit, outliers, reason_codes
from labelmend.diagnosis.run_outputs import gather
from labelmend.ensemble.state import Problem, RoundState


@dataclass(frozen=True)
class Conclusions:
    decision: Decision  # with outliers left as they were
    reasons: NDArray[np.int8]  # positions in reasons.REASONS
    misfit: NDArray[np.float32]
    profile: NoiseProfile  # classes by their codes


def conclude(
    state: RoundState,
    problem: Problem,
    found: Decided,
    decision: Decision,
    outlier_share: float,
    seed: int,
) -> Conclusions:
    """The profile is that of the labels before outliers were held back: where they go astray is not known."""
    problem = replace(problem, given_labels=problem.labels_in_use)
    outputs = gather(state, problem, found, decision)
    names = list(range(outputs.n_classes))
    scores = misfit(outputs)
    foreign = outliers(outputs, scores, held_share(outlier_share, found.noise_rate))
    in_question = _per_label_in_question(problem)
    rate, interval = found.noise_rate * in_question, found.interval
    if interval is not None:
        interval = interval[0] * in_question, min(interval[1] * in_question, 1.0)
    return Conclusions(
        hold(decision, found.probabilities, problem.given_labels, foreign),
        reason_codes(outputs, foreign),
        scores.astype(np.float32),
        noise_profile(outputs, names, np.random.default_rng(seed), min(rate, 1.0), interval),
    )


def _per_label_in_question(problem: Problem) -> float:
    """Labels for each one that is not certain: the profile is of those, the noise rate of all."""
    labelled = problem.given_labels >= 0
    return int(labelled.sum()) / max(int((labelled & ~problem.trusted).sum()), 1)
