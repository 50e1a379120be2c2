import subprocess
import sys

import pytest
import torch
from torch import nn

from labelmend.ensemble.stepper import MomentumSGD, set_rate, sgd


def test_the_optimiser_has_momentum_and_weight_decay():
    w = nn.Parameter(torch.tensor(2.0))
    optimizer = sgd([w], lr=0.1, momentum=0.5, weight_decay=0.25)
    for expected in (2.0 - 0.1 * 1.5, 1.85 - 0.1 * (0.5 * 1.5 + 1 + 0.25 * 1.85)):  # a gradient of 1, decay w / 4
        w.grad = torch.tensor(1.0)
        optimizer.step()
        assert w.item() == pytest.approx(expected)


@pytest.mark.parametrize("start", [0.1, torch.tensor(0.1)], ids=["number", "tensor"])
def test_the_learning_rate_can_be_set_where_it_is(start):
    w = nn.Parameter(torch.tensor(2.0))
    optimizer = torch.optim.SGD([w], lr=start)
    set_rate(optimizer, 0.5)
    w.grad = torch.tensor(1.0)
    optimizer.step()
    assert w.item() == pytest.approx(1.5)
    if isinstance(start, torch.Tensor):
        assert optimizer.param_groups[0]["lr"] is start, "a recorded step reads it there"


@pytest.mark.parametrize(("momentum", "weight_decay"), [(0.9, 5e-4), (0.0, 0.0), (0.5, 0.0), (0.0, 0.1)])
def test_ours_gives_the_very_numbers_of_torch(momentum, weight_decay):
    def weights():
        source = torch.Generator().manual_seed(0)
        return [nn.Parameter(torch.randn(shape, generator=source)) for shape in [(5, 3), (5,), (2,)]]

    ours, theirs = weights(), weights()
    own = MomentumSGD(ours, 0.1, momentum, weight_decay)
    other = torch.optim.SGD(theirs, lr=0.1, momentum=momentum, weight_decay=weight_decay)
    source = torch.Generator().manual_seed(1)
    for lr in (0.1, 0.1, 0.03):
        set_rate(own, lr)
        set_rate(other, lr)
        for mine, its in zip(ours[:2], theirs[:2], strict=True):  # the last has no gradient: it stays
            mine.grad = torch.randn(mine.shape, generator=source)
            its.grad = mine.grad.clone()
        own.step()
        other.step()
    for mine, its in zip(ours, theirs, strict=True):
        assert torch.equal(mine, its)


def test_gradients_are_taken_away():
    w = nn.Parameter(torch.tensor(2.0))
    w.grad = torch.tensor(1.0)
    MomentumSGD([w], 0.1, 0.9, 0.0).zero_grad()
    assert w.grad is None


def test_a_run_on_a_cpu_does_not_load_the_compiler():
    code = (
        "import sys, warnings; warnings.simplefilter('ignore'); import numpy as np, labelmend; "
        "X = np.repeat(np.eye(3), 20, axis=0) + np.random.default_rng(0).normal(0, .1, (60, 3)); "
        "labelmend.correct(X, np.repeat([0, 1, 2], 20), n_rounds=1); "
        "sys.exit('torch._dynamo' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=120).returncode == 0
