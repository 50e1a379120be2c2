"""The noise profile: how many labels are wrong, which, and of what kind. `result.profile`, profile.json.

Every figure comes with a 95 % interval. What it covers: the finite number of samples; how far the witnesses may be
trusted, by taking them half as sharp and twice as sharp as the run did and learning P(given | true) anew each time;
and, in the noise rate, errors the run cannot see: as many as go unseen among errors planted here (`kinds.py`), or
twice that, since real errors also mislead the witnesses. What it does not cover: errors no witness contradicts, such
as a class whose boundary every annotator draws in the wrong place, and samples that belong to no class. How often it
holds the true rate is measured in docs/experiments.md.

Knows arrays; how it is said in words is `profile_words.py`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import scipy.special
import torch

from labelmend.decide import posterior, weighted_product
from labelmend.trust.kinds import KINDS, KindShares, noise_kinds, suspects
from labelmend.trust.testimony import Codes, Floats, Testimony

SHARPNESS = (0.5, 1.0, 2.0)  # of the witnesses, as multiples of the run's own
CONFIDENCE = 0.95
UNSEEN = 2.0  # times as many errors go unseen as planted ones do, at most
PAIRS = 20  # that are listed
CLEAN = 0.01  # noise rate whose upper end is below: nothing to speak of
EM_PASSES = 10


@dataclass(frozen=True)
class Estimate:
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class ClassRate:
    """Of the labels given as this class, the share that is wrong."""

    name: Any
    labels: int
    wrong: Estimate


@dataclass(frozen=True)
class PairCount:
    """Labels given as one class whose samples belong to another, as a number of labels."""

    given: Any
    true: Any
    count: Estimate


@dataclass(frozen=True)
class NoiseProfile:
    labelled: int  # samples with a label that is not certain
    suspects: int  # of these, whose label the run holds wrong
    rate: Estimate  # share of wrong labels
    classes: tuple[ClassRate, ...]  # most wrong labels first
    pairs: tuple[PairCount, ...]  # the most frequent ones
    kinds: dict[str, float] | None  # share of each kind of error, sum one; None: too few errors to tell
    seen: dict[str, float] | None  # share of planted errors of each kind that such a run finds
    transition_low: Floats = field(repr=False)  # P(given | true): lower and upper ends
    transition_high: Floats = field(repr=False)

    @property
    def clean(self) -> bool:
        """Nothing speaks for more than a few wrong labels."""
        return self.rate.high < CLEAN or self.suspects == 0

    @property
    def kind(self) -> str | None:
        """The kind with the largest share."""
        return None if self.kinds is None else max(self.kinds, key=self.kinds.__getitem__)

    def named(self, names: list[Any]) -> NoiseProfile:
        """With `names` in the place of class codes."""
        classes = tuple(replace(entry, name=names[entry.name]) for entry in self.classes)
        pairs = tuple(replace(pair, given=names[pair.given], true=names[pair.true]) for pair in self.pairs)
        return replace(self, classes=classes, pairs=pairs)

    def ends(self) -> dict[str, Floats]:
        """The matrices, by the names they are saved under."""
        return {"low": self.transition_low, "high": self.transition_high}

    def plain(self) -> dict[str, Any]:
        """Ready for JSON, without the matrices."""
        out = asdict(self)
        del out["transition_low"], out["transition_high"]
        return {**out, "kind": self.kind, "clean": self.clean}


def profile_from(plain: dict[str, Any], low: Floats, high: Floats) -> NoiseProfile:
    """What `plain` wrote and the two matrices, read back."""
    known = {name: plain[name] for name in ("labelled", "suspects", "kinds", "seen")}
    classes = tuple(ClassRate(c["name"], c["labels"], Estimate(**c["wrong"])) for c in plain["classes"])
    pairs = tuple(PairCount(p["given"], p["true"], Estimate(**p["count"])) for p in plain["pairs"])
    rate = Estimate(**plain["rate"])
    return NoiseProfile(rate=rate, classes=classes, pairs=pairs, transition_low=low, transition_high=high, **known)


def noise_profile(told: Testimony, names: list[Any], rng: np.random.Generator) -> NoiseProfile:
    """`names` are the classes as plain values."""
    rows = np.flatnonzero((told.given >= 0) & ~told.fixed)
    readings = [_reading(told, rows, sharpness) for sharpness in SHARPNESS]
    usual = readings[SHARPNESS.index(1.0)]
    found = suspects(told)
    kinds = noise_kinds(told, rng)
    cells = np.stack([_beta(reading, reading.sum(axis=0, keepdims=True)) for reading in readings])
    lows, highs = cells[:, 0].min(axis=0), cells[:, 1].max(axis=0)
    across = np.stack([_beta(reading, reading.sum(axis=1, keepdims=True)) for reading in readings])
    rate = _rate(readings, len(found), len(rows), kinds)
    clean = rate.high < CLEAN
    named = None if kinds is None or clean else kinds
    return NoiseProfile(
        labelled=len(rows),
        suspects=len(found),
        rate=rate,
        classes=_classes(usual, readings, names),
        pairs=_pairs(usual, across, names),
        kinds=None if named is None else dict(zip(KINDS, named.shares, strict=True)),
        seen=None if named is None else dict(zip(KINDS, named.seen, strict=True)),
        transition_low=lows.T,
        transition_high=highs.T,
    )


def _reading(told: Testimony, rows: Codes, sharpness: float) -> Floats:
    """Expected number of labels by (given, true) class, the witnesses taken so sharp."""
    given = told.given[rows]
    if sharpness == 1.0:
        shares = told.posterior[rows]
    else:
        witness = weighted_product([torch.from_numpy(told.witness(rows).astype(np.float32))], [sharpness])
        fixed = torch.zeros(len(rows), dtype=torch.bool)
        shares = posterior(witness, torch.from_numpy(given), fixed, EM_PASSES).probabilities.numpy()
    counts = np.zeros((told.n_classes, told.n_classes))
    for code in range(told.n_classes):
        counts[code] = shares[given == code].sum(axis=0, dtype=np.float64)
    return counts


def _beta(counts: Floats, totals: Floats) -> Floats:
    """Lower and upper ends of shares counts / totals: quantiles of Jeffreys' posterior; less than one may be none."""
    tail = (1 - CONFIDENCE) / 2
    a, b = counts + 0.5, np.maximum(totals - counts, 0) + 0.5
    low = np.where(counts < 1, 0.0, scipy.special.betaincinv(a, b, tail))
    return np.stack([low, scipy.special.betaincinv(a, b, 1 - tail)])


def _rate(readings: list[Floats], n_suspects: int, n: int, kinds: KindShares | None) -> Estimate:
    """The widest of: every reading, and the suspects with those like them that go unseen."""
    wrong = [float(reading.sum() - np.trace(reading)) for reading in readings]
    if n == 0:
        return Estimate(0.0, 0.0, 1.0)
    counts = list(wrong)
    if kinds is not None:
        counts += [n_suspects * (1 + times * (kinds.hidden - 1)) for times in (1.0, UNSEEN)]
    ends = _beta(np.minimum(np.array(counts), n), np.array([n]))
    value = wrong[SHARPNESS.index(1.0)] / n
    return Estimate(value, min(float(ends[0].min()), value), max(float(ends[1].max()), value))


def _classes(usual: Floats, readings: list[Floats], names: list[Any]) -> tuple[ClassRate, ...]:
    def wrong(reading: Floats) -> Floats:
        return np.asarray(reading.sum(axis=1) - reading.diagonal())

    sizes = usual.sum(axis=1)
    ends = np.stack([_beta(wrong(reading), sizes) for reading in readings])
    low, high = ends[:, 0].min(axis=0), ends[:, 1].max(axis=0)
    share = np.divide(wrong(usual), sizes, out=np.zeros(len(names)), where=sizes > 0)
    order = np.argsort(-wrong(usual), kind="stable")
    return tuple(
        ClassRate(names[c], round(sizes[c]), _ordered(share[c], low[c], high[c])) for c in order.tolist() if sizes[c]
    )


def _pairs(usual: Floats, ends: Floats, names: list[Any]) -> tuple[PairCount, ...]:
    counts = usual - np.diag(usual.diagonal())
    sizes, low, high = usual.sum(axis=1), ends[:, 0].min(axis=0), ends[:, 1].max(axis=0)
    order = np.argsort(-counts, axis=None, kind="stable")[:PAIRS]
    found = []
    for given, true in zip(*np.unravel_index(order, counts.shape), strict=True):
        if counts[given, true] >= 1:
            size, count = sizes[given], float(counts[given, true])
            estimate = _ordered(count, low[given, true] * size, high[given, true] * size)
            found.append(PairCount(names[given], names[true], estimate))
    return tuple(found)


def _ordered(value: float, low: float, high: float) -> Estimate:
    return Estimate(float(value), float(min(low, value)), float(max(high, value)))
