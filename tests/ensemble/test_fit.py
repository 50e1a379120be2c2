from itertools import chain

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

from labelmend.ensemble import fit
from labelmend.ensemble.fit import branches_step, net_step, train_branches_pass, train_groups_pass, train_pass
from labelmend.ensemble.nets import MLP
from labelmend.samples import VectorSamples


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def make_net(seed=0, n_classes=2):
    torch.manual_seed(seed)
    return MLP(2, 4, n_classes)


def sgd(*nets, lr=0.1):
    return torch.optim.SGD([p for net in nets for p in net.parameters()], lr=lr)


def train(net, optimizer, samples, indices, batch_size, loss, source, views=("weak",), after=None):
    step = net_step(net, optimizer, loss, source, after)
    return train_pass(net, step, samples, indices, batch_size, source, views)


def train_branches(nets, optimizer, samples, subsets, batch_size, loss, source):
    step = branches_step(nets, optimizer, loss, source)
    return train_branches_pass(nets, step, samples, subsets, batch_size, source)


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


class Recorder:
    """A loss of zero that writes down which samples it was shown."""

    def __init__(self):
        self.batches = []

    def __call__(self, net, indices, x):
        assert net.training
        torch.testing.assert_close(x[:, 0], indices.float())
        self.batches.append(indices.tolist())
        return net(x)[1].sum() * 0.0


def test_one_step_by_hand():
    net, samples = Scale(2.0), VectorSamples(torch.tensor([[1.0], [3.0]]))
    loss = train(net, sgd(net), samples, torch.arange(2), 2, lambda net, _, x: net(x)[1].mean(), generator())
    assert loss == pytest.approx(4.0)  # the mean of 2 x, before the step
    assert net.w.item() == pytest.approx(2.0 - 0.1 * 2.0)  # the gradient is the mean of x


def test_gradients_do_not_add_up_over_the_steps():
    net, samples = Scale(2.0), VectorSamples(torch.ones(6, 1))
    train(net, sgd(net), samples, torch.arange(6), 2, lambda net, _, x: net(x)[1].mean(), generator())
    assert net.w.item() == pytest.approx(2.0 - 3 * 0.1)


@given(n=st.integers(2, 60), batch_size=st.integers(4, 20), seed=st.integers(0, 9))
def test_a_pass_shows_every_index_once_in_nearly_equal_batches(n, batch_size, seed):
    net, seen = make_net().eval(), Recorder()
    indices = torch.arange(0, 2 * n, 2)
    train(net, sgd(net), numbered(2 * n), indices, batch_size, seen, generator(seed))
    sizes = [len(batch) for batch in seen.batches]
    assert sorted(chain(*seen.batches)) == indices.tolist()
    assert max(sizes) - min(sizes) <= 1
    assert min(sizes) >= 2, "a batch of one sample has no batch statistics"
    assert max(sizes) <= 1.5 * batch_size


def test_the_loss_of_a_pass_is_the_mean_over_its_steps():
    net, seen = make_net(), []

    def mean_index(net, indices, x):
        seen.append(indices.double().mean().item())
        return net(x)[1].sum() * 0.0 + seen[-1]

    loss = train(net, sgd(net), numbered(5), torch.arange(5), 2, mean_index, generator())
    assert len(seen) == 2
    assert loss == pytest.approx(sum(seen) / 2)


class Shifted(VectorSamples):
    """Samples whose augmentation shows: a weak one adds 100, a strong one 200."""

    def batch(self, indices, augment, generator):
        assert generator is not None
        return super().batch(indices, augment, generator) + {"weak": 100, "strong": 200}[augment]


@pytest.mark.parametrize("views", [("weak",), ("strong",), ("weak", "strong", "weak")])
def test_every_view_shows_the_same_samples_changed_in_its_way(views):
    net, sizes = make_net(), []

    def loss(net, indices, *seen):
        sizes.append(len(indices))
        assert len(seen) == len(views)
        for augment, x in zip(views, seen, strict=True):
            torch.testing.assert_close(x[:, 0], indices + {"weak": 100.0, "strong": 200.0}[augment])
        return net(seen[0])[1].sum()

    train(net, sgd(net, lr=0.0), Shifted(numbered(10).rows), torch.arange(10), 3, loss, generator(), views=views)
    assert sizes == [4, 3, 3]


def test_samples_are_changed_weakly_unless_asked_otherwise():
    net, seen = make_net(), []

    def loss(net, indices, x):
        seen.extend((x[:, 0] - indices).tolist())
        return net(x)[1].sum()

    train(net, sgd(net), Shifted(numbered(4).rows), torch.arange(4), 2, loss, generator())
    assert seen == [100.0] * 4


def test_something_can_be_done_after_every_step():
    net, samples, seen = Scale(2.0), VectorSamples(torch.ones(6, 1)), []
    train(
        net,
        sgd(net),
        samples,
        torch.arange(6),
        2,
        lambda net, _, x: net(x)[1].mean(),
        generator(),
        after=lambda: seen.append(net.w.item()),
    )
    assert seen == pytest.approx([1.9, 1.8, 1.7])


@pytest.mark.parametrize("block", [1, 7, 10**6])
def test_how_many_samples_are_read_at_once_does_not_matter(monkeypatch, block):
    def passes():
        net, branches = make_net(), [make_net(1), make_net(2)]
        order = Recorder()
        train(net, sgd(net), numbered(30), torch.arange(30), 4, order, generator(1))
        steps, _ = run_branches(branches, [list(range(12)), [20, 21, 22]], batch_size=8, lr=0.1)
        return order.batches, [indices.tolist() for _, _, indices in steps], branches[1].head.weight

    expected = passes()
    monkeypatch.setattr(fit, "BLOCK", block)
    got = passes()
    assert got[:2] == expected[:2]
    assert torch.equal(got[2], expected[2])


def test_a_block_is_read_in_one_piece(monkeypatch):
    monkeypatch.setattr(fit, "BLOCK", 12)
    net, reads = make_net(), []

    class Counted(VectorSamples):
        def batch(self, indices, augment, generator):
            reads.append(len(indices))
            return super().batch(indices, augment, generator)

    train(net, sgd(net), Counted(numbered(32).rows), torch.arange(32), 4, Recorder(), generator())
    assert reads == [12, 12, 8]


def test_a_pass_over_nothing_changes_nothing():
    net = make_net()
    before = [p.clone() for p in net.parameters()]
    assert train(net, sgd(net), numbered(3), torch.arange(0), 2, Recorder(), generator()) == 0.0
    for old, new in zip(before, net.parameters(), strict=True):
        torch.testing.assert_close(old, new, rtol=0, atol=0)


def test_the_generator_decides_the_order():
    orders = []
    for seed in (1, 1, 2):
        net, seen = make_net(), Recorder()
        train(net, sgd(net), numbered(20), torch.arange(20), 5, seen, generator(seed))
        orders.append(seen.batches)
    assert orders[0] == orders[1] != orders[2]


def test_training_learns_separable_classes():
    labels = torch.arange(40) % 2
    samples, net = VectorSamples(F.one_hot(labels, 2).float()), make_net()
    optimizer = sgd(net, lr=0.5)

    def loss(net, indices, x):
        return F.cross_entropy(net(x)[1], labels[indices])

    history = [train(net, optimizer, samples, torch.arange(40), 8, loss, generator(i)) for i in range(20)]
    assert history[-1] < 0.1 < history[0]


def run_branches(nets, subsets, batch_size, lr=0.0, seed=0, n=30):
    """Train branches with a loss that records (features, logits, indices) of every step."""
    steps = []

    def loss(features, logits, indices):
        steps.append((features.detach(), logits.detach(), indices))
        return logits.square().mean()

    value = train_branches(
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
    value = train_branches(
        nets, sgd(*nets), samples, subsets, 4, lambda f, z, i: z[:2].mean() * z[2:].mean(), generator()
    )
    assert value == pytest.approx(10.0)
    assert [net.w.item() for net in nets] == pytest.approx([2.0 - 0.5, 5.0 - 0.2])


def test_branches_see_samples_changed_weakly():
    net, seen = make_net(), []

    class Watched(VectorSamples):
        def batch(self, indices, augment, generator):
            seen.append(augment)
            return super().batch(indices, augment, generator)

    samples = Watched(numbered(4).rows)
    train_branches([net], sgd(net), samples, [torch.arange(4)], 2, lambda f, z, i: z.mean(), generator())
    assert set(seen) == {"weak"}


def test_branches_learn_in_training_mode():
    nets = [make_net(0).eval(), make_net(1).eval()]
    run_branches(nets, [[0, 1], [2, 3]], batch_size=4)
    assert all(net.training for net in nets)


def test_a_step_serves_many_passes_and_each_has_its_own_mean():
    net, samples, source = Scale(2.0), VectorSamples(torch.ones(4, 1)), generator()
    step = net_step(net, sgd(net), lambda net, _, x: net(x)[1].mean(), source)
    means = [train_pass(net, step, samples, torch.arange(4), 2, source) for _ in range(2)]
    assert means == pytest.approx([1.95, 1.75])  # 2.0 and 1.9, then 1.8 and 1.7


def run_groups(groups, batch_size, views=("weak",), n=30):
    """One pass over groups with a loss that records the indices and the number of views of every step."""
    net, source, steps = make_net(), generator(), []

    def loss(net, indices, *seen):
        steps.append((indices, len(seen)))
        return net(seen[0])[1].square().mean()

    step = net_step(net, sgd(net), loss, source)
    train_groups_pass(net, step, numbered(n), [torch.as_tensor(g) for g in groups], batch_size, source, views)
    return steps


def test_every_step_has_an_equal_share_of_every_group_and_the_first_is_seen_once():
    steps = run_groups([list(range(12)), [20, 21, 22]], 8, ("weak", "weak"))
    assert [n_views for _, n_views in steps] == [2, 2, 2]
    first, second = (torch.cat([indices[part] for indices, _ in steps]) for part in (slice(4), slice(4, 8)))
    assert sorted(first.tolist()) == list(range(12))
    assert [sorted(second[turn : turn + 3].tolist()) for turn in range(0, 12, 3)] == [[20, 21, 22]] * 4


def test_of_a_larger_second_group_only_some_are_seen_and_a_tiny_first_group_comes_again():
    steps = run_groups([[0, 1, 2, 3, 4], list(range(5, 30))], 4)
    assert len(steps) == 2  # the fifth waits for the next pass: all steps are alike
    assert len(set(torch.cat([indices[2:] for indices, _ in steps]).tolist())) == 4
    ((indices, _),) = run_groups([[7], [8, 9]], 8)
    assert indices[:4].tolist() == [7] * 4
