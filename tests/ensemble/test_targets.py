"""What the corrected net learns from, by hand: a net that returns its input makes inputs logits."""

import dataclasses
import math

import numpy as np
import pytest
import scipy.stats
import torch
from torch import nn

import reference
from labelmend.ensemble import losses as targets_module
from labelmend.ensemble.losses import (
    Recipe,
    Targets,
    corrected_loss,
    mixing_share,
    semi_supervised_loss,
    sharpened,
    soft_targets,
    split_loss,
)

LOG3 = math.log(3)
# Probabilities of class 0: 1/4, 3/4, 1/2.
LOGITS = torch.tensor([[0, LOG3], [LOG3, 0], [0, 0]])


class AsIs(nn.Module):
    def forward(self, x):
        return x, x


def loss_of(targets, indices, mixup=False, seed=0, ce=1.0, mse=1.0):
    generator = torch.Generator().manual_seed(seed)
    indices = torch.tensor(indices)
    return corrected_loss(AsIs(), LOGITS[indices], indices, targets, mixup, ce, mse, generator).item()


def hard(labels=(0, 0, 1), omega=(1.0, 0.5, 0.25)):
    return Targets(torch.tensor(labels), torch.tensor(omega), 2)


def soft():
    return Targets(torch.tensor([0, 0, 0]), torch.zeros(3), 2, torch.tensor([[0.5, 0.5], [1, 0], [0.25, 0.75]]))


def fix_share(monkeypatch, share):
    monkeypatch.setattr(torch, "rand", lambda *_, **__: torch.tensor(share))


def test_new_labels_are_written_where_the_old_ones_were():
    targets = hard()
    places = targets.labels.data_ptr(), targets.omega.data_ptr()
    labels, omega = torch.tensor([1, 1, 0]), torch.tensor([0.5, 0.0, 1.0])
    targets.set(labels, omega)
    assert (targets.labels.data_ptr(), targets.omega.data_ptr()) == places
    assert torch.equal(targets.labels, labels)
    assert torch.equal(targets.omega, omega)
    labels.zero_()
    assert targets.labels.tolist() == [1, 1, 0], "a copy, not the same tensor"


def test_soft_targets_by_hand():
    first = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    second = torch.tensor([[0.25, 0.75], [0.5, 0.5]])
    got = soft_targets(first, second, torch.tensor([0.2, 1.0]))
    torch.testing.assert_close(got, torch.tensor([[0.2 + 0.8 * 0.25, 0.8 * 0.75], [1.0, 0.0]]))


def test_hard_labels_by_hand():
    # The batch is samples 2 and 0: 0.25 log 2 and 1 log 4.
    assert loss_of(hard(), [2, 0]) == pytest.approx((0.25 * math.log(2) + math.log(4)) / 2)


def test_soft_labels_by_hand():
    # Sample 0: p = (1/4, 3/4) for (1/2, 1/2); sample 1: p = (3/4, 1/4) for (1, 0). Both miss by 1/4.
    ce = ((math.log(4) + math.log(4 / 3)) / 2 + math.log(4 / 3)) / 2
    assert loss_of(soft(), [0, 1], ce=2.0, mse=8.0) == pytest.approx(2 * ce + 8 / 16)


def mixed_logits(share):
    """Sample 2 mixed with 0, and 0 with 2: each with its neighbour in a batch of two."""
    return [share * LOGITS[a] + (1 - share) * LOGITS[b] for a, b in ((2, 0), (0, 2))]


def test_mixup_of_hard_labels_mixes_pictures_labels_and_weights(monkeypatch):
    fix_share(monkeypatch, 0.75)
    logs = [logits.log_softmax(dim=0) for logits in mixed_logits(0.75)]
    # Labels 1 and 0; weights 1/4 and 1.
    first = -(0.75 * logs[0][1] + 0.25 * logs[0][0]) * (0.75 * 0.25 + 0.25 * 1)
    second = -(0.75 * logs[1][0] + 0.25 * logs[1][1]) * (0.75 * 1 + 0.25 * 0.25)
    assert loss_of(hard(), [2, 0], mixup=True) == pytest.approx(((first + second) / 2).item())


def test_mixup_of_soft_labels_mixes_them_too(monkeypatch):
    fix_share(monkeypatch, 0.75)
    # Targets (1/4, 3/4) and (1/2, 1/2).
    goals = [torch.tensor([0.3125, 0.6875]), torch.tensor([0.4375, 0.5625])]
    pairs = list(zip(mixed_logits(0.75), goals, strict=True))
    ce = sum(-(goal * logits.log_softmax(dim=0)).sum() for logits, goal in pairs) / 2
    mse = sum((goal - logits.softmax(dim=0)).square().mean() for logits, goal in pairs) / 2
    assert loss_of(soft(), [2, 0], mixup=True, ce=2.0, mse=8.0) == pytest.approx((2 * ce + 8 * mse).item())


def test_mixing_with_a_share_of_one_changes_nothing(monkeypatch):
    fix_share(monkeypatch, 1.0)
    for targets in (hard(), soft()):
        assert loss_of(targets, [1, 2, 0], mixup=True) == pytest.approx(loss_of(targets, [1, 2, 0]))


def test_the_generator_decides_the_share():
    first, again, other = (loss_of(hard(), [2, 0, 1], mixup=True, seed=seed) for seed in (1, 1, 2))
    assert first == again != other


# By groups


@pytest.mark.parametrize("mixup", [False, True])
@pytest.mark.parametrize("is_soft", [False, True])
def test_the_loss_by_groups_mixes_with_the_larger_share_and_leaves_a_sample_in_its_group(monkeypatch, mixup, is_soft):
    fix_share(monkeypatch, 0.25)
    given, labels = torch.tensor([0, 1, 1]), torch.tensor([0, 0, 1])  # the second was changed
    q = torch.tensor([[0.5, 0.5], [0.9, 0.1], [0.25, 0.75]])
    targets = Targets(labels, torch.tensor([0.1, 0.5, 0.9]), 2, q if is_soft else None)
    order = [2, 0, 1]
    x, goal = LOGITS[order].numpy(), (q if is_soft else torch.eye(2)[labels])[order].numpy()
    share = 0.75 if mixup else 1.0
    x, goal = (share * a + (1 - share) * np.roll(a, 1, axis=0) for a in (x, goal))
    expected = reference.L_split(reference.softmax(x), goal, [True, True, False], 2.0, 8.0, is_soft)
    indices, recipe = torch.tensor(order), Recipe(2.0, 8.0, int(mixup))
    got = split_loss(AsIs(), LOGITS[indices], indices, targets, given, recipe, torch.Generator())
    assert got.item() == pytest.approx(expected, rel=1e-5)


def test_the_penalty_comes_on_top():
    indices, given = torch.arange(3), torch.tensor([0, 1, 1])
    with_it, without = (
        split_loss(AsIs(), LOGITS, indices, hard(), given, Recipe(class_penalty=penalty), torch.Generator())
        for penalty in (2.0, 0.0)
    )
    imbalance = reference.class_imbalance(reference.softmax(LOGITS.numpy()))
    assert (with_it - without).item() == pytest.approx(2 * imbalance, abs=1e-5)


@pytest.mark.parametrize("mixup", [False, True])
@pytest.mark.parametrize("ramp", [0.0, 0.5])
def test_the_semi_supervised_step_is_that_of_the_reference(monkeypatch, mixup, ramp):
    rng = np.random.default_rng(0)
    n, C = 6, 3
    weights = rng.normal(size=(C, C))
    views = [rng.normal(size=(n, C)) for _ in range(2)]
    given, labels, omega = rng.integers(0, C, n), rng.integers(0, C, n), rng.random(n)
    p_e = reference.softmax(rng.normal(size=(20, C)))
    indices = rng.permutation(20)[:n]
    every = {"given": np.zeros(20, int), "labels": np.zeros(20, int), "omega": np.zeros(20)}
    for name, values in (("given", given), ("labels", labels), ("omega", omega)):
        every[name][indices] = values
    targets = Targets(
        torch.from_numpy(every["labels"]), torch.from_numpy(every["omega"]), C, None, torch.from_numpy(p_e)
    )
    targets = dataclasses.replace(targets, ramp=torch.tensor(ramp, dtype=torch.float64))
    keys = rng.random(2 * n)
    monkeypatch.setattr(targets_module, "mixing_share", lambda shape, generator: torch.tensor(0.3))
    monkeypatch.setattr(torch, "rand", lambda *_, **__: torch.from_numpy(keys))
    net = nn.Linear(C, C, bias=False, dtype=torch.float64)
    net.weight.data = torch.from_numpy(weights)

    class WithFeatures(nn.Module):
        def forward(self, x):
            return x, net(x)

    got = semi_supervised_loss(
        WithFeatures(),
        tuple(torch.from_numpy(view) for view in views),
        torch.from_numpy(indices),
        targets,
        torch.from_numpy(every["given"]),
        Recipe(1.0, 25.0, 4 if mixup else 0, 0.5, 1.0),
        torch.Generator(),
    )
    expected = reference.L_semi_supervised(
        lambda x: x @ weights.T,
        views,
        given,
        [True] * 3 + [False] * 3,
        omega,
        p_e[indices],
        T=0.5,
        share=0.3 if mixup else 1.0,
        partner=keys.argsort(),
        factor=25.0 * ramp,
        penalty=1.0,
    )
    assert got.item() == pytest.approx(expected, rel=1e-6)


def test_nothing_is_learned_from_how_soft_labels_were_made():
    x = torch.randn(4, 2, generator=torch.Generator().manual_seed(0)).requires_grad_()
    targets = Targets(torch.zeros(4, dtype=torch.int64), torch.ones(4) / 2, 2, None, torch.full((4, 2), 0.5))
    targets = dataclasses.replace(targets, ramp=torch.ones(()))
    given, generator = torch.zeros(4, dtype=torch.int64), torch.Generator()
    semi_supervised_loss(AsIs(), (x,), torch.arange(4), targets, given, Recipe(), generator).backward()
    p = x.detach().softmax(dim=1)
    goal = soft_targets(
        torch.cat([torch.eye(2)[[0, 0]], p[2:]]), torch.cat([p[:2], targets.answers[2:]]), targets.omega
    )
    expected = x.detach().requires_grad_()
    targets_module.split_mse(expected, goal, torch.arange(4) < 2, 1.0, 1.0).backward()
    torch.testing.assert_close(x.grad, expected.grad)


def test_sharpened_by_hand():
    got = sharpened(torch.tensor([[0.25, 0.75], [1.0, 0.0]]), 0.5)
    torch.testing.assert_close(got, torch.tensor([[0.1, 0.9], [1.0, 0.0]]))


@pytest.mark.parametrize("shape", [1, 4])
def test_shares_are_draws_from_beta(shape):
    generator = torch.Generator().manual_seed(0)
    draws = np.array([mixing_share(shape, generator).item() for _ in range(2000)])
    assert scipy.stats.kstest(draws, scipy.stats.beta(shape, shape).cdf).pvalue > 0.01
