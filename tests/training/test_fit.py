from itertools import chain

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

from labelmend.data.samples import VectorSamples
from labelmend.nets.mlp import MLP
from labelmend.training.fit import train_branches_pass, train_pass


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def make_net(seed=0, n_classes=2):
    torch.manual_seed(seed)
    return MLP(2, 4, n_classes)


def sgd(*nets, lr=0.1):
    return torch.optim.SGD([p for net in nets for p in net.parameters()], lr=lr)


def numbered(n):
    """Samples whose first column is their own index."""
    return VectorSamples(torch.stack([torch.arange(n), torch.ones(n)], dim=1).float())


class Scale(nn.Module):
    """y = w x, the smallest net: features and logits are the same."""

    def __init__(self, w):
        super().__init__()
        self.w = nn.Parameter(torch.tensor(w))

    def forward(self, x):
        return self.w * x, self.w * x


class NeverEmpty(Scale):
    """A net that, like batch normalisation, cannot take an empty batch."""

    def forward(self, x):
        assert len(x) > 0
        return super().forward(x)


class Recorder:
    """A loss of zero that writes down which samples it was shown."""

    def __init__(self):
        self.batches = []

    def __call__(self, net, x, indices):
        assert net.training
        torch.testing.assert_close(x[:, 0], indices.float())
        self.batches.append(indices.tolist())
        return net(x)[1].sum() * 0.0


def test_one_step_by_hand():
    net, samples = Scale(2.0), VectorSamples(torch.tensor([[1.0], [3.0]]))
    loss = train_pass(net, sgd(net), samples, torch.arange(2), 2, lambda net, x, _: net(x)[1].mean(), generator())
    assert loss == pytest.approx(4.0)  # the mean of 2 x, before the step
    assert net.w.item() == pytest.approx(2.0 - 0.1 * 2.0)  # the gradient is the mean of x


def test_gradients_do_not_add_up_over_the_steps():
    net, samples = Scale(2.0), VectorSamples(torch.ones(6, 1))
    train_pass(net, sgd(net), samples, torch.arange(6), 2, lambda net, x, _: net(x)[1].mean(), generator())
    assert net.w.item() == pytest.approx(2.0 - 3 * 0.1)


@given(n=st.integers(2, 60), batch_size=st.integers(4, 20), seed=st.integers(0, 9))
def test_a_pass_shows_every_index_once_in_nearly_equal_batches(n, batch_size, seed):
    net, seen = make_net().eval(), Recorder()
    indices = torch.arange(0, 2 * n, 2)
    train_pass(net, sgd(net), numbered(2 * n), indices, batch_size, seen, generator(seed))
    sizes = [len(batch) for batch in seen.batches]
    assert sorted(chain(*seen.batches)) == indices.tolist()
    assert max(sizes) - min(sizes) <= 1
    assert min(sizes) >= 2, "a batch of one sample has no batch statistics"
    assert max(sizes) <= 1.5 * batch_size


def test_the_loss_of_a_pass_is_the_mean_over_samples_not_over_batches():
    net = make_net()

    def mean_index(net, x, indices):
        return net(x)[1].sum() * 0.0 + indices.double().mean()

    loss = train_pass(net, sgd(net), numbered(5), torch.arange(5), 2, mean_index, generator())
    assert loss == pytest.approx(2.0)


def test_a_pass_over_nothing_changes_nothing():
    net = make_net()
    before = [p.clone() for p in net.parameters()]
    assert train_pass(net, sgd(net), numbered(3), torch.arange(0), 2, Recorder(), generator()) == 0.0
    for old, new in zip(before, net.parameters(), strict=True):
        torch.testing.assert_close(old, new, rtol=0, atol=0)


def test_the_generator_decides_the_order():
    orders = []
    for seed in (1, 1, 2):
        net, seen = make_net(), Recorder()
        train_pass(net, sgd(net), numbered(20), torch.arange(20), 5, seen, generator(seed))
        orders.append(seen.batches)
    assert orders[0] == orders[1] != orders[2]


def test_training_learns_separable_classes():
    labels = torch.arange(40) % 2
    samples, net = VectorSamples(F.one_hot(labels, 2).float()), make_net()
    optimizer = sgd(net, lr=0.5)

    def loss(net, x, indices):
        return F.cross_entropy(net(x)[1], labels[indices])

    history = [train_pass(net, optimizer, samples, torch.arange(40), 8, loss, generator(i)) for i in range(20)]
    assert history[-1] < 0.1 < history[0]


def run_branches(nets, subsets, batch_size, lr=0.0, seed=0, n=30):
    """Train branches with a loss that records (features, logits, indices) of every step."""
    steps = []

    def loss(features, logits, indices):
        steps.append((features.detach(), logits.detach(), indices))
        return logits.square().mean()

    value = train_branches_pass(
        nets, sgd(*nets, lr=lr), numbered(n), [torch.as_tensor(s) for s in subsets], batch_size, loss, generator(seed)
    )
    return steps, value


def test_every_step_sends_an_equal_batch_of_every_subset_through_its_own_branch():
    nets = [make_net(seed) for seed in range(3)]
    subsets = [range(0, 10), range(10, 20), range(20, 30)]
    steps, _ = run_branches(nets, [list(s) for s in subsets], batch_size=15)
    assert len(steps) == 2
    for features, logits, indices in steps:
        for net, subset, f, z, part in zip(
            nets, subsets, features.split(5), logits.split(5), indices.split(5), strict=True
        ):
            assert set(part.tolist()) <= set(subset)
            expected = net(numbered(30).rows[part])
            torch.testing.assert_close(f, expected[0])
            torch.testing.assert_close(z, expected[1])
    assert sorted(torch.cat([indices for _, _, indices in steps]).tolist()) == list(range(30))


def test_a_shorter_subset_starts_again_after_a_full_turn():
    steps, _ = run_branches([make_net(0), make_net(1)], [list(range(12)), [20, 21, 22]], batch_size=8)
    long = torch.cat([indices[:4] for _, _, indices in steps]).tolist()
    short = torch.cat([indices[4:] for _, _, indices in steps]).tolist()
    assert sorted(long) == list(range(12))
    assert [sorted(short[turn : turn + 3]) for turn in range(0, 12, 3)] == [[20, 21, 22]] * 4


def test_an_empty_subset_leaves_its_branch_untouched_and_trains_the_others():
    nets = [NeverEmpty(2.0), NeverEmpty(2.0)]
    steps, _ = run_branches(nets, [list(range(6)), torch.arange(0)], batch_size=8, lr=0.1)
    assert all(set(indices.tolist()) <= set(range(6)) for _, _, indices in steps)
    assert nets[0].w.item() != 2.0
    assert nets[1].w.item() == 2.0


def test_without_any_sample_branches_do_not_step():
    steps, value = run_branches([make_net()], [torch.arange(0)], batch_size=8)
    assert steps == []
    assert value == 0.0


def test_the_loss_of_the_branches_is_the_mean_over_steps():
    steps, value = run_branches([make_net(0), make_net(1)], [list(range(12)), list(range(12, 18))], batch_size=8)
    assert len(steps) == 3
    assert value == pytest.approx(sum(logits.square().mean().item() for _, logits, _ in steps) / 3)


def test_a_small_batch_still_holds_two_samples_of_every_subset():
    steps, _ = run_branches([make_net(seed) for seed in range(4)], [[0, 1], [2, 3], [4, 5], [6, 7]], batch_size=4)
    assert [len(indices) for _, _, indices in steps] == [8]


def test_branches_are_coupled_by_a_loss_over_pairs():
    # The loss is the product of the two outputs: the step of each weight is the other's output.
    nets, samples = [Scale(2.0), Scale(5.0)], VectorSamples(torch.ones(4, 1))
    subsets = [torch.tensor([0, 1]), torch.tensor([2, 3])]
    value = train_branches_pass(
        nets, sgd(*nets), samples, subsets, 4, lambda f, z, i: z[:2].mean() * z[2:].mean(), generator()
    )
    assert value == pytest.approx(10.0)
    assert [net.w.item() for net in nets] == pytest.approx([2.0 - 0.5, 5.0 - 0.2])


def test_branches_learn_in_training_mode():
    nets = [make_net(0).eval(), make_net(1).eval()]
    run_branches(nets, [[0, 1], [2, 3]], batch_size=4)
    assert all(net.training for net in nets)
