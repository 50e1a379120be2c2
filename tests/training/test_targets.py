"""What the corrected net learns from, by hand: a net that returns its input makes inputs logits."""

import math

import pytest
import torch
from torch import nn

from labelmend.training.targets import Targets, corrected_loss, soft_targets

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
    branches = [torch.tensor([[0.0, 1.0], [0.5, 0.5]]), torch.tensor([[0.5, 0.5], [0.5, 0.5]])]
    got = soft_targets(first, branches, torch.tensor([0.2, 1.0]))
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
