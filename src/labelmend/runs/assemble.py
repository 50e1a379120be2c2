"""The result for all samples, from the solution of those that took part."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from torch import Tensor

from labelmend.decision.annotators import QUALITY_PRIOR
from labelmend.decision.deciding import Decided
from labelmend.decision.posterior import STATUS_NAMES
from labelmend.diagnosis.annotators import Annotators, describe
from labelmend.diagnosis.conclude import REASON_TYPE, REASONS
from labelmend.diagnosis.projection import SampleMap
from labelmend.labels import Labels
from labelmend.result import STATUS_TYPE, UNREADABLE, Correction, plain_value
from labelmend.runs.solve import Solution
from labelmend.runs.task import Task
from labelmend.storage.run_folder import versions


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
