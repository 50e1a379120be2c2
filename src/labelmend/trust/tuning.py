"""Self-tuning: which setting mends errors best on these very data, by small trials before the run.

Some samples are drawn, errors like those their neighbours object to are planted in them (`audit.plan_audit`), and every
candidate plays two rounds on the same errors. A candidate differs from the rules of `config.follow` in one thing, which
the user has not set. What counts is of how many planted errors its graphs name the label that was there. The decision
is not asked, since it keeps or changes labels by the hundred; nor are labels that look clean: where errors sit together
they look clean too, and a setting that believes them would win. The best is taken if it beats the rules by more than
chance, DECISIVE standard errors of the difference, error by error; else the rules stay.

The time budget is stated in work, so that the same seed gives the same result on any machine: all trials together take
no more than SHARE_OF_RUN of the run's rounds times rows, and at most MOST_SAMPLES samples each.

Knows a problem and its configuration; runs the method, and looks only at labels it planted itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import Tensor, nn

from labelmend.config import FINE_PACKAGES, PACKAGES, RunConfig, follow
from labelmend.data.samples import VectorSamples
from labelmend.engines.local import LocalEngine
from labelmend.errors import DataError
from labelmend.loop import Progress, play_round
from labelmend.state import Problem, start
from labelmend.steps import warm_up
from labelmend.trust.audit import Plan, plan_audit
from labelmend.trust.tuning_record import RULES, Trial, Tuning
from labelmend.witnesses import witnesses

MOST_SAMPLES, FEWEST_SAMPLES = 2_000, 200
SHARE_OF_RUN = 1.0
ROUNDS = 2  # of a trial: packages of both sizes
PLANTED = 0.1  # share of the labels
FEWEST_PLANTED = 20
DECISIVE = 4.0  # at 3, of 16 runs on digits one took a worse setting, one another that was no better
GRAPHS, REACH, PACKAGES_BY_TURNS = (
    ("graph_k", "fine_graph_k"),
    ("alpha", "fine_alpha"),
    ("packages_per_branch", "fine_packages"),
)
BY_SIZE = (*GRAPHS, *REACH, "batch_size", "branch_batch_size")  # rules that few samples change


@dataclass(frozen=True)
class Candidate:
    name: str
    fields: tuple[str, ...]  # that must be left open by the user
    changes: Callable[[RunConfig], dict[str, Any]]  # of a configuration that follows the rules
    relative: bool = False  # to what the rules are for as few samples as a trial has


def _times(factor: float) -> Callable[[RunConfig], dict[str, Any]]:
    return lambda config: {name: max(3, int(factor * (getattr(config, name) or 1))) for name in GRAPHS}


def _other_reach(config: RunConfig) -> dict[str, Any]:
    return dict.fromkeys(REACH, 0.5 if (config.alpha or 0.5) >= 0.7 else 0.9)


CANDIDATES = (
    Candidate("wider graphs", GRAPHS, _times(2), relative=True),
    Candidate("narrower graphs", GRAPHS, _times(0.5), relative=True),
    Candidate("another reach", REACH, _other_reach),
    Candidate("a noisy branch", ("noisy_branch",), lambda config: {"noisy_branch": not config.noisy_branch}),
    Candidate("large packages only", PACKAGES_BY_TURNS, lambda _: {"fine_packages": PACKAGES}),
    Candidate("small packages only", PACKAGES_BY_TURNS, lambda _: dict.fromkeys(PACKAGES_BY_TURNS, FINE_PACKAGES)),
)


def open_fields(config: RunConfig) -> frozenset[str]:
    """What user and preset left to follow the data."""
    return frozenset(entry.name for entry in fields(config) if getattr(config, entry.name) is None)


def tune(
    problem: Problem, make_net: Callable[[], nn.Module], config: RunConfig, open_: Collection[str], tell: Progress
) -> tuple[RunConfig, Tuning]:
    """The configuration to run with, and how it was found. `config` has every None filled in."""
    candidates = [candidate for candidate in CANDIDATES if set(candidate.fields) <= set(open_)]
    samples = problem.samples
    if not candidates:
        return config, _by_rule("everything that could be tuned is set")
    if problem.opinions is not None:
        return config, _by_rule("with several annotators no errors are planted")
    if not isinstance(samples, VectorSamples):
        return config, _by_rule("trials are made with feature vectors only")
    n = _n_samples(problem, config, len(candidates) + 1)
    if n < FEWEST_SAMPLES:
        return config, _by_rule(f"trials need {FEWEST_SAMPLES} labelled samples each, and there is time for {n}")
    tell("tune")
    try:
        plan = plan_audit(_some(problem, samples, n, config.seed), PLANTED, config.seed)
    except DataError as error:
        return config, _by_rule(str(error))
    if len(plan.rows) < FEWEST_PLANTED:
        return config, _by_rule(f"only {len(plan.rows)} errors could be planted, {FEWEST_PLANTED} are needed")
    usual = _trial_config(config, open_, n, problem.n_classes)
    return _choose(plan, make_net, config, usual, candidates)


def _choose(
    plan: Plan, make_net: Callable[[], nn.Module], config: RunConfig, usual: RunConfig, candidates: list[Candidate]
) -> tuple[RunConfig, Tuning]:
    """`usual` is what `config` is for as few samples as a trial has."""
    rules = _right(plan, make_net, usual)
    trials = [_trial(RULES, {}, rules, rules, plan)]
    changes = {}
    for candidate in candidates:
        tried = candidate.changes(usual if candidate.relative else config)
        found = _right(plan, make_net, replace(usual, **tried))
        changes[candidate.name] = candidate.changes(config)
        trials.append(_trial(candidate.name, changes[candidate.name], found, rules, plan))
    best = max(trials, key=lambda trial: trial.gain)
    better = best.gain > DECISIVE * best.error and best.name != RULES
    why = (
        f"its graphs found {best.gain:.1%} more of the planted errors than by the rules, "
        f"standard error {best.error:.1%}"
        if better
        else f"none of {len(candidates)} other settings was better by more than {DECISIVE:g} standard errors"
    )
    taken = changes[best.name] if better else {}
    tuning = Tuning(
        best.name if better else RULES, taken, why, tuple(trials), len(plan.problem.given_labels), len(plan.rows)
    )
    return replace(config, **taken), tuning


def _by_rule(why: str) -> Tuning:
    return Tuning(RULES, {}, why, ())


def _n_samples(problem: Problem, config: RunConfig, n_trials: int) -> int:
    labelled = int((problem.given_labels >= 0).sum())
    work = SHARE_OF_RUN * labelled * (config.n_rounds or 1)
    return min(MOST_SAMPLES, labelled, int(work / (n_trials * ROUNDS)))


def _some(problem: Problem, samples: VectorSamples, n: int, seed: int) -> Problem:
    """`n` of the labelled samples."""
    labelled = torch.nonzero(problem.given_labels >= 0).squeeze(1)
    order = torch.randperm(len(labelled), generator=torch.Generator().manual_seed(seed)).to(labelled.device)
    rows = labelled[order[:n]].sort().values
    return Problem(
        VectorSamples(samples.rows[rows]), problem.given_labels[rows], problem.trusted[rows], problem.n_classes
    )


def _trial_config(config: RunConfig, open_: Collection[str], n: int, n_classes: int) -> RunConfig:
    """The rules for so few samples; what the user has set stays."""
    again: dict[str, Any] = {name: None for name in BY_SIZE if name in open_}
    return replace(follow(replace(config, **again), n, n_classes), n_rounds=ROUNDS)


def _right(plan: Plan, make_net: Callable[[], nn.Module], config: RunConfig) -> Tensor:
    """1 where the graphs name the label that was there, else 0: of the planted errors first, then of good labels."""
    problem = plan.problem
    state = start(problem, make_net, config)
    warm_up(state, problem, config)
    for _ in range(ROUNDS):
        play_round(state, problem, config, LocalEngine(), lambda _: None)
    says, watched = witnesses(state, problem)[0].argmax(dim=1), torch.cat([plan.rows, plan.good])
    return (says[watched] == plan.original.given_labels[watched]).double().cpu()


def _trial(name: str, changes: dict[str, Any], found: Tensor, rules: Tensor, plan: Plan) -> Trial:
    n_planted = len(plan.rows)
    difference = (found - rules)[:n_planted]
    error = float(difference.std()) / math.sqrt(len(difference)) if len(difference) > 1 else 0.0
    contradicted = 1 - float(found[n_planted:].mean()) if len(plan.good) else 0.0
    return Trial(name, changes, float(found[:n_planted].mean()), contradicted, float(difference.mean()), error)
