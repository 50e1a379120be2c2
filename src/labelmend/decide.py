"""From evidence to labels: kept, corrected, for review. Ours; the paper takes every winning vote.

posterior(c | x, g) ~ p(c | x) T[c, g]: what a witness says about x, times how labels go wrong, with
T[c, g] = P(given = g | true = c) estimated by EM from the data themselves. No noise rate is assumed.

It stands or falls with how sharp p is. A witness that is too sharp breaks good labels, one that is too soft lets bad
ones stand, and the given labels alone cannot tell which it is: 9 % human errors on mediocre features and 20 % errors
at the boundaries of good ones look the same. So the witness's own error rate is estimated without any label, from how
well other views of the samples agree with it (`witness_error`), and `calibrated_posterior` finds the sharpness at which
the posterior expects just that many errors of the witness where it contradicts the labels. A witness that contradicts
no more labels than it errs changes nothing. The measurements are in docs/experiments.md.

Knows class probabilities and given labels; does not know nets or graphs but by name.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

import torch
from torch import Tensor

KEPT, CORRECTED, REVIEW, FILLED = range(4)
STATUS_NAMES = ("kept", "corrected", "review", "filled")
BLOCK_ENTRIES = 2**23
PRIOR_ROWS = (
    2.0  # rows' worth of the common noise rate mixed into every row of T: most cells are empty at 1,000 classes
)
FLOOR = 1e-6  # least probability of a witness: nothing is impossible
EM_PASSES = 20
SEARCHED = 12_000  # labels on which the sharpness is searched: of 50,000 as good as all, in about half the time
# A witness's own errors look like a little noise, of which EM makes more: a rate well below this is held for none.
SCEPTICAL_BELOW = 0.01
SHARPNESS, BISECTIONS = (0.1, 12.0), 8
# From other views' disagreement to the error of a witness: chosen on nine data sets (digits, Fashion-MNIST, features of
# CIFAR-10, all of them and parts), clean and with planted errors. A net that learned from the graphs agrees with them
# more often than it should, hence its factor.
NET_FACTOR, ERROR_FACTOR, ERROR_POWER = 1.5, 3.0, 1.23
OWN_DOUBT = 1.5
BORDER_POWER = 3.0  # of the share of right labels, where all errors sit at borders


@dataclass(frozen=True)
class Posterior:
    probabilities: Tensor  # (n, C)
    transition: Tensor  # (C, C) P(given | true)
    noise_rate: float
    witness: Tensor | None = None  # (n, C) p(c | x) it came from, as sharp as it was used
    # The same from other given labels, T and sharpness estimated anew; None: labels of several annotators
    again: Callable[[Tensor], Posterior] | None = None
    measured: Posterior | None = None  # by which the noise was measured, where that is another one


AnyPosterior = TypeVar("AnyPosterior", bound=Posterior)


@dataclass(frozen=True)
class Decision:
    labels: Tensor  # (n,) argmax of the posterior, or the vote
    confidence: Tensor  # (n,) its probability
    runner_up: Tensor  # (n,) second class
    status: Tensor  # (n,) KEPT, CORRECTED, REVIEW or FILLED
    given_confidence: Tensor  # (n,) probability of the given label; 0 where there is none


def as_distribution(witness: Tensor) -> Tensor:
    """Rows that sum to one; a row of zeros is a witness who knows nothing."""
    total = witness.sum(dim=1, keepdim=True)
    return torch.where(total > 0, witness / total.clamp(min=torch.finfo(witness.dtype).tiny), 1 / witness.shape[1])


def weighted_product(witnesses: list[Tensor], powers: list[float]) -> Tensor:
    """What several witnesses say together: the product of their powers, renormalised. A power is a sharpness."""
    log_product = torch.zeros_like(witnesses[0])
    for witness, power in zip(witnesses, powers, strict=True):
        log_product.add_(witness.clamp(min=FLOOR).log_(), alpha=power)
    return log_product.softmax(dim=1)


def draw(n: int, most: int, device: torch.device) -> Tensor:
    """At most so many of n places, the same ones every time; in no pattern that the order of samples may have."""
    if n <= most:
        return torch.arange(n, device=device)
    return torch.randperm(n, generator=torch.Generator().manual_seed(0))[:most].sort().values.to(device)


def agreement(witness: Tensor, given: Tensor) -> float:
    """How often the witness names the given label, among the samples that have one."""
    labelled = given >= 0
    return float((witness.argmax(dim=1) == given)[labelled].double().mean()) if bool(labelled.any()) else 0.0


def disagreement(one: Tensor, other: Tensor) -> float:
    """How often two witnesses hold different classes most probable."""
    return float((one.argmax(dim=1) != other.argmax(dim=1)).double().mean())


def witness_error(witness: Tensor, asked: Tensor, neighbors: Tensor, net: Tensor) -> float:
    """Estimated error rate of a witness, from two other views of the same samples.

    One is the class that most `neighbors` of a sample belong to, by the witness itself, for the samples `asked` about;
    the other a net. No label is heard. On clean labels this is to be the share of labels that the witness contradicts.
    """
    says = witness.argmax(dim=1)
    objections = int((says[neighbors].mode(dim=1).values != says[asked]).sum())
    around = (objections + 1) / (len(asked) + 2)  # of few samples not even none would say that there is no error
    return float(ERROR_FACTOR * max(around, NET_FACTOR * disagreement(witness, net)) ** ERROR_POWER)


def calibrated_posterior(
    witness: Tensor, error: float, given: Tensor, fixed: Tensor, at_borders: float = 0.0
) -> Posterior:
    """The posterior at the sharpness that `calibrated_sharpness` finds, on some of the labels where there are many."""
    labelled = torch.nonzero(given >= 0).squeeze(1)
    some = labelled[draw(len(labelled), SEARCHED, given.device)]
    part, labels, certain = witness[some], given[some], fixed[some]

    def quick(sharpness: float) -> Posterior:
        return posterior(weighted_product([part], [sharpness]), labels, certain, EM_PASSES // 2)

    sharpness = calibrated_sharpness(quick, part, error, labels, certain, at_borders)
    found = posterior(weighted_product([witness], [sharpness]), given, fixed)
    speak_for_silent(found, witness, error, given)
    return replace(found, again=lambda other: calibrated_posterior(witness, error, other, fixed, at_borders))


def calibrated_sharpness(
    at: Callable[[float], Posterior],
    witness: Tensor,
    error: float,
    given: Tensor,
    fixed: Tensor,
    at_borders: float = 0.0,
) -> float:
    """The sharpness where the posterior `at` it expects the witness to contradict right labels in a share `error`.

    That is the mean over all labelled samples, those apart that are `fixed`, of the posterior's doubt in what the
    witness says, counted where it contradicts the label: errors in which both agree mend nothing. But never less sharp
    than to doubt OWN_DOUBT times that share of all its answers: labels that hardly contradict it are no reason to hold
    it for ignorant.

    `at_borders` is the share of the wrong labels that sit at borders between classes. There the witness errs too, and
    where the label is wrong it cannot contradict a right one: the more wrong labels there are, the fewer.
    """
    power = BORDER_POWER * at_borders**2
    questioned = (given >= 0) & ~fixed
    says = witness.argmax(dim=1, keepdim=True)
    contradicted = questioned & (says.squeeze(1) != given)

    def doubt(sharpness: float) -> float:
        found = at(sharpness)
        doubts = 1 - found.probabilities[contradicted].gather(1, says[contradicted]).double()
        scarce = float(max(1 - found.noise_rate, FLOOR) ** power)
        return float(doubts.sum()) / max(int(questioned.sum()), 1) / scarce

    return max(sharpness_where(doubt, error), own_sharpness(witness, OWN_DOUBT * error))


def speak_for_silent(found: Posterior, witness: Tensor, error: float, given: Tensor) -> None:
    """A sample without a label gets the witness as sharp as to be wrong in a share `error` of all samples."""
    silent = given < 0
    if bool(silent.any()):
        found.probabilities[silent] = weighted_product([witness[silent]], [own_sharpness(witness, error)])


def with_noise_of(measured: AnyPosterior, found: AnyPosterior) -> AnyPosterior:
    """`found` with the noise rate and the transition matrix of another posterior, from other given labels too."""
    once_more, measure, again = found.again, measured.again, None
    if once_more is not None and measure is not None:

        def again(other: Tensor) -> Posterior:
            return with_noise_of(measure(other), once_more(other))

    transition, noise_rate = measured.transition, measured.noise_rate
    return replace(found, transition=transition, noise_rate=noise_rate, again=again, measured=measured)


def own_sharpness(witness: Tensor, error: float) -> float:
    """At which the witness expects a share `error` of its answers to be wrong, whatever the labels say."""

    def doubt(sharpness: float) -> float:
        return 1 - float(weighted_product([witness], [sharpness]).amax(dim=1).double().mean())

    return sharpness_where(doubt, error)


def sharpness_where(doubt: Callable[[float], float], wanted: float) -> float:
    """Where `doubt`, which falls with the sharpness, is what is wanted: bisection on a logarithmic scale."""
    low, high = SHARPNESS
    for _ in range(BISECTIONS):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if doubt(middle) > wanted else (low, middle)
    return math.sqrt(low * high)


def posterior(witness: Tensor, given: Tensor, fixed: Tensor, n_passes: int = EM_PASSES) -> Posterior:
    """EM for T and the posterior. `fixed` samples have a certain label; given -1 means there is none.

    T is of the labels that may be wrong: certain ones say nothing about how the others go wrong.
    """
    n_classes = witness.shape[1]
    labelled = given >= 0
    in_question = labelled & ~fixed
    heard = in_question if bool(in_question.any()) else labelled
    blocks = torch.arange(len(given), device=given.device).split(max(1, BLOCK_ENTRIES // n_classes))
    counts = torch.zeros(n_classes, n_classes, dtype=torch.float64, device=given.device)
    start = torch.where(fixed, given, witness.argmax(dim=1))
    counts.index_put_((start[heard], given[heard]), counts.new_ones(()), accumulate=True)
    transition = transition_of(counts)
    probabilities = torch.empty_like(witness)
    for _ in range(n_passes):
        counts_by_given = torch.zeros_like(counts)
        likelihood = transition.T.to(witness.dtype).contiguous()
        for rows in blocks:
            found = _posterior_rows(witness[rows], given[rows], fixed[rows], likelihood)
            probabilities[rows] = found
            known = heard[rows]
            counts_by_given.index_add_(0, given[rows][known], found[known].to(counts.dtype))
        transition = transition_of(sceptical(counts_by_given.T))
    agree = probabilities.gather(1, given.clamp(min=0).unsqueeze(1)).squeeze(1)[labelled]
    noise_rate = 1 - float(agree.double().mean()) if len(agree) else 0.0
    return Posterior(probabilities, transition, noise_rate, witness, lambda other: posterior(witness, other, fixed))


def decide(probabilities: Tensor, labels: Tensor, given: Tensor, left_alone: Tensor, review_below: float) -> Decision:
    """What became of the labels: `labels` are the decided ones; `left_alone` samples keep theirs and are for review."""
    two = probabilities.topk(min(2, probabilities.shape[1]), dim=1)
    labels = torch.where(left_alone, given, labels)
    runner_up = torch.where(labels == two.indices[:, 0], two.indices[:, -1], two.indices[:, 0])
    confidence = probabilities.gather(1, labels.unsqueeze(1)).squeeze(1)
    status = torch.where(labels == given, KEPT, CORRECTED)
    status = torch.where((confidence < review_below) | left_alone, REVIEW, status)
    status = torch.where(given < 0, FILLED, status)
    of_given = probabilities.gather(1, given.clamp(min=0).unsqueeze(1)).squeeze(1).masked_fill(given < 0, 0.0)
    return Decision(labels, confidence, runner_up, status, of_given)


def _posterior_rows(witness: Tensor, given: Tensor, fixed: Tensor, likelihood: Tensor) -> Tensor:
    """`likelihood` is T transposed: one row per given label."""
    joint = likelihood[given.clamp(min=0)]
    joint[given < 0] = 1.0
    joint.mul_(witness)
    joint.div_(joint.sum(dim=1, keepdim=True).clamp_(min=torch.finfo(joint.dtype).tiny))
    joint[fixed] = torch.nn.functional.one_hot(given[fixed], witness.shape[1]).to(joint.dtype)
    return joint


def sceptical(counts: Tensor) -> Tensor:
    """Counts by (true, given) class with fewer errors, the fewer there are: with SCEPTICAL_BELOW wrong, half of them.

    Repeated, no noise rate below twice that lasts unless the witness insists.
    """
    off = counts - counts.diagonal().diag()
    noise = float(off.sum() / counts.sum().clamp(min=1))
    believed = off * (noise**2 / (noise**2 + SCEPTICAL_BELOW**2))
    return believed + (counts.sum(dim=1) - believed.sum(dim=1)).diag()


def transition_of(counts: Tensor) -> Tensor:
    """Rows of counts as probabilities, smoothed towards the common off-diagonal rate."""
    n_classes = len(counts)
    noise = 1 - float(counts.diagonal().sum() / counts.sum().clamp(min=1))
    common = counts.new_full((n_classes, n_classes), noise / max(n_classes - 1, 1))
    common.fill_diagonal_(1 - noise)
    smoothed = counts + PRIOR_ROWS * common + FLOOR
    return smoothed / smoothed.sum(dim=1, keepdim=True)
