import pytest
import torch
from torch import nn

from labelmend.ensemble import nets as module
from labelmend.ensemble.nets import interpolate, refresh_batch_norm
from labelmend.samples import VectorSamples


def make_net(seed):
    """A net with batch normalisation whose running statistics and step counter have moved."""
    torch.manual_seed(seed)
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 2))
    for _ in range(seed + 1):
        net(torch.randn(8, 3))
    return net.eval()


def samples(n, seed=0):
    return VectorSamples(5 + 3 * torch.randn(n, 3, generator=torch.Generator().manual_seed(seed)))


def generator():
    return torch.Generator().manual_seed(0)


def copied(net):
    return {name: value.clone() for name, value in net.state_dict().items()}


def test_a_quarter_of_the_way_by_hand():
    target, first, second = (nn.Linear(1, 1) for _ in range(3))
    for net, value in ((first, 2.0), (second, 6.0)):
        nn.init.constant_(net.weight, value)
        nn.init.constant_(net.bias, -value)
    interpolate(target, first, second, 0.25)
    assert target.weight.item() == pytest.approx(3.0)
    assert target.bias.item() == pytest.approx(-3.0)


@pytest.mark.parametrize(("share", "seed"), [(0.0, 1), (1.0, 2)])
def test_the_ends_are_the_two_nets(share, seed):
    target, first, second = make_net(0), make_net(1), make_net(2)
    interpolate(target, first, second, share)
    x = samples(5).rows
    torch.testing.assert_close(target(x), make_net(seed)(x), rtol=0, atol=1e-5)


def test_float_buffers_are_interpolated_and_integer_buffers_copied_from_the_first():
    target, first, second = make_net(0), make_net(1), make_net(2)
    interpolate(target, first, second, 0.5)
    middle = (first[1].running_mean + second[1].running_mean) / 2
    torch.testing.assert_close(target[1].running_mean, middle)
    assert target[1].num_batches_tracked == first[1].num_batches_tracked == 2


def test_the_two_nets_stay_as_they_are():
    first, second = make_net(1), make_net(2)
    before = copied(first), copied(second)
    target = make_net(0)
    interpolate(target, first, second, 0.3)
    with torch.no_grad():
        target[0].weight.zero_()
    for net, old in zip((first, second), before, strict=True):
        torch.testing.assert_close(net.state_dict(), old, rtol=0, atol=0)


def test_interpolated_weights_can_still_be_trained():
    target = make_net(0)
    interpolate(target, make_net(1), make_net(2), 0.5)
    target(samples(4).rows).sum().backward()
    assert all(p.requires_grad and p.grad is not None for p in target.parameters())


def test_nets_of_different_shape_are_an_error():
    with pytest.raises(ValueError, match="zip"):
        interpolate(nn.Linear(1, 1), nn.Linear(1, 1), nn.Linear(1, 1, bias=False), 0.5)


def test_refreshed_statistics_are_those_of_the_data():
    net, data = make_net(1), samples(200)
    refresh_batch_norm(net, data, generator())
    inputs = net[0](data.rows).detach()
    torch.testing.assert_close(net[1].running_mean, inputs.mean(dim=0), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(net[1].running_var, inputs.var(dim=0), rtol=1e-4, atol=1e-4)


def test_refreshed_statistics_average_all_batches_alike(monkeypatch):
    monkeypatch.setattr(module, "REFRESH_BATCH", 10)
    monkeypatch.setattr(module, "REFRESH_BATCHES", 10)
    net, data = make_net(1), samples(100)
    refresh_batch_norm(net, data, generator())
    assert net[1].num_batches_tracked == 10
    torch.testing.assert_close(net[1].running_mean, net[0](data.rows).mean(dim=0).detach(), rtol=1e-4, atol=1e-4)


def test_refreshing_reads_no_more_than_its_share_of_a_large_data_set(monkeypatch):
    monkeypatch.setattr(module, "REFRESH_BATCH", 4)
    monkeypatch.setattr(module, "REFRESH_BATCHES", 3)
    net = make_net(1)
    refresh_batch_norm(net, samples(100), generator())
    assert net[1].num_batches_tracked == 3


def test_one_sample_more_than_a_batch_is_no_batch_of_one(monkeypatch):
    monkeypatch.setattr(module, "REFRESH_BATCH", 8)
    monkeypatch.setattr(module, "REFRESH_BATCHES", 2)
    net = make_net(1)
    refresh_batch_norm(net, samples(9), generator())
    assert net[1].num_batches_tracked == 2


class Watched(VectorSamples):
    def batch(self, indices, augment, generator):
        self.asked = augment, generator
        return super().batch(indices, augment, generator)


def test_statistics_are_those_of_samples_as_training_sees_them():
    data, source = Watched(samples(9).rows), generator()
    refresh_batch_norm(make_net(1), data, source)
    assert data.asked == ("weak", source)


def test_refreshing_changes_statistics_only_and_gives_the_momentum_back():
    net = make_net(1)
    before = copied(net)
    refresh_batch_norm(net, samples(50), generator())
    changed = {name for name, value in net.state_dict().items() if not torch.equal(value, before[name])}
    assert changed == {"1.running_mean", "1.running_var", "1.num_batches_tracked"}
    assert net[1].momentum == 0.1


def test_a_net_without_running_statistics_is_left_alone():
    net, source = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2, track_running_stats=False)).eval(), generator()
    before = source.get_state()
    refresh_batch_norm(net, samples(5), source)
    assert torch.equal(source.get_state(), before)
    assert not net.training
