"""The pool: members weighted by how well together they explain the given labels seen through a noise matrix.

    p(c | x) = softmax(sum_i w_i s_i(x, c) + b_c),  w_i >= 0        s_i: members that have not seen the row's own label
    P(given | x) = sum_c p(c | x) T[c, given]                        T: noise matrix, its total rate held fixed

Weights, class biases and T are those of greatest likelihood at a fixed noise rate, in turns. The likelihood scales each
member by itself: a bad one gets weight 0, an over-confident one a small weight; b puts the class sizes right. The rate
is not chosen but averaged over: every rate of a grid has the weight (root of its likelihood) x (prior that favours
little noise) x (step of the grid), and posterior, noise rate and interval are means under these weights. The root
stands for rows that are not independent. So what cannot be known stays visible in the interval.

Trusted rows teach p directly and stay out of T; rows without a label are predicted only. At most MOST_FITTED rows, and
of many classes the LIKELY ones of each row, are fitted on; all rows and classes are judged.

Knows scores and labels by number; does not know features or how a member came to its scores.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Scores = NDArray[np.float32]

RATES = np.array([0.001, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6])
MOST_OF_TWO = 0.45  # noise rate with two classes: from one half on they swap names
PRIOR = 3.0  # density of a rate r before anything is seen: (1 - r)^(PRIOR - 1)
TEMPERED = 0.5  # power of the likelihood
ABSENT = -30.0  # bias of a class that nothing names
STEPS, FIRST_ITERATIONS, ITERATIONS, EM_PASSES = 12, 60, 12, 3
ENOUGH = 1e-5  # change of the log likelihood per row at which the turns end
COMMON_ROWS, SPREAD_ROWS = 20.0, 2.0  # rows' worth of the common noise rate, and per class of uniform errors
ENTRIES, FEWEST_FITTED, MOST_FITTED = 200_000, 4_000, 10_000  # rows x classes, and rows, that are fitted on
MANY_CLASSES, LIKELY = 40, 20  # above, a row is fitted on its most likely classes and the given one
NEGLIGIBLE = 1e-4  # weight of a rate that is not worth its posterior
INTERVAL = (0.05, 0.95)
BLOCK = 2**22  # entries of (row, class) judged at once


@dataclass(frozen=True)
class Fit:
    """The pool at one noise rate."""

    theta: Floats  # weights of the members, then biases of the classes
    transition: Floats  # (C, C) P(given | true)
    log_likelihood: float


@dataclass(frozen=True)
class Pool:
    weights: dict[str, float]  # of the members
    probs: NDArray[np.float32]  # (n, C) p(c | x) at the most likely rate: no row's own label is in it
    posterior: NDArray[np.float32]  # (n, C) P(true = c | x, given), averaged over the noise rate
    transition: Floats  # (C, C) P(given | true) at the most likely rate
    rates: Floats
    rate_weights: Floats
    member_labels: dict[str, Codes]  # each member's class for every row

    @property
    def noise_rate(self) -> float:
        return float(self.rates @ self.rate_weights)

    @property
    def interval(self) -> tuple[float, float]:
        """90 % of the weight lies between."""
        below = np.cumsum(self.rate_weights) - self.rate_weights / 2
        low, high = np.interp(INTERVAL, below, self.rates, left=0.0)
        return float(low), float(max(high, self.noise_rate))

    @property
    def overlap(self) -> float:
        """How often the best guess is expected to be wrong, once the noise has been explained away."""
        return float(1 - self.probs.max(axis=1).mean(dtype=np.float64))


def fit_pool(scores: Mapping[str, Scores], given: Codes, trusted: NDArray[np.bool_], known: NDArray[np.bool_]) -> Pool:
    """`scores` of every member (n, C); `given` -1: no label; `known` marks classes that some label or column names."""
    stacked = np.stack(list(scores.values()), axis=2)  # (n, C, members)
    n_classes = stacked.shape[1]
    data = _Data.of(stacked, given, trusted, known)
    rates = RATES[(MOST_OF_TWO if n_classes == 2 else RATES[-1]) >= RATES]
    fits: list[Fit] = []
    for rate in rates:
        fits.append(fit_at_rate(data, float(rate), fits[-1].theta if fits else None))
    likelihoods = np.array([fit.log_likelihood for fit in fits])
    weights, place = rate_weights(rates, likelihoods), int(likelihoods.argmax())
    best = fits[place]
    probs, posterior = _judge(stacked, given, trusted, data.bias, fits, weights, place)
    return Pool(
        dict(zip(scores, best.theta[: len(scores)].tolist(), strict=True)),
        probs,
        posterior,
        best.transition,
        rates,
        weights,
        {name: score.argmax(axis=1) for name, score in scores.items()},
    )


def fit_weights(
    scores: Mapping[str, Scores], labels: Codes, known: NDArray[np.bool_]
) -> tuple[dict[str, float], Floats]:
    """Weights of the members and biases of the classes for labels that are taken as right; -1: no label."""
    stacked = np.stack(list(scores.values()), axis=2)
    data = _Data.of(stacked, labels, np.zeros(len(labels), dtype=bool), known)
    theta = fit_at_rate(data, float(RATES[0]), None).theta
    return dict(zip(scores, theta[: len(scores)].tolist(), strict=True)), theta[len(scores) :] + data.bias


def rate_weights(rates: Floats, log_likelihood: Floats) -> Floats:
    prior = PRIOR * (1 - rates) ** (PRIOR - 1)
    weights = np.exp(TEMPERED * (log_likelihood - log_likelihood.max())) * np.gradient(rates) * prior
    return np.asarray(weights / weights.sum())


@dataclass(frozen=True)
class _Data:
    """The rows that are fitted on."""

    flat: Floats  # (rows * K, members)
    likely: Codes | None  # (rows, K) the classes of those columns, C: all others; None: all of them, in order
    given: Codes
    trusted: NDArray[np.bool_]  # rows that T is not learned from
    n_classes: int
    bias: Floats  # (C,) 0, or ABSENT
    unnamed: NDArray[np.bool_]  # (C,) classes that no label names, but a model of the user does

    @classmethod
    def of(
        cls, stacked: NDArray[np.float32], given: Codes, trusted: NDArray[np.bool_], known: NDArray[np.bool_]
    ) -> _Data:
        n_classes, members = stacked.shape[1:]
        rows = np.flatnonzero(given >= 0)
        most = int(np.clip(ENTRIES / min(n_classes, LIKELY), FEWEST_FITTED, MOST_FITTED))
        if len(rows) > most:
            rows = np.sort(np.random.default_rng(0).permutation(rows)[:most])
        labels, certain = given[rows], trusted[rows]
        chosen, likely = stacked[rows], None
        if n_classes > MANY_CLASSES:
            chosen, likely = likely_classes(chosen, labels)
        flat = chosen.reshape(-1, members).astype(np.float64)
        unnamed = known & (np.bincount(given[given >= 0], minlength=n_classes) == 0)
        return cls(flat, likely, labels, certain, n_classes, np.where(known, 0.0, ABSENT), unnamed)

    def answers(self, theta: Floats) -> Floats:
        members = self.flat.shape[1]
        bias = theta[members:] + self.bias
        if self.likely is not None:
            bias = np.append(bias, np.log(self.n_classes - LIKELY))[self.likely]
        return softmax((self.flat @ theta[:members]).reshape(len(self.given), -1) + bias)

    def joint(self, p: Floats, transition: Floats) -> Floats:
        """P(true = c, given | x); the label of a trusted row is its class."""
        if self.likely is None:
            return joint_with(p, transition, self.given, self.trusted)
        others = (1 - transition.diagonal().mean()) / (self.n_classes - 1)
        padded = np.vstack([transition, np.full(self.n_classes, others)])
        likelihood = padded[self.likely, self.given[:, None]]
        likelihood[self.trusted] = self.likely[self.trusted] == self.given[self.trusted, None]
        return np.asarray(p * likelihood)

    def per_class(self, values: Floats) -> Floats:
        """(C,) sums of (rows, K) values."""
        if self.likely is None:
            return np.asarray(values.sum(axis=0))
        sums = np.bincount(self.likely.ravel(), values.ravel(), self.n_classes + 1)
        return np.asarray(sums[: self.n_classes], dtype=np.float64)

    def counts(self, posterior: Floats) -> Floats:
        """(C, C) expected labels in question by (true, given) class."""
        rows = ~self.trusted
        true = np.arange(self.n_classes)[None] if self.likely is None else self.likely[rows]
        cells = (true * self.n_classes + self.given[rows, None]).ravel()
        sums = np.bincount(cells, posterior[rows].ravel(), (self.n_classes + 1) * self.n_classes)
        return np.asarray(sums.reshape(-1, self.n_classes)[: self.n_classes], dtype=np.float64)


def likely_classes(stacked: NDArray[np.float32], labels: Codes) -> tuple[NDArray[np.float32], Codes]:
    """Scores (rows, LIKELY + 1, members) and classes of each row's most likely classes, the given one among them.

    The last column stands for all other classes, by the mean of their scores: without them every row would be thought
    likelier than it is, and most of all those whose label is wrong.
    """
    n_classes = stacked.shape[1]
    together = stacked.mean(axis=2)
    together[np.arange(len(labels)), labels] = np.inf
    likely = np.sort(np.argpartition(-together, LIKELY, axis=1)[:, :LIKELY], axis=1)
    chosen = np.take_along_axis(stacked, likely[:, :, None], axis=1)
    others = (stacked.sum(axis=1) - chosen.sum(axis=1)) / (n_classes - LIKELY)
    last = np.full((len(labels), 1), n_classes)
    return np.concatenate([chosen, others[:, None]], axis=1), np.concatenate([likely, last], axis=1)


def softmax(logits: Floats) -> Floats:
    logits = logits - logits.max(axis=1, keepdims=True)
    np.exp(logits, out=logits)
    return np.asarray(logits / logits.sum(axis=1, keepdims=True))


def joint_with(p: Floats, transition: Floats, given: Codes, trusted: NDArray[np.bool_]) -> Floats:
    likelihood = transition.T[np.maximum(given, 0)]
    likelihood[given < 0] = 1.0
    if trusted.any():
        likelihood[trusted] = np.eye(len(transition))[given[trusted]]
    return np.asarray(p * likelihood)


def fit_at_rate(data: _Data, rate: float, start: Floats | None) -> Fit:
    """Weights and biases, then T, in turns."""
    from scipy.optimize import minimize

    members, n_classes = data.flat.shape[1], data.n_classes
    theta = np.concatenate([np.full(members, 1 / members), np.zeros(n_classes)]) if start is None else start
    transition = np.full((n_classes, n_classes), rate / max(n_classes - 1, 1))
    np.fill_diagonal(transition, 1 - rate)
    transition = never_given(transition, data.unnamed)
    bounds = [(0.0, None)] * members + [(None, None)] * n_classes
    last = np.inf
    for step in range(STEPS):
        theta = minimize(
            lambda tried, at=transition: _objective(data, tried, at),
            theta,
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"maxiter": ITERATIONS if step else FIRST_ITERATIONS},
        ).x
        value, p = _objective(data, theta, transition)[0], data.answers(theta)
        for _ in range(EM_PASSES):
            joint = data.joint(p, transition)
            counts = data.counts(joint / np.maximum(joint.sum(axis=1, keepdims=True), 1e-12))
            transition = transition_at(rate, counts, data.unnamed)
        if abs(last - value) < ENOUGH * len(data.given):
            break
        last = value
    return Fit(theta, transition, -float(value))


def _objective(data: _Data, theta: Floats, transition: Floats) -> tuple[float, Floats]:
    """Minus the log likelihood with a small ridge, and its gradient."""
    members = data.flat.shape[1]
    p = data.answers(theta)
    joint = data.joint(p, transition)
    seen = np.maximum(joint.sum(axis=1, keepdims=True), 1e-12)
    pull = theta - np.concatenate([np.full(members, 1 / members), np.zeros(data.n_classes)])
    difference = p - joint / seen
    value = -float(np.log(seen).sum()) + 0.5 * float(pull @ pull)
    gradient = np.concatenate([data.flat.T @ difference.ravel(), data.per_class(difference)]) + pull
    return value, gradient


def transition_at(rate: float, counts: Floats, unnamed: NDArray[np.bool_] | None = None) -> Floats:
    """T from expected counts by (true, given) class, its total noise rate forced.

    A class's own rate is shrunk to the common one, and where its errors go to the uniform. No class is mostly wrong,
    unless all are: else two classes can swap their names at high rates. Classes that are `unnamed` stand outside of
    the rate: all their labels are wrong, whatever it is.
    """
    n_classes = len(counts)
    unnamed = np.zeros(n_classes, dtype=bool) if unnamed is None else unnamed
    of_unnamed, counts = counts, np.where(unnamed[:, None], 0.0, counts)
    size = counts.sum(axis=1)
    off = counts - np.diag(counts.diagonal())
    off = off * (rate / max(off.sum() / max(counts.sum(), 1e-9), 1e-9))
    total = np.maximum(size - off.sum(axis=1), 1e-3 * size) + off.sum(axis=1)
    common = off.sum() / max(total.sum(), 1e-9)
    own = (off.sum(axis=1) + COMMON_ROWS * common) / (total + COMMON_ROWS)
    own = np.minimum(own, max(0.5, rate))
    uniform = (1 - np.eye(n_classes)) / max(n_classes - 1, 1)
    prior = SPREAD_ROWS * n_classes
    spread = (off + prior * uniform) / (off.sum(axis=1, keepdims=True) + prior)
    transition = own[:, None] * spread
    np.fill_diagonal(transition, 1 - own)
    transition[unnamed] = of_unnamed[unnamed] + 1
    return never_given(transition, unnamed)


def never_given(transition: Floats, unnamed: NDArray[np.bool_]) -> Floats:
    """T where some classes are the label of nobody."""
    if not unnamed.any():
        return np.asarray(transition)
    possible = np.where(unnamed[None], 0.0, transition)
    return np.asarray(possible / possible.sum(axis=1, keepdims=True))


def _judge(
    stacked: NDArray[np.float32],
    given: Codes,
    trusted: NDArray[np.bool_],
    bias: Floats,
    fits: list[Fit],
    weights: Floats,
    best: int,
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """p(c | x) at the best rate, and the posterior averaged over all that matter; by blocks of rows."""
    n, n_classes, members = stacked.shape
    probs, posterior = (np.empty((n, n_classes), np.float32) for _ in range(2))
    counted = [place for place, weight in enumerate(weights) if weight > NEGLIGIBLE]
    share = weights[counted].sum()
    step = max(1, BLOCK // (n_classes * members))
    for first in range(0, n, step):
        rows = slice(first, first + step)
        mean = np.zeros((len(given[rows]), n_classes))
        for place in sorted({*counted, best}):
            theta = fits[place].theta
            p = softmax(stacked[rows] @ theta[:members] + theta[members:] + bias)
            if place == best:
                probs[rows] = p
            if place in counted:
                joint = joint_with(p, fits[place].transition, given[rows], trusted[rows])
                mean += weights[place] / share * joint / np.maximum(joint.sum(axis=1, keepdims=True), 1e-12)
        posterior[rows] = mean
    return probs, posterior
