"""`correct`: the one call. Reads what the user has, runs the method, hands back a `Correction`."""

from __future__ import annotations

import hashlib
import time
import warnings
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from labelmend.config import CALIBRATED_REVIEW_BELOW, REVIEW_BELOW, RunConfig, follow, make_config
from labelmend.decision.annotators import QUALITY_PRIOR
from labelmend.decision.deciding import Decided, decider
from labelmend.decision.limits import at_precision, within_budget, without_changes
from labelmend.decision.posterior import STATUS_NAMES, Decision, decide
from labelmend.decision.verdict import APART
from labelmend.diagnosis.annotators import Annotators, describe
from labelmend.diagnosis.audit import finish_audit, noise_in_question, plan_audit
from labelmend.diagnosis.conclude import Conclusions, conclude
from labelmend.diagnosis.projection import SampleMap, draw_map
from labelmend.diagnosis.reasons import REASON_TYPE, REASONS
from labelmend.diagnosis.reliability import Audit
from labelmend.engines.local import LocalEngine, fast_arithmetic
from labelmend.ensemble.nets.mlp import MLP
from labelmend.ensemble.run import Callback, Progress, run
from labelmend.ensemble.state import Problem, RoundState
from labelmend.ensemble.steps import fine_tune
from labelmend.ensemble.threads import few_threads
from labelmend.ensemble.time_limit import TimeLimit, read_limit
from labelmend.ensemble.torch_state import own_torch, refuse_diverged
from labelmend.errors import ConfigError, DataError, LabelmendWarning
from labelmend.evidence.inputs import Inputs
from labelmend.evidence.pred_probs import PredProbs
from labelmend.inputs.annotators import opinions_of, read_annotated, settled, with_consensus
from labelmend.inputs.containers import values_of
from labelmend.inputs.features import check_features, conflicting_duplicates, fit_scaler, read_features
from labelmend.inputs.labels import check_classes, read_labels
from labelmend.inputs.pred_probs import read_pred_probs
from labelmend.labels import Labels
from labelmend.models.vectors import NetFactory, VectorModel, fit_vector_model, net_model
from labelmend.result import STATUS_TYPE, UNREADABLE, Correction, plain_value
from labelmend.samples import Samples, VectorSamples
from labelmend.storage.checkpoint import CHECKPOINT_SECONDS, NoCheckpoints, Subject, checkpoints_in
from labelmend.storage.run_folder import versions
from labelmend.storage.source import ARRAYS, call_text


@own_torch()
def correct(
    X: Any = None,
    y: Any = None,
    *,
    pred_probs: Any = None,
    annotators: Any = None,
    trusted: Any = None,
    ids: Any = None,
    missing: Any = None,
    preset: str = "plus",
    net: NetFactory | None = None,
    callback: Callback | None = None,
    progress: Progress | None = None,
    checkpoints: str | Path | None = None,
    checkpoint_every: float = CHECKPOINT_SECONDS,
    time_limit: Any = None,
    **parameters: Any,
) -> Correction:
    """Correct the labels `y` of the feature vectors `X`.

    X: rows by columns, dense (numpy, pandas, polars, torch, nested lists) or scipy sparse. May be left out where there
        are pred_probs; then assume="apart", unless said otherwise.
    y: one label per row, of any type; None, NaN and pandas.NA are missing labels, and so is the value `missing`.
    pred_probs: probabilities of your own model, out of sample: rows by classes, in the order of the sorted classes, or
        a DataFrame whose columns name them; a dict or list of several models'.
    annotators: who gave the labels. One name per row; or, where several people labelled a row, a table with a row for
        each row of X and a column for each annotator, missing where someone said nothing: a pandas or polars
        DataFrame, a dict {name: labels}, or a two-dimensional array. With a table, y may be left out: the given labels
        are then the consensus of the annotators, weighted by how good each of them is; with y they are y, and the table
        decides about them. `labels_by_annotator` makes the table from triples. See `annotators` in the result.
    trusted: marks rows whose label is certain; it is kept, and helps the others.
    ids: names of the rows for the run folder; their positions by default.
    net: builds another net than the default, from (number of inputs, number of classes).
    callback: called after each round with its record and the state; progress: with the name of each stage.
    checkpoints: folder in which the run is kept between rounds; the same call goes on from there, whatever ended it.
        checkpoint_every: seconds between two of them; 0: after every round.
    time_limit: seconds, or "10m": no round begins that would probably end later; the decision comes on top.
    parameters: any field of `RunConfig`, such as seed=1, n_rounds=10, review_below=0.8, audit=0.02 (`result.audit`).
    """
    began = time.perf_counter()
    limit = read_limit(time_limit)
    config = with_assumption(make_config(preset, **parameters), parameters, alone=X is None)
    matrix, labels, certain, probabilities = read_all(X, y, trusted, missing, annotators, pred_probs)
    names = read_ids(ids, len(labels.codes))
    task = vector_task(matrix, labels, certain, config, net, probabilities, alone=X is None)
    notes = notice(labels, task.duplicates, config)
    for note in notes:
        warnings.warn(note, LabelmendWarning, stacklevel=3)  # own_torch stands in between
    with task.checkpoints_in(checkpoints, checkpoint_every) as keeper:
        solution = solve(task, callback, progress, keeper, limit)
    result = assemble(solution, task, labels, names, notes, time.perf_counter() - began)
    named = {"pred_probs": pred_probs, "annotators": annotators, "trusted": trusted, "ids": ids, "missing": missing}
    named |= {"preset": preset, "net": net, **parameters}
    given, named = ({"X": X, "y": y}, named) if X is not None else ({}, {"y": y, **named})
    return replace(result, source=ARRAYS, repeat=call_text("correct", given, named))


def with_assumption(config: RunConfig, named: Collection[str], alone: bool) -> RunConfig:
    """Probabilities alone say nothing about whether classes are apart: that is assumed, unless the user said."""
    return replace(config, assume=APART) if alone and "assume" not in named else config


@dataclass(frozen=True)
class Task:
    """A problem ready to be solved, and what the result has to know besides."""

    problem: Problem
    make_net: Callable[[], nn.Module]
    config: RunConfig  # every None filled in, but for `review_below`
    make_model: Callable[[NDArray[np.int64], nn.Module], Any]  # from the decided labels and the net of the run
    duplicates: list[list[int]]
    fingerprint: str
    inputs: Inputs | None = None  # of the pool; None: nets are trained on pictures

    def checkpoints_in(self, folder: str | Path | None, every: float) -> AbstractContextManager[NoCheckpoints]:
        return checkpoints_in(folder, every, lambda: Subject.of(self.problem, self.config, self.fingerprint))


@dataclass(frozen=True)
class Solution:
    state: RoundState
    decided: Decided
    conclusions: Conclusions
    config: RunConfig  # of the task, and below which posterior samples are for review
    seconds_before: float = 0.0  # that the run took before it was interrupted
    notes: list[str] = field(default_factory=list)  # what happened on the way
    map: SampleMap | None = None
    audit: Audit | None = None
    temperature: float | None = None  # by which confidence was calibrated; None: it was not


def vector_task(
    matrix: Any,
    labels: Labels,
    trusted: NDArray[np.bool_],
    config: RunConfig,
    net: NetFactory | None,
    pred_probs: PredProbs | None = None,
    alone: bool = False,
) -> Task:
    """Feature vectors, scaled, on their device; `alone`: they are made of the probabilities."""
    config = follow(config, len(labels.codes), len(labels.classes))
    device = choose_device(config.device)
    scaler = fit_scaler(matrix, config.seed)
    samples = VectorSamples(torch.from_numpy(scaler(matrix)).to(device))
    inputs = Inputs.of(matrix, scaler.projection, config.seed)
    if pred_probs is not None:
        if config.decide == "votes" and not alone:
            raise ConfigError(
                "pred_probs beside features are for the pool, which the parameters leave out (preset paper, "
                "decide='votes'). Leave out pred_probs, or those parameters."
            )
        inputs = replace(inputs, given_scores=pred_probs.scores(), named=pred_probs.named, alone=alone)
    n_classes = len(labels.classes)
    default = partial(MLP, scaler.n_inputs, config.hidden or 1, n_classes)

    def make_model(decided: NDArray[np.int64], trained: nn.Module) -> VectorModel:
        if net is not None or config.decide == "votes" or config.fine_tune_passes:
            return net_model(trained, scaler, labels.classes, device)
        with few_threads(inputs.raw.size):
            return fit_vector_model(matrix, inputs.preparation, scaler, decided, labels.classes, device, config.seed)

    return Task(
        make_problem(samples, labels, trusted, config),
        default if net is None else checked_factory(net, scaler.n_inputs, n_classes, samples, config.seed),
        config,
        make_model,
        conflicting_duplicates(matrix, labels.codes),
        fingerprint(matrix, labels, pred_probs),
        inputs if config.decide == "posterior" else None,
    )


def make_problem(samples: Samples, labels: Labels, trusted: NDArray[np.bool_], config: RunConfig) -> Problem:
    if config.fine_tune_passes and not trusted.any():
        raise ConfigError("fine_tune_passes needs trusted samples to learn from. Got none; mark some with trusted=.")
    device = samples.device
    said = labels.annotations
    given = labels.codes if said is None or said.consensus is None else said.consensus
    codes, certain = torch.from_numpy(given).to(device), torch.from_numpy(trusted).to(device)
    return Problem(samples, codes, certain, len(labels.classes), opinions_of(labels, device))


def solve(
    task: Task,
    callback: Callback | None = None,
    progress: Progress | None = None,
    checkpoints: NoCheckpoints | None = None,
    limit: TimeLimit | None = None,
) -> Solution:
    """Run the method."""
    problem, inputs, make_net, config = task.problem, task.inputs, task.make_net, task.config
    checkpoints = checkpoints or NoCheckpoints()
    tell, listen = progress or (lambda _: None), callback or (lambda _record, _state: None)
    device = problem.samples.device
    plan = plan_audit(problem, config.audit, config.seed) if config.audit else None
    asked = problem if plan is None else plan.problem
    audit: Audit | None = None
    size = len(problem.samples) * problem.samples.n_values
    with seeded(config.seed, device), fast_arithmetic(device), few_threads(size):
        state = run(asked, make_net, config, LocalEngine(), listen, tell, checkpoints, limit)
        tell("decide")
        decide_for = decider(state, asked, inputs, make_net, config)
        found = decide_for(problem)
        if plan is not None:
            found, audit = finish_audit(plan, decide_for(plan.problem), found)
        temperature = None if audit is None else audit.temperature
        if config.fine_tune_passes:
            tell("fine-tune")
            fine_tune(state, problem, config)
            refuse_diverged("fine-tuning", config.lr, [state.deployed_net])
        if config.review_below is None:
            bar = REVIEW_BELOW if temperature is None else CALIBRATED_REVIEW_BELOW
            config = replace(config, review_below=bar)
        decision = final_decision(found, state, problem, config)
        decision, harm = _do_no_harm(decision, found, problem, audit, config)
        tell("profile")
        # Probabilities that sum to one cannot say that a sample fits no class.
        nowhere = config.budget or (inputs is not None and inputs.alone)
        concluded = conclude(state, problem, found, decision, 0.0 if nowhere else config.outlier_share, config.seed)
    notes = [*checkpoints.notes, *harm, *found.notes]
    drawn = _draw(state, problem, concluded.decision, config.seed, tell, notes)
    if state.round_index < (config.n_rounds or 0):
        notes.append(f"stopped by the time limit after {state.round_index} of {config.n_rounds} rounds")
    for note in notes:
        warnings.warn(note, LabelmendWarning, stacklevel=4)
    return Solution(state, found, concluded, config, checkpoints.seconds, notes, drawn, audit, temperature)


def final_decision(found: Decided, state: RoundState, problem: Problem, config: RunConfig) -> Decision:
    """What the decided labels become within what the user asked for."""
    given, trusted = problem.labels_in_use, problem.trusted
    sizes = torch.bincount(given[given >= 0], minlength=problem.n_classes)
    too_few = sizes[given.clamp(min=0)] < config.min_class_size
    left_alone = (given >= 0) & ~trusted & (too_few | found.left_alone)
    review_below = REVIEW_BELOW if config.review_below is None else config.review_below
    decision = decide(found.probabilities, found.labels, given, left_alone, review_below)
    if config.precision:
        decision = at_precision(decision, found.probabilities, given, left_alone, config.precision, review_below)
    return within_budget(decision, given, trusted, config.budget) if config.budget else decision


def _do_no_harm(
    decision: Decision, found: Decided, problem: Problem, audit: Audit | None, config: RunConfig
) -> tuple[Decision, list[str]]:
    """The decision, unless nothing is to be gained by it; and what the user should know about that."""
    given = problem.labels_in_use
    changes = int(((decision.labels != given) & (given >= 0)).sum())
    wrong = noise_in_question(found.noise_rate, problem)
    if audit is None or audit.right > 1 - wrong or changes == 0 or config.decide == "votes":
        return decision, []
    kept = without_changes(decision, found.probabilities, given, config.review_below or 0.0)
    return kept, [
        f"labels stay as they were given: by the planted errors {changes:,} changes would break more good labels than "
        "they mend; they are for review."
    ]


def _draw(
    state: RoundState, problem: Problem, decision: Decision, seed: int, tell: Progress, notes: list[str]
) -> SampleMap | None:
    """The map of the report. It is never worth a run: where it cannot be drawn, a note says why."""
    tell("map")
    try:
        return draw_map(state, problem, _numpy(decision.labels), _numpy(decision.status), seed)
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
        config=solution.config,
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


def read(X: Any, y: Any, trusted: Any, missing: Any, annotators: Any = None) -> tuple[Any, Labels, NDArray[np.bool_]]:
    """All checks of features and labels, before any work."""
    matrix, labels, certain, _ = read_all(X, y, trusted, missing, annotators, None)
    return matrix, labels, certain


def read_all(
    X: Any, y: Any, trusted: Any, missing: Any, annotators: Any, pred_probs: Any
) -> tuple[Any, Labels, NDArray[np.bool_], PredProbs | None]:
    """The same with probabilities of the user's own models, which are the features where there are no others."""
    if y is None and annotators is None:
        raise DataError("there must be labels: y, or a table of them as annotators. Got neither.")
    if X is None and pred_probs is None:
        raise DataError("there must be features X, or probabilities as pred_probs. Got neither.")
    labels = read_labels(y, missing) if annotators is None else read_annotated(y, annotators, missing)
    probabilities = None
    if pred_probs is not None:
        probabilities, labels = read_pred_probs(pred_probs, labels)
    matrix = probabilities.features() if X is None and probabilities is not None else read_features(X)
    if len(labels.codes) != matrix.shape[0]:
        raise DataError(
            "features and labels must have the same length. "
            f"Got {matrix.shape[0]} rows and {len(labels.codes)} labels instead."
        )
    check_features(matrix)
    return matrix, *checked_labels(labels, trusted), probabilities


def checked_labels(labels: Labels, trusted: Any) -> tuple[Labels, NDArray[np.bool_]]:
    """The labels, with their consensus where several people gave them, and which of them are certain."""
    if labels.annotations is None:
        check_classes(labels)
        return labels, read_trusted(trusted, labels)
    certain = read_trusted(trusted, settled(labels))
    labels = with_consensus(labels, certain)
    check_classes(labels)
    return labels, certain


def read_trusted(trusted: Any, labels: Labels) -> NDArray[np.bool_]:
    """Which labels are certain; none of them where nothing is said."""
    if trusted is None:
        return np.zeros(len(labels.codes), dtype=bool)
    certain = _read_mask(trusted, len(labels.codes))
    if (certain & (labels.codes < 0)).any():
        row = int(np.flatnonzero(certain & (labels.codes < 0))[0])
        raise DataError(f"trusted rows must have a label. Row {row} has none; remove the mark or fill the label.")
    return certain


def notice(labels: Labels, duplicates: list[list[int]], config: RunConfig) -> list[str]:
    """What is handled, and the user should know."""
    notes = list(labels.notes)
    sizes = np.bincount(labels.codes[labels.codes >= 0], minlength=len(labels.classes))
    # A class that only pred_probs name has no labels to keep; one that annotators name and nobody's label is tiny.
    counted = (sizes > 0) | (labels.annotations is not None)
    tiny = [str(c) for c in labels.classes[counted & (sizes < config.min_class_size)]]
    small = int((counted & (sizes < config.n_branches)).sum())
    if tiny:
        notes.append(
            f"{len(tiny)} class(es) have fewer than {config.min_class_size} samples and keep their labels, "
            f"for review: {', '.join(tiny[:5])}{', ...' if len(tiny) > 5 else ''}."
        )
    if small:
        notes.append(f"{small} class(es) have fewer samples than there are branches; some subsets go without them.")
    if duplicates:
        notes.append(
            f"{len(duplicates)} group(s) of identical rows have different labels, for example rows "
            f"{', '.join(map(str, duplicates[0][:5]))}; see `duplicates` in the result."
        )
    return notes


@contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """First weights and dropout draw from torch's global generator: seeded here, and given back as it was."""
    with own_torch(), torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield


def checked_factory(
    net: NetFactory, n_inputs: int, n_classes: int, samples: Samples, seed: int
) -> Callable[[], nn.Module]:
    """The user's factory, once a net of it has been tried."""
    with seeded(seed, samples.device):
        check_net(net(n_inputs, n_classes).to(samples.device), samples, n_classes)
    return lambda: net(n_inputs, n_classes)


def check_net(net: nn.Module, samples: Samples, n_classes: int) -> None:
    """Refuse a net of another shape before it fails somewhere inside."""
    rows = samples.batch(torch.arange(2, device=samples.device), "none", generator=None)
    with torch.no_grad():
        out = net.eval()(rows)
    parts = out if isinstance(out, tuple) else (out,)
    shapes = [tuple(part.shape) for part in parts if isinstance(part, Tensor)]
    if len(parts) != 2 or [len(shape) for shape in shapes] != [2, 2] or shapes[1] != (len(rows), n_classes):
        raise ConfigError(
            f"net must build a module that maps a batch to (features, logits), both two-dimensional, with {n_classes} "
            f"logits a row. Got {type(out).__name__} with shapes {shapes} for {len(rows)} rows instead."
        )


def choose_device(name: str) -> torch.device:
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        if device.type not in ("cpu", "cuda"):
            raise RuntimeError("only cpu and cuda are supported")
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ConfigError(f"device must be usable here. Got {name!r}: {str(error).splitlines()[0]}") from error
    return device


def fingerprint(matrix: Any, labels: Labels, pred_probs: PredProbs | None = None) -> str:
    """SHA-256 of features, labels, who gave them and models' probabilities: whether a run belongs to these data."""
    digest = hashlib.sha256()
    parts = (matrix.data, matrix.indices, matrix.indptr) if scipy.sparse.issparse(matrix) else (matrix,)
    for part in (*parts, labels.codes):
        digest.update(np.ascontiguousarray(part).data)
    if labels.annotations is not None:
        digest.update(labels.annotations.digest().encode())
    if pred_probs is not None:
        digest.update(pred_probs.digest().encode())
    return digest.hexdigest()


def _read_mask(mask: Any, n: int) -> NDArray[np.bool_]:
    array = values_of(mask, "trusted")
    try:
        numbers = array.astype(float)
    except (TypeError, ValueError):
        numbers = np.full(array.shape, np.nan)
    if array.shape != (n,) or not np.isin(numbers, (0.0, 1.0)).all():
        raise DataError(
            f"trusted must be one true or false per row ({n}). Got {array.dtype} values of shape {array.shape} instead."
        )
    return numbers.astype(bool)


def read_ids(ids: Any, n: int) -> NDArray[Any]:
    """Names of the rows; their positions where none are given."""
    if ids is None:
        return np.arange(n)
    array = values_of(ids, "ids")
    if array.shape != (n,):
        raise DataError(f"ids must be one per row ({n}). Got an array of shape {array.shape} instead.")
    if (repeated := n - len(set(array.tolist()))) > 0:
        raise DataError(f"ids must be unique. Got {repeated} repeated ones instead.")
    return array


def _numpy(tensor: Tensor) -> NDArray[Any]:
    array: NDArray[Any] = tensor.detach().cpu().numpy()
    return array


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
