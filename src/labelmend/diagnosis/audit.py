"""A small audit on the way: errors planted before the run, watched, and taken out again at the end.

The run sees a share of wrong labels more than there are. Its last step is done twice: with the planted labels, to see
what became of them, and with the given ones, for the result: members, weights, T and noise rate from the given labels
alone. So no planted label is in the result. What nets and graphs learned was learned beside the planted errors: labels
may differ a little from those of a plain run.

What the planted errors show about all labels, with r the estimated share of wrong ones and D the share of changed ones
among labels that were not planted:

    found F, mended A, missed M     of the planted errors; F + M = 1
    neighbours wrong  e             1 - (share of labels that neighbours agree with) / (1 - r): they agree where both
                                    are right. Planted errors have only neighbours that are right
    good labels broken              (D - r F) / (1 - r): changes that no error explains
    labels that are wrong now       r M + D - r A (1 - e): errors missed, and changes that mended none

The last line by the confidence of the labels is the reliability curve; the temperature is the one at which the mean
confidence is the share of labels that are right. It is fitted on ENOUGH planted errors or not at all.

Knows a problem and what was decided; does not know the rounds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from labelmend.decision.deciding import Decided
from labelmend.diagnosis.planting import looks_clean, neighbour_counts, plant_like_suspects, plantable, too_few_clean
from labelmend.diagnosis.reliability import (
    BINS,
    Audit,
    Bin,
    Interval,
    bin_of,
    calibration_error,
    temper,
    temperature_for,
    wilson,
)
from labelmend.ensemble.graphs import normalize_rows
from labelmend.ensemble.state import Problem
from labelmend.errors import ConfigError
from labelmend.samples import VectorSamples

ENOUGH = 100  # planted errors from which a temperature is fitted: the share mended is then known to about 0.1
LOOKED_AT = 4000  # samples whose neighbours are counted, or five times the errors wanted


@dataclass(frozen=True)
class Plan:
    """A problem with errors planted in it."""

    problem: Problem  # to be solved
    original: Problem  # as it was
    rows: Tensor  # where errors are
    share: float
    agreement: float  # share of labels that their neighbours agree with, before anything was planted


def plan_audit(problem: Problem, share: float, seed: int) -> Plan:
    """Plant errors like those the neighbours object to; `seed` decides where."""
    samples = problem.samples
    if problem.opinions is not None:
        raise ConfigError("audit needs one label per sample of nobody in particular. Got annotators; leave one out.")
    if not isinstance(samples, VectorSamples):
        raise ConfigError("audit needs feature vectors or embedded pictures. Got pictures to train on; use mode embed.")
    rng = np.random.default_rng([seed, 2])
    labels, trusted = problem.given_labels.cpu().numpy(), problem.trusted.cpu().numpy()
    labelled = np.flatnonzero(labels >= 0)
    wanted = max(1, round(share * len(labelled)))
    rows = np.sort(rng.permutation(labelled)[: max(LOOKED_AT, 5 * wanted)])
    places = torch.from_numpy(rows).to(samples.device)
    counted = neighbour_counts(normalize_rows(samples.rows), problem.given_labels, places, problem.n_classes)
    counts = counted.cpu().numpy()
    may_change = plantable(labels, trusted, np.ones(len(labels), dtype=bool), problem.n_classes)
    planted = plant_like_suspects(labels, may_change, rows, counts, wanted, rng)
    if len(planted.rows) == 0:
        raise too_few_clean(int(may_change[rows].sum()), len(rows))
    agreement = float(looks_clean(labels[rows], counts)[may_change[rows]].mean())
    given, places = (torch.from_numpy(a).to(samples.device) for a in (planted.labels, planted.rows))
    return Plan(replace(problem, given_labels=given), problem, places, share, agreement)


def noise_in_question(noise_rate: float, problem: Problem) -> float:
    """The noise rate among labels that are not trusted; these have none."""
    labelled = problem.given_labels >= 0
    return noise_rate * int(labelled.sum()) / max(int((labelled & ~problem.trusted).sum()), 1)


def finish_audit(plan: Plan, with_errors: Decided, without: Decided) -> tuple[Decided, Audit]:
    """What was decided `without` the planted errors, calibrated; and what the planted errors showed."""
    given, trusted = plan.original.given_labels, plan.original.trusted
    facts = _Facts.of(plan, with_errors, without)
    temperature = None
    if len(plan.rows) >= ENOUGH:
        in_question = (given >= 0) & ~trusted
        temperature = temperature_for(without.probabilities[in_question], without.labels[in_question], facts.right)
    before, after = facts.curve(1.0), facts.curve(temperature or 1.0)
    audit = Audit(
        share=plan.share,
        planted=len(plan.rows),
        found=facts.found,
        mended=wilson(int(facts.mended.sum()), len(plan.rows)),
        broken=facts.broken,
        right=facts.right,
        temperature=temperature,
        calibration_error_before=calibration_error(before),
        calibration_error=calibration_error(after),
        curve=after,
    )
    if temperature is None:
        return without, audit
    tempered = temper(without.probabilities, temperature)
    return replace(without, probabilities=torch.where(trusted.unsqueeze(1), without.probabilities, tempered)), audit


@dataclass(frozen=True)
class _Facts:
    """What the run made of the planted errors, and of the rest: labels neither planted, trusted nor missing."""

    planted: Tensor  # probabilities of the planted samples, with the errors in place
    missed: Tensor  # which of them kept the error
    mended: Tensor  # which got their label back
    rest: Tensor  # probabilities of the rest
    changed: Tensor  # which of them got another label
    noise_rate: float  # without the planted ones
    reached: float  # 1 - e: for how many errors of the data a mended one stands

    @classmethod
    def of(cls, plan: Plan, with_errors: Decided, without: Decided) -> _Facts:
        given, errors = plan.original.given_labels, plan.problem.given_labels
        rest = (given >= 0) & ~plan.original.trusted & (given == errors)
        labels, noise_rate = with_errors.labels[plan.rows], noise_in_question(without.noise_rate, plan.original)
        return cls(
            planted=with_errors.probabilities[plan.rows],
            missed=labels == errors[plan.rows],
            mended=labels == given[plan.rows],
            rest=without.probabilities[rest],
            changed=without.labels[rest] != given[rest],
            noise_rate=noise_rate,
            reached=min(1.0, plan.agreement / max(1 - noise_rate, 0.01)),
        )

    @property
    def found(self) -> Interval:
        return wilson(int((~self.missed).sum()), len(self.missed))

    @property
    def broken(self) -> Interval:
        changed, noise = _mean(self.changed), min(self.noise_rate, 0.99)
        ends = (self.found.value, self.found.high, self.found.low)  # the more are found, the more changes they explain
        value, low, high = (max(0.0, (changed - noise * end) / (1 - noise)) for end in ends)
        return Interval(value, low, high, len(self.rest))

    @property
    def right(self) -> float:
        return 1 - self._wrong(torch.ones_like(self.missed), torch.ones_like(self.changed))

    def curve(self, temperature: float) -> tuple[Bin, ...]:
        """Reliability of the labels at a temperature."""
        planted, rest = (temper(part, temperature).amax(dim=1) for part in (self.planted, self.rest))
        bins = []
        for number in range(BINS):
            inside = bin_of(rest) == number
            if bool(inside.any()):
                share, wrong = _mean(inside), self._wrong(bin_of(planted) == number, inside)
                bins.append(Bin(share, _mean(rest[inside]), 1 - min(wrong / share, 1.0)))
        return tuple(bins)

    def _wrong(self, of_planted: Tensor, of_rest: Tensor) -> float:
        """Wrong labels among some of the samples, as a share of all."""
        missed, mended = _mean(self.missed & of_planted), self.reached * _mean(self.mended & of_planted)
        changed = _mean(self.changed & of_rest)
        return min(1.0, self.noise_rate * missed + max(0.0, changed - self.noise_rate * mended))


def _mean(values: Tensor) -> float:
    return float(values.double().mean()) if len(values) else 0.0
