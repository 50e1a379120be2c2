"""The noise profile: how many labels are wrong, which, and of what kind; as numbers and in words.

Kinds of errors: random, confusing (at the borders of classes), patch (whole neighbourhoods).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelmend.decision.verdict import APART, Verdict
from labelmend.diagnosis import noise
from labelmend.diagnosis.planting import near_borders
from labelmend.diagnosis.reliability import Interval, jeffreys
from labelmend.diagnosis.run_outputs import Codes, Floats, RunOutputs

KINDS = ("random", "confusing", "patch")
FEWEST = 20  # suspects below which their kind cannot be told
PLANTINGS = 5  # of each kind, to smooth the shapes
CONCENTRATED = (0.05, 0.25)  # shares of the neighbours: none, some, many
N_CELLS = 18
LEAST_SEEN = 0.1  # a kind of which less is found is taken for one of which that much is: shares would explode
EM_PASSES = 200


@dataclass(frozen=True)
class KindShares:
    """In the order of KINDS."""

    shares: tuple[float, ...]  # of all errors, sum one
    seen: tuple[float, ...]  # share of planted errors of that kind that the run would have found
    hidden: float  # errors per suspect, those not found included: 1.2 says that every sixth error is no suspect


def suspects(outputs: RunOutputs) -> Codes:
    """Labelled samples whose given label the run holds wrong."""
    return np.flatnonzero((outputs.given >= 0) & (outputs.given != outputs.decided) & ~outputs.fixed)


def noise_kinds(outputs: RunOutputs, rng: np.random.Generator) -> KindShares | None:
    """None where there are too few suspects to tell."""
    rows = suspects(outputs)
    if len(rows) < FEWEST or outputs.n_classes < 2:
        return None
    unsure = unsure_rows(outputs)
    histogram = np.bincount(_cells(outputs, unsure, rows, outputs.given), minlength=N_CELLS)
    shapes, seen = np.ones((len(KINDS), N_CELLS)) / 2, np.zeros(len(KINDS))
    for kind, plant in enumerate(_planters(outputs, len(rows), rng)):
        for _ in range(PLANTINGS):
            labels = plant()
            planted = np.flatnonzero(labels != outputs.decided)
            visible = planted[would_find(outputs, planted, labels[planted])]
            seen[kind] += len(visible) / max(len(planted), 1) / PLANTINGS
            labels[np.setdiff1d(planted, visible)] = outputs.decided[np.setdiff1d(planted, visible)]
            shapes[kind] += np.bincount(_cells(outputs, unsure, visible, labels), minlength=N_CELLS)
    weights = mixture_weights(histogram, shapes / shapes.sum(axis=1, keepdims=True))
    errors = weights / np.maximum(seen, LEAST_SEEN)
    shares = errors / errors.sum()
    return KindShares(tuple(shares.tolist()), tuple(seen.tolist()), float(errors.sum()))


def mixture_weights(histogram: NDArray[np.integer], shapes: Floats) -> Floats:
    """Maximum likelihood weights of the rows of `shapes`, distributions over the cells, by EM."""
    weights = np.full(len(shapes), 1 / len(shapes))
    for _ in range(EM_PASSES):
        joint = weights[:, None] * shapes
        weights = (joint / joint.sum(axis=0) * histogram).sum(axis=1) / histogram.sum()
    return np.asarray(weights)


def would_find(outputs: RunOutputs, rows: Codes, labels: Codes) -> NDArray[np.bool_]:
    """Whether the run would hold these labels wrong if they were the given ones of these samples."""
    posterior = outputs.predicted[rows] * outputs.transition.T[labels]
    return np.asarray(posterior.argmax(axis=1) != labels)


def unsure_rows(outputs: RunOutputs) -> NDArray[np.bool_]:
    """(n,) below the median margin of the graphs."""
    margin = noise.nearest_rival(outputs.decided, outputs.graphs)[1]
    return np.asarray(margin < np.median(margin[(outputs.given >= 0) & ~outputs.fixed]))


def _planters(outputs: RunOutputs, count: int, rng: np.random.Generator) -> tuple[Callable[[], Codes], ...]:
    """In the order of KINDS: the decided labels with errors; the net, not the graphs, says which classes are near."""
    labels, n_classes, rate = outputs.decided, outputs.n_classes, count / len(outputs.decided)
    free = (outputs.given >= 0) & ~outputs.fixed
    rival, margin = noise.nearest_rival(labels, outputs.net)
    near = near_borders(margin, free, count)
    return (
        lambda: noise.random(labels, rate, n_classes, rng, free),
        lambda: noise.replaced(labels, rng.choice(near, size=count, replace=False), rival),
        lambda: noise.graph_patch(labels, count, rival, outputs.neighbors, rng, free),
    )


def _cells(outputs: RunOutputs, unsure: NDArray[np.bool_], rows: Codes, labels: Codes) -> Codes:
    """The cell of each sample of `rows`, were `labels` the given ones."""
    pair = np.where(labels == outputs.decided, -1, labels * outputs.n_classes + outputs.decided)
    pair[labels < 0] = -1
    concentration = (pair[outputs.neighbors[rows]] == pair[rows, None]).mean(axis=1)
    shares, at = outputs.graphs[rows].copy(), np.arange(len(rows))
    shares[at, outputs.decided[rows]] = -1.0
    rank = (shares > shares[at, labels[rows]][:, None]).sum(axis=1)
    place = np.digitize(concentration, CONCENTRATED) * 3 + np.minimum(rank, 2)
    return np.asarray(place * 2 + unsure[rows])


UNSEEN = 2.0  # times as many errors go unseen as planted ones do, at most
PAIRS = 20  # that are listed
CLEAN = 0.01  # noise rate whose upper end is below: too little to speak of


@dataclass(frozen=True)
class ClassRate:
    """Of the labels given as this class, the share that is wrong."""

    name: Any
    labels: int
    wrong: Interval


@dataclass(frozen=True)
class PairCount:
    """Labels given as one class whose samples belong to another, as a number of labels."""

    given: Any
    true: Any
    count: Interval


@dataclass(frozen=True)
class NoiseProfile:
    labelled: int  # samples with a label that is not certain
    suspects: int  # of these, whose label the run holds wrong
    rate: Interval  # share of wrong labels
    classes: tuple[ClassRate, ...]  # most wrong labels first
    pairs: tuple[PairCount, ...]  # the most frequent ones
    kinds: dict[str, float] | None  # share of each kind of error, sum one; None: too few errors to tell
    seen: dict[str, float] | None  # share of planted errors of each kind that such a run finds
    transition_low: Floats = field(repr=False)  # P(given | true): lower and upper ends
    transition_high: Floats = field(repr=False)

    @property
    def clean(self) -> bool:
        """No evidence of more than a few wrong labels."""
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
        out = asdict(self, dict_factory=_of_estimates)
        del out["transition_low"], out["transition_high"]
        return {**out, "kind": self.kind, "clean": self.clean}


def _of_estimates(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    """These intervals are of no counted cases."""
    return {name: value for name, value in fields if not (name == "count" and value is None)}


def profile_from(plain: dict[str, Any], low: Floats, high: Floats) -> NoiseProfile:
    """What `plain` wrote and the two matrices, read back."""
    known = {name: plain[name] for name in ("labelled", "suspects", "kinds", "seen")}
    classes = tuple(ClassRate(c["name"], c["labels"], Interval(**c["wrong"])) for c in plain["classes"])
    pairs = tuple(PairCount(p["given"], p["true"], Interval(**p["count"])) for p in plain["pairs"])
    rate = Interval(**plain["rate"])
    return NoiseProfile(rate=rate, classes=classes, pairs=pairs, transition_low=low, transition_high=high, **known)


def noise_profile(outputs: RunOutputs, rng: np.random.Generator, rate: Interval | None = None) -> NoiseProfile:
    """With classes by their codes; `rate` as the run estimated it, None: from the counts."""
    rows = np.flatnonzero((outputs.given >= 0) & ~outputs.fixed)
    counts = _expected_counts(outputs, rows)
    n_suspects, kinds = len(suspects(outputs)), noise_kinds(outputs, rng)
    lows, highs = jeffreys(counts, counts.sum(axis=0, keepdims=True))
    rate = rate or _rate(counts, n_suspects, len(rows), kinds)
    if rate.high < CLEAN:
        kinds = None
    return NoiseProfile(
        labelled=len(rows),
        suspects=n_suspects,
        rate=rate,
        classes=_classes(counts),
        pairs=_pairs(counts),
        kinds=None if kinds is None else dict(zip(KINDS, kinds.shares, strict=True)),
        seen=None if kinds is None else dict(zip(KINDS, kinds.seen, strict=True)),
        transition_low=lows.T,
        transition_high=highs.T,
    )


def _expected_counts(outputs: RunOutputs, rows: Codes) -> Floats:
    """Expected number of labels by (given, true) class."""
    given, shares = outputs.given[rows], outputs.posterior[rows]
    return np.stack([shares[given == code].sum(axis=0, dtype=np.float64) for code in range(outputs.n_classes)])


def _rate(counts: Floats, n_suspects: int, n: int, kinds: KindShares | None) -> Interval:
    """The wider of: the expected errors, and the suspects with those like them that go unseen."""
    if n == 0:
        return Interval(0.0, 0.0, 1.0)
    wrong = [float(counts.sum() - np.trace(counts))]
    if kinds is not None:
        wrong += [n_suspects * (1 + times * (kinds.hidden - 1)) for times in (1.0, UNSEEN)]
    low, high = jeffreys(np.minimum(np.array(wrong), n), np.array([n]))
    return Interval.around(wrong[0] / n, low.min(), high.max())


def _classes(counts: Floats) -> tuple[ClassRate, ...]:
    wrong, sizes = counts.sum(axis=1) - counts.diagonal(), counts.sum(axis=1)
    low, high = jeffreys(wrong, sizes)
    order = [code for code in np.argsort(-wrong, kind="stable").tolist() if sizes[code]]
    return tuple(ClassRate(c, round(sizes[c]), Interval.around(wrong[c] / sizes[c], low[c], high[c])) for c in order)


def _pairs(counts: Floats) -> tuple[PairCount, ...]:
    off, sizes = counts - np.diag(counts.diagonal()), counts.sum(axis=1, keepdims=True)
    low, high = jeffreys(counts, sizes) * sizes
    order = np.argsort(-off, axis=None, kind="stable")[:PAIRS]
    pairs = [divmod(place, len(off)) for place in order.tolist()]
    return tuple(
        PairCount(given, true, Interval.around(*(values[given, true] for values in (off, low, high))))
        for given, true in pairs
        if off[given, true] >= 1
    )


MEANINGS = {
    "random": (
        "Errors are spread over all samples and classes, as slips, spam or mixed-up files make them.",
        "They are the easiest to mend; look at how labels were entered or joined rather than at single classes.",
    ),
    "confusing": (
        "Errors sit at the borders between classes, where samples look like either.",
        "Many of them cannot be seen from the data alone, so more are left than were found; ask annotators about these "
        "pairs again, with a clear rule for each.",
    ),
    "patch": (
        "Errors come in whole neighbourhoods of similar samples that carry the same wrong label.",
        "Look for a common cause, such as one batch, one source or one annotator, and check it as a whole.",
    ),
}
NO_ERRORS = "No evidence of more than a few wrong labels."
NONE_SCATTERED = "No sign of scattered errors; errors that sit together could not be seen here."
UNTOLD = "These data do not show how many labels are wrong."
TOO_FEW = "Too few labels are held wrong to say what kind of errors they are."
SMALL = 0.005  # shares that are not worth a word


def rate_text(rate: Interval) -> str:
    return f"{rate.value:.1%} of the labels ({rate.low:.1%} to {rate.high:.1%})"


def kinds_text(profile: NoiseProfile) -> str:
    """ "mostly random (71 %), patch 20 %"; the largest first."""
    if profile.kinds is None:
        return "unknown: too few errors"
    ordered = sorted(profile.kinds.items(), key=lambda item: -item[1])
    (first, share), *rest = [(name, share) for name, share in ordered if share >= SMALL]
    word = "mostly " if rest and share > 0.5 else ""
    return ", ".join([f"{word}{first} {share:.0%}", *(f"{name} {share:.0%}" for name, share in rest)])


def sentences(profile: NoiseProfile, verdict: Verdict | None = None) -> list[str]:
    """What it means and what to do, one thought each; no all-clear that the interval does not give."""
    if verdict is not None and verdict.cannot_tell:
        return [UNTOLD]
    if profile.rate.high < CLEAN:
        return [NO_ERRORS if verdict is None or verdict.classes == APART else NONE_SCATTERED]
    if profile.suspects == 0:
        return [f"No single label stands out as wrong, but up to {profile.rate.high:.0%} of them may be."]
    if profile.kinds is None or profile.kind is None:
        return [TOO_FEW]
    meaning, advice = MEANINGS[profile.kind]
    pairs = [f"{pair.true} given as {pair.given}" for pair in profile.pairs[:3]]
    most = f"Most of them: {', '.join(pairs)}." if pairs and profile.kind != "random" else ""
    return [meaning, *([most] if most else []), advice]
