"""One run: the rounds, the decision, what it means; from a `Task` to a `Solution`, and from that to the result."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from torch import Tensor

from labelmend.config import CALIBRATED_REVIEW_BELOW, Settings
from labelmend.decision.annotators import QUALITY_PRIOR
from labelmend.decision.deciding import Decided, decider
from labelmend.decision.ensemble_evidence import posterior_labels
from labelmend.decision.limits import final_decision, without_changes
from labelmend.decision.posterior import STATUS_NAMES, Decision
from labelmend.diagnosis.annotators import Annotators, describe
from labelmend.diagnosis.audit import finish_audit, noise_in_question, plan_audit
from labelmend.diagnosis.conclude import REASON_TYPE, REASONS, Conclusions, conclude
from labelmend.diagnosis.projection import SampleMap, draw_map
from labelmend.diagnosis.reliability import Audit
from labelmend.ensemble.records import TimeLimit
from labelmend.ensemble.run import Callback, NoCheckpoints, Progress, run
from labelmend.ensemble.state import Problem, RoundState
from labelmend.ensemble.torch_state import fast_arithmetic, few_threads, refuse_diverged, seeded
from labelmend.ensemble.train import fine_tune
from labelmend.errors import LabelmendWarning
from labelmend.labels import Labels
from labelmend.result import STATUS_TYPE, UNREADABLE, Correction, plain_value
from labelmend.runs.task import Task
from labelmend.storage.source import versions


@dataclass(frozen=True)
class Solution:
    state: RoundState
    decided: Decided
    conclusions: Conclusions
    settings: Settings  # of the task, and below which posterior samples are for review
    seconds_before: float = 0.0  # that the run took before it was interrupted
    notes: list[str] = field(default_factory=list)  # what happened on the way
    map: SampleMap | None = None
    audit: Audit | None = None
    temperature: float | None = None  # by which confidence was calibrated; None: it was not


def solve(
    task: Task,
    callback: Callback | None = None,
    progress: Progress | None = None,
    checkpoints: NoCheckpoints | None = None,
    limit: TimeLimit | None = None,
) -> Solution:
    """Run the method."""
    problem, inputs, make_net, settings = task.problem, task.inputs, task.make_net, task.settings
    checkpoints = checkpoints or NoCheckpoints()
    announce, listen = progress or (lambda _: None), callback or (lambda _record, _state: None)
    device = problem.samples.device
    plan = plan_audit(problem, settings.audit, settings.seed) if settings.audit else None
    learned = problem if plan is None else plan.problem
    audit: Audit | None = None
    size = len(problem.samples) * problem.samples.n_values
    with seeded(settings.seed, device), fast_arithmetic(device), few_threads(size):
        relabel = posterior_labels(settings.net_power) if settings.round_labels == "posterior" else None
        state = run(learned, make_net, settings, listen, announce, checkpoints, limit, relabel)
        announce("decide")
        decide_for = decider(state, learned, inputs, make_net, settings)
        decided = decide_for(problem)
        if plan is not None:
            decided, audit = finish_audit(plan, decide_for(plan.problem), decided)
        temperature = None if audit is None else audit.temperature
        if settings.fine_tune_passes:
            announce("fine-tune")
            fine_tune(state, problem, settings)
            refuse_diverged("fine-tuning", settings.lr, [state.deployed_net])
        if task.config.review_below is None and temperature is not None:
            settings = replace(settings, review_below=CALIBRATED_REVIEW_BELOW)
        decision, harm = _do_no_harm(final_decision(decided, problem, settings), decided, problem, audit, settings)
        announce("profile")
        # Probabilities that sum to one cannot say that a sample fits no class.
        nowhere = settings.budget or (inputs is not None and inputs.alone)
        share = 0.0 if nowhere else settings.outlier_share
        concluded = conclude(state, problem, decided, decision, share, settings.seed)
    notes = [*checkpoints.notes, *harm, *decided.notes]
    announce("map")
    drawn = _draw(state, problem, concluded.decision, settings.seed, notes)
    if state.round_index < settings.n_rounds:
        notes.append(f"stopped by the time limit after {state.round_index} of {settings.n_rounds} rounds")
    for note in notes:
        warnings.warn(note, LabelmendWarning, stacklevel=4)
    return Solution(state, decided, concluded, settings, checkpoints.seconds, notes, drawn, audit, temperature)


def _do_no_harm(
    decision: Decision, decided: Decided, problem: Problem, audit: Audit | None, settings: Settings
) -> tuple[Decision, list[str]]:
    """The decision, unless nothing is to be gained by it; and what the user should know about that."""
    given = problem.labels_in_use
    changes = int(((decision.labels != given) & (given >= 0)).sum())
    if audit is None or changes == 0 or settings.decide == "votes":
        return decision, []
    if audit.right > 1 - noise_in_question(decided.noise_rate, problem):
        return decision, []
    kept = without_changes(decision, decided.probabilities, given, settings.review_below)
    return kept, [
        f"labels stay as they were given: by the planted errors {changes:,} changes would break more good labels than "
        "they mend; they are for review."
    ]


def _draw(state: RoundState, problem: Problem, decision: Decision, seed: int, notes: list[str]) -> SampleMap | None:
    """The map of the report. It is never worth a run: where it cannot be drawn, a note says why."""
    try:
        return draw_map(state, problem, decision.labels.cpu().numpy(), decision.status.cpu().numpy(), seed)
    except Exception as error:
        notes.append(f"no map was drawn ({type(error).__name__}: {error})")
        return None


def assemble(
    solution: Solution,
    task: Task,
    labels: Labels,
    ids: NDArray[Any],
    notes: list[str],
    seconds: float,
    rows: NDArray[np.int64] | None = None,
    unreadable: dict[str, str] | None = None,
) -> Correction:
    """The result for all samples of `labels`; `rows` are those the problem held, if it did not hold all."""
    state, decision = solution.state, solution.conclusions.decision
    assert state.vote is not None
    assert state.neighbors is not None
    n = len(labels.codes)
    rows = np.arange(n) if rows is None else rows
    codes = _spread(_numpy(decision.labels), rows, labels.codes)
    runner_up = _spread(_numpy(decision.runner_up), rows, np.full(n, -1))
    neighbors = _numpy(state.neighbors)
    concluded = solution.conclusions
    return Correction(
        labels=labels.decode(codes),
        status=_spread(np.array(STATUS_NAMES)[_numpy(decision.status)], rows, np.full(n, UNREADABLE, STATUS_TYPE)),
        confidence=_spread(_numpy(decision.confidence), rows, np.zeros(n, np.float32)),
        certainty=_spread(_numpy(state.omega), rows, np.zeros(n, np.float32)),
        runner_up=labels.values(runner_up),
        noise_rate=solution.decided.noise_rate,
        transition=_numpy(solution.decided.transition),
        votes=_csr(state.vote.share, rows, n),
        classes=labels.classes,
        model=task.make_model(_numpy(decision.labels), state.deployed_net.eval()),
        history=state.history,
        config=solution.settings,
        given=labels,
        corrected_codes=codes,
        ids=ids,
        neighbors=_spread(rows[neighbors], rows, np.full((n, neighbors.shape[1]), -1, np.int32)),
        fingerprint=task.fingerprint,
        seconds=seconds + solution.seconds_before,
        duplicates=[rows[group].tolist() for group in task.duplicates],
        warnings=[*notes, *solution.notes],
        unreadable=unreadable or {},
        map=None if solution.map is None else SampleMap(rows[solution.map.indices], solution.map.positions),
        versions=versions(),
        annotators=_annotators(solution.decided, labels, rows),
        label_score=_spread(_numpy(solution.decided.score), rows, np.zeros(n, np.float32)),
        left_alone=_spread(_numpy(solution.decided.left_alone), rows, np.zeros(n, bool)),
        verdict=solution.decided.verdict,
        evidence=solution.decided.parts,
        given_confidence=_spread(_numpy(decision.given_confidence), rows, np.zeros(n, np.float32)),
        audit=solution.audit,
        temperature=solution.temperature,
        profile=concluded.profile.named([plain_value(name) for name in labels.classes]),
        reason=_spread(np.array(REASONS, REASON_TYPE)[concluded.reasons], rows, np.full(n, "", REASON_TYPE)),
        misfit=_spread(concluded.misfit, rows, np.zeros(n, np.float32)),
    )


def _annotators(found: Decided, labels: Labels, rows: NDArray[np.int64]) -> Annotators | None:
    if labels.annotations is None:
        return None
    assert found.confusion is not None
    return describe(labels.annotations, rows, _numpy(found.probabilities), _numpy(found.confusion), QUALITY_PRIOR)


def _spread(values: NDArray[Any], rows: NDArray[np.int64], everywhere: NDArray[Any]) -> NDArray[Any]:
    """A copy of `everywhere` with `values` at `rows`."""
    out = everywhere.copy()
    out[rows] = values
    return out


def _csr(share: Tensor, rows: NDArray[np.int64], n: int) -> scipy.sparse.csr_matrix:
    starts = _numpy(share.crow_indices())
    lengths = _spread(np.diff(starts), rows, np.zeros(n, dtype=starts.dtype))
    parts = _numpy(share.values()), _numpy(share.col_indices()).astype(np.int32), np.append(0, lengths.cumsum())
    return scipy.sparse.csr_matrix(parts, shape=(n, share.shape[1]))


def _numpy(tensor: Tensor) -> NDArray[Any]:
    array: NDArray[Any] = tensor.detach().cpu().numpy()
    return array
