"""One run: the rounds, the decision, what it means; from a `Task` to a `Solution`."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace

from labelmend.config import CALIBRATED_REVIEW_BELOW, Settings
from labelmend.decision.deciding import Decided, decider
from labelmend.decision.ensemble_evidence import posterior_labels
from labelmend.decision.limits import final_decision, without_changes
from labelmend.decision.posterior import Decision
from labelmend.diagnosis.audit import finish_audit, noise_in_question, plan_audit
from labelmend.diagnosis.conclude import Conclusions, conclude
from labelmend.diagnosis.projection import SampleMap, draw_map
from labelmend.diagnosis.reliability import Audit
from labelmend.ensemble.records import TimeLimit
from labelmend.ensemble.run import Callback, Progress, run
from labelmend.ensemble.state import Problem, RoundState
from labelmend.ensemble.torch_state import fast_arithmetic, few_threads, refuse_diverged, seeded
from labelmend.ensemble.train import fine_tune
from labelmend.errors import LabelmendWarning
from labelmend.runs.task import Task
from labelmend.storage.checkpoint import NoCheckpoints


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
    wrong = noise_in_question(decided.noise_rate, problem)
    if audit is None or audit.right > 1 - wrong or changes == 0 or settings.decide == "votes":
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
