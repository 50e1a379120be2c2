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
from labelmend.diagnosis.reliability import Interval
from labelmend.diagnosis.run_outputs import RunOutputs
from labelmend.ensemble.state import Problem, RoundState


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
