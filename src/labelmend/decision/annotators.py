"""Several people's labels: how good each annotator is, their consensus, and both against what is known of a sample.

posterior(c | x, labels) ~ p(c | x) * product over the labels l_a of x of T_a[c, l_a], T_a[c, l] = P(a gives l | c).

With one annotator this is `posterior.posterior`. T is estimated by EM (Dawid and Skene 1979) with p in the
place of their class frequencies; without one it is theirs, and gives the consensus the rounds begin with. Most
people give few labels, so T_a is held in two steps (ours): the common confusion of all, bent to the accuracy of this
annotator, is mixed into the counts of each row, and the accuracy itself is held by the common one.

Knows class probabilities and labels by number; does not know names, nets or graphs.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from labelmend.decision.posterior import BLOCK_ENTRIES, EM_PASSES, FLOOR, Posterior, transition_of
from labelmend.ensemble.state import Opinions

QUALITY_PRIOR = 10.0  # labels' worth of the common accuracy in the accuracy of everyone
CONFUSION_PRIOR = 30.0  # labels' worth of the common confusion, bent to that accuracy, in every row of T_a


@dataclass(frozen=True)
class AnnotatedPosterior(Posterior):
    confusion: Tensor = field(kw_only=True)  # (annotators, C, C) P(given | true) of each


def annotated_posterior(
    predicted: Tensor, opinions: Opinions, given: Tensor, fixed: Tensor, n_passes: int = EM_PASSES
) -> AnnotatedPosterior:
    """EM for every T_a and the posterior. `fixed` samples have the certain label `given`.

    It begins with p alone, as `posterior.posterior` does: begun with the labels, EM stays with them.
    """
    best = torch.nn.functional.one_hot(predicted.argmax(dim=1), predicted.shape[1])
    probabilities = _fix(best.to(predicted.dtype), given, fixed)
    for _ in range(n_passes):
        confusion = confusions(probabilities, opinions)
        probabilities = _fix(weigh(predicted, confusion, opinions), given, fixed)
    return _finish(probabilities, confusions(probabilities, opinions), opinions)


def consensus(opinions: Opinions, n_classes: int, given: Tensor, fixed: Tensor) -> Tensor:
    """(n, C) class probabilities by the annotators' labels alone; rows of zeros where there is none.

    p of everyone is how frequent the classes are, learned on the way.
    """
    n = len(given)
    votes = torch.zeros(n, n_classes, dtype=torch.float64, device=given.device)
    votes.index_put_((opinions.sample, opinions.label), votes.new_ones(()), accumulate=True)
    total = votes.sum(dim=1, keepdim=True)
    labelled = (total.squeeze(1) > 0) | fixed
    probabilities = _fix(votes / total.clamp(min=1), given, fixed)
    for _ in range(EM_PASSES):
        frequency = probabilities[labelled].mean(dim=0, keepdim=True).expand(n, n_classes)
        probabilities = _fix(weigh(frequency, confusions(probabilities, opinions), opinions), given, fixed)
    probabilities[~labelled] = 0.0
    return probabilities


def confusions(probabilities: Tensor, opinions: Opinions) -> Tensor:
    """T_a of everyone from the class probabilities of the samples."""
    n_classes = probabilities.shape[1]
    cell = opinions.annotator * n_classes + opinions.label
    counts = torch.zeros(opinions.n_annotators * n_classes, n_classes, dtype=torch.float64, device=probabilities.device)
    for part in _blocks(opinions, n_classes):
        counts.index_add_(0, cell[part], probabilities[opinions.sample[part]].to(counts.dtype))
    counts = counts.view(opinions.n_annotators, n_classes, n_classes).transpose(1, 2)  # (annotator, true, given)
    common = transition_of(counts.sum(dim=0))
    return shrunk(counts, common)


def shrunk(counts: Tensor, common: Tensor) -> Tensor:
    """Rows of everyone's counts as probabilities, held by the common confusion bent to the accuracy of each."""
    labels = counts.sum(dim=(1, 2))
    wrong = labels - counts.diagonal(dim1=1, dim2=2).sum(dim=1)
    # what the common confusion would get wrong among the classes that this annotator saw
    expected = (counts.sum(dim=2) * (1 - common.diagonal())).sum(dim=1)
    usual = (expected + FLOOR) / (labels + FLOOR)
    rate = (wrong + QUALITY_PRIOR * usual) / (labels + QUALITY_PRIOR)
    factor = _odds(rate) / _odds(usual)
    off = common - common.diagonal().diag()
    mass = off.sum(dim=1)
    bent = factor[:, None] * mass / (1 - mass + factor[:, None] * mass)  # error rate of each class, of each annotator
    prior = off[None] * (bent / mass.clamp(min=FLOOR))[:, :, None]
    prior = prior + torch.diag_embed(1 - prior.sum(dim=2))
    mixed = counts + CONFUSION_PRIOR * prior + FLOOR
    return mixed / mixed.sum(dim=2, keepdim=True)


def _odds(rate: Tensor) -> Tensor:
    rate = rate.clamp(FLOOR, 1 - FLOOR)
    return rate / (1 - rate)


def weigh(predicted: Tensor, confusion: Tensor, opinions: Opinions) -> Tensor:
    """posterior(c | x, labels) for known T_a; without a label it is p."""
    n_classes = predicted.shape[1]
    gain = confusion.log().transpose(1, 2).reshape(-1, n_classes).to(predicted.dtype)  # a row per annotator and label
    logs = predicted.clamp(min=FLOOR).log()
    cell = opinions.annotator * n_classes + opinions.label
    for part in _blocks(opinions, n_classes):
        logs.index_add_(0, opinions.sample[part], gain[cell[part]])
    return logs.softmax(dim=1)


def _blocks(opinions: Opinions, n_classes: int) -> list[slice]:
    step = max(1, BLOCK_ENTRIES // n_classes)
    return [slice(begin, begin + step) for begin in range(0, len(opinions.sample), step)]


def _fix(probabilities: Tensor, given: Tensor, fixed: Tensor) -> Tensor:
    probabilities[fixed] = torch.nn.functional.one_hot(given[fixed], probabilities.shape[1]).to(probabilities.dtype)
    return probabilities


def _finish(probabilities: Tensor, confusion: Tensor, opinions: Opinions) -> AnnotatedPosterior:
    """Noise rate and transition are those of the labels in use."""
    labelled = opinions.in_use >= 0
    given, true = opinions.in_use[labelled], probabilities[labelled].double()
    n_classes = probabilities.shape[1]
    counts = torch.zeros(n_classes, n_classes, dtype=torch.float64, device=probabilities.device)
    counts.index_add_(0, given, true)
    right = true.gather(1, given.unsqueeze(1))
    noise_rate = 1 - float(right.mean()) if len(given) else 0.0
    return AnnotatedPosterior(probabilities, transition_of(counts.T), noise_rate, confusion=confusion)
