"""The answers of one run of labelmend to a cell, and those of its parts alone.

    labelmend    the joined decision
    pool         the pool alone          ensemble   the ensemble alone
    preferred    the pool, and the ensemble's class in disputed rows where the pool prefers it (evidence.agreed)
    everything   the pool, and the ensemble's class in all disputed rows
    best_guess   argmax of the pool's out-of-sample probabilities

Disputed rows: the pool keeps the given label, the ensemble changes it. What a run does not hand out is left out here.
Labels are numbers 0 .. C-1 of the given classes, on the way in and out.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.datasets import FloatArray, IntArray
from labelmend.api import correct

CANNOT_TELL = "cannot tell"
NUMBERS = ("mixing", "agreement", "linear", "trees", "overlap")  # of the verdict, shares all; disputed is a count


@dataclass(frozen=True)
class Answers:
    labels: dict[str, IntArray]  # by part
    confidence: FloatArray
    suspicion: FloatArray | None  # high: the given label looks wrong
    rate: float
    interval: tuple[float, float] | None
    verdict: dict[str, Any]  # empty: the run gives none
    review: float  # share of rows
    seconds: float  # of the CPU, for the run alone
    classes: IntArray = field(repr=False)  # what the codes stand for


def ask(features: FloatArray, given: IntArray, seed: int, assume: str) -> Answers:
    classes, codes = np.unique(given, return_inverse=True)
    began = time.process_time()
    result = correct(features, codes, seed=seed, assume=assume)
    seconds = time.process_time() - began
    verdict = read_verdict(result, len(codes))
    labels = {"labelmend": np.asarray(result.labels), **parts(features, codes, result, verdict, seed, assume)}
    score = getattr(result, "label_score", None)
    return Answers(
        {name: classes[np.asarray(found, dtype=np.int64)] for name, found in labels.items()},
        np.asarray(result.confidence, dtype=np.float64),
        None if score is None else 1 - np.asarray(score, dtype=np.float64),
        float(result.noise_rate),
        read_interval(result),
        verdict,
        float(np.mean(np.asarray(result.status) == "review")),
        seconds,
        classes,
    )


def parts(
    features: FloatArray, codes: IntArray, result: Any, verdict: dict[str, Any], seed: int, assume: str
) -> dict[str, IntArray]:
    evidence = getattr(result, "evidence", None)
    proposals, pool = read(evidence, "proposals"), read(evidence, "pool_labels")
    probabilities = read(evidence, "pool_probs")
    if proposals is None:
        proposals = voted(result.votes, codes)
    if pool is None and assume == "auto" and verdict:
        pool = pool_alone(features, codes, result, verdict, seed)
    found = {"pool": pool, "ensemble": proposals}
    if probabilities is not None:
        found["best_guess"] = probabilities.argmax(axis=1)
    if pool is not None:
        disputed = (pool == codes) & (proposals != codes)
        found["everything"] = np.where(disputed, proposals, pool)
        agreed = read(evidence, "agreed")
        if agreed is None and probabilities is not None:
            rows = np.arange(len(codes))
            agreed = probabilities[rows, proposals] > probabilities[rows, codes]
        found["preferred"] = None if agreed is None else np.where(disputed & agreed, proposals, pool)
    return {name: labels for name, labels in found.items() if labels is not None}


def pool_alone(features: FloatArray, codes: IntArray, result: Any, verdict: dict[str, Any], seed: int) -> IntArray:
    """Where nothing was let in, the run's own labels are the pool's; else a second run."""
    if not verdict["adopted"] and verdict["classes"] != CANNOT_TELL:
        return np.asarray(result.labels)
    return np.asarray(correct(features, codes, seed=seed, assume="overlapping").labels)


def voted(votes: Any, codes: IntArray) -> IntArray:
    """The class with the most suggestions; rows that got none keep their label."""
    dense = np.asarray(votes.toarray())
    return np.where(dense.any(axis=1), dense.argmax(axis=1), codes)


def read(evidence: Any, name: str) -> NDArray[Any] | None:
    value = getattr(evidence, name, None)
    return None if value is None else np.asarray(value)


def read_verdict(result: Any, n: int) -> dict[str, Any]:
    verdict = getattr(result, "verdict", None)
    if verdict is None:
        return {}
    numbers = {name: number(getattr(verdict, name, None)) for name in NUMBERS}
    words = {name: getattr(verdict, name, None) for name in ("classes", "reason")}
    return {**words, **numbers, "adopted": int(verdict.adopted), "disputed": float(verdict.disputed) / n}


def number(value: Any) -> float | None:
    """None where it proves nothing: JSON knows neither infinity nor NaN."""
    return float(value) if value is not None and np.isfinite(value) else None


def read_interval(result: Any) -> tuple[float, float] | None:
    rate = getattr(getattr(result, "profile", None), "rate", None)
    return None if rate is None else (float(rate.low), float(rate.high))
