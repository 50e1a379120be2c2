"""Training passes of a round: warm-up, the corrected-label branch (9), the noisy-label branch (10), fine-tuning.

Unpacks the settings and calls `fit.py` and `losses.py` with plain numbers.
"""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from labelmend.config import Settings
from labelmend.ensemble import losses
from labelmend.ensemble.fit import balanced, embed, net_step, train_groups_pass, train_pass
from labelmend.ensemble.losses import Recipe, corrected_loss, semi_supervised_loss, sharpened, soft_targets, split_loss
from labelmend.ensemble.nets import FollowingNet
from labelmend.ensemble.state import Problem, RoundState
from labelmend.ensemble.stepper import Stepper, sgd, side_by_side
from labelmend.samples import Augment

RAMP = 0.08  # share of the rounds in which changed samples come to count fully in the semi-supervised step
FINE_TUNE_RATE = 0.1  # share of the learning rate: the net is trained already


def warm_up(state: RoundState, problem: Problem, settings: Settings) -> None:
    """Plain cross entropy on the given labels; ours, the paper starts from pretrained nets."""
    given = problem.given_labels

    def loss(net: nn.Module, indices: Tensor, x: Tensor) -> Tensor:
        logits = net(x)[1]
        value = F.cross_entropy(logits, given[indices])
        return value + settings.warmup_penalty * losses.confidence(logits) if settings.warmup_penalty else value

    step = net_step(state.noisy_net, state.noisy_optimizer, loss, state.generator)
    for _ in range(settings.warmup_passes):
        _pass(state.noisy_net, step, state, problem, settings, given)
    state.corrected_net.load_state_dict(state.noisy_net.state_dict())
    if settings.average_decay:
        state.average = FollowingNet(state.corrected_net, settings.average_decay)


def train_nets(
    state: RoundState, problem: Problem, settings: Settings, labels: Tensor, omega: Tensor, noisy_too: bool
) -> tuple[float, float | None]:
    """One pass of the corrected-label branch and, if asked for, one of the noisy branch; the mean losses."""
    state.targets.set(labels, omega)
    train = train_semi_supervised if settings.corrected_loss == "semi-supervised" else train_corrected
    jobs = [partial(train, state, problem, settings, labels, omega)]
    if noisy_too:
        jobs.append(partial(train_noisy, state, problem, settings))
    if {"corrected", "noisy"} <= state.steppers.keys():
        found = side_by_side(jobs, problem.samples.device)
    else:  # a GPU records the steps in their first pass, and while it does nothing else may run
        found = [job() for job in jobs]
    means = [float(value) for value in found]
    return means[0], means[1] if noisy_too else None


def train_corrected(state: RoundState, problem: Problem, settings: Settings, labels: Tensor, omega: Tensor) -> Tensor:
    """One pass of the net that is deployed: equation (9), or the ablation's soft labels, with or without mixup.

    With `consistency` it is also asked for its average's answer on strongly changed pictures (ours).
    """
    targets, recipe = state.targets, corrected_recipe(settings)
    if targets.soft is not None:
        targets.soft.copy_(soft_labels(state, problem, settings, labels, omega))

    def loss(net: nn.Module, indices: Tensor, x: Tensor, *strong: Tensor) -> Tensor:
        if settings.corrected_loss == "split":
            value = split_loss(net, x, indices, targets, problem.given_labels, recipe, state.generator)
        else:
            value = corrected_loss(
                net, x, indices, targets, settings.mixup, recipe.ce_factor, recipe.changed_factor, state.generator
            )
        for changed in strong:
            with torch.no_grad():
                teacher = state.deployed_net(x)[1]
            value = value + settings.consistency * losses.consistency(
                net(changed)[1], teacher, settings.consistency_threshold
            )
        return value

    after = None if state.average is None else state.average.follow
    step = state.stepper(
        "corrected", lambda: net_step(state.corrected_net, state.corrected_optimizer, loss, state.generator, after)
    )
    views: tuple[Augment, ...] = ("weak", "strong") if settings.consistency else ("weak",)
    return _pass(state.corrected_net, step, state, problem, settings, labels, views)


def soft_labels(state: RoundState, problem: Problem, settings: Settings, labels: Tensor, omega: Tensor) -> Tensor:
    """Decision 22: between the voted label, or the net's own answer, and the mean answer of the branches."""
    answers = state.targets.answers
    assert answers is not None
    voted = F.one_hot(labels.clamp(min=0), problem.n_classes).to(answers.dtype)
    first = embed(state.corrected_net, problem.samples)[1].softmax(dim=1) if settings.soft_source == "net" else voted
    found = sharpened(soft_targets(first, answers, omega), settings.soft_temperature)
    return torch.where(problem.trusted.unsqueeze(1), voted, found)


def corrected_recipe(settings: Settings) -> Recipe:
    return Recipe(
        settings.soft_ce_factor,
        settings.soft_mse_factor,
        settings.mixup_shape if settings.mixup else 0,
        settings.soft_temperature,
        settings.class_penalty,
    )


def train_semi_supervised(
    state: RoundState, problem: Problem, settings: Settings, labels: Tensor, omega: Tensor
) -> Tensor:
    """One pass of the deployed net over the kept samples, in every step beside as many changed ones, in two views."""
    given, targets, recipe = problem.given_labels, state.targets, corrected_recipe(settings)
    assert targets.ramp is not None
    targets.ramp.fill_(min(1.0, state.round_index / (RAMP * (settings.n_rounds))))

    def loss(net: nn.Module, indices: Tensor, *views: Tensor) -> Tensor:
        return semi_supervised_loss(net, views, indices, targets, given, recipe, state.generator)

    after = None if state.average is None else state.average.follow
    step = state.stepper(
        "corrected", lambda: net_step(state.corrected_net, state.corrected_optimizer, loss, state.generator, after)
    )
    groups = [torch.nonzero((labels >= 0) & ((labels == given) == kept)).squeeze(1) for kept in (True, False)]
    if settings.balanced:
        groups = [balanced(group, labels[group], state.generator) for group in groups]
    kept, changed = groups
    if len(kept) == 0:  # there is nothing to hold on to
        return torch.zeros((), device=given.device)
    groups = [kept, changed if len(changed) else kept]
    views: tuple[Augment, ...] = ("weak", "weak")
    return train_groups_pass(
        state.corrected_net, step, problem.samples, groups, settings.batch_size, state.generator, views
    )


def train_noisy(state: RoundState, problem: Problem, settings: Settings) -> Tensor:
    """Equation (10): the given labels, weighted by how much the vote agrees with them."""
    given, targets = problem.given_labels, state.targets

    def loss(net: nn.Module, indices: Tensor, x: Tensor) -> Tensor:
        weights = losses.noisy_weights(targets.omega[indices], given[indices], targets.labels[indices])
        return losses.weighted_cross_entropy(net(x)[1], given[indices], weights)

    step = state.stepper("noisy", lambda: net_step(state.noisy_net, state.noisy_optimizer, loss, state.generator))
    return _pass(state.noisy_net, step, state, problem, settings, given)


def fine_tune(state: RoundState, problem: Problem, settings: Settings) -> None:
    """The paper's hybrid setting: the deployed net learns from the trusted samples alone, gently, at the end."""
    given = problem.given_labels
    optimizer = sgd(
        state.deployed_net.parameters(), FINE_TUNE_RATE * settings.lr, settings.momentum, settings.weight_decay
    )

    def loss(net: nn.Module, indices: Tensor, x: Tensor) -> Tensor:
        return F.cross_entropy(net(x)[1], given[indices])

    certain = given.masked_fill(~problem.trusted, -1)
    step = net_step(state.deployed_net.requires_grad_(True), optimizer, loss, state.generator)
    for _ in range(settings.fine_tune_passes):
        _pass(state.deployed_net, step, state, problem, settings, certain)


def _pass(
    net: nn.Module,
    step: Stepper,
    state: RoundState,
    problem: Problem,
    settings: Settings,
    labels: Tensor,
    views: tuple[Augment, ...] = ("weak",),
) -> Tensor:
    """One pass over the samples that have one of `labels`."""
    indices = torch.nonzero(labels >= 0).squeeze(1)
    if settings.balanced:
        indices = balanced(indices, labels[indices], state.generator)
    return train_pass(net, step, problem.samples, indices, settings.batch_size, state.generator, views)
