import copy

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from labelmend.ensemble.nets import FollowingNet


def make_net(seed=0):
    torch.manual_seed(seed)
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
    net(torch.randn(8, 3))
    return net


def train(net):
    """Move everything: weights, running statistics, the counter of batches."""
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.add_(torch.randn_like(parameter))
    net.train()(3 + torch.randn(8, 3))


def test_the_average_by_hand():
    followed = nn.Linear(1, 1)
    nn.init.constant_(followed.weight, 2.0)
    nn.init.constant_(followed.bias, 1.0)
    average = FollowingNet(followed, 0.9)
    nn.init.constant_(followed.weight, 12.0)
    for expected in (3.0, 3.9, 4.71):  # 0.9 of the average + 0.1 of 12
        average.follow()
        assert average.net.weight.item() == pytest.approx(expected, rel=1e-6)
        assert average.net.bias.item() == pytest.approx(1.0)


def test_weights_and_running_statistics_are_averaged_and_counters_left_alone():
    followed = make_net()
    average = FollowingNet(followed, 0.75)
    before = copy.deepcopy(average.net.state_dict())
    train(followed)
    average.follow()
    for name, value in average.net.state_dict().items():
        now = followed.state_dict()[name]
        assert not torch.equal(now, before[name]), "training moved everything"
        expected = 0.75 * before[name] + 0.25 * now if value.is_floating_point() else before[name]
        assert_close(value, expected)


def test_the_average_begins_as_an_equal_but_separate_net():
    followed = make_net()
    average = FollowingNet(followed, 0.9)
    assert_close(average.net.state_dict(), followed.state_dict(), rtol=0, atol=0)
    train(followed)
    assert not torch.equal(average.net[0].weight, followed[0].weight)


def test_the_followed_net_stays_as_it_is():
    followed = make_net()
    average = FollowingNet(followed, 0.5)
    train(followed)
    before = copy.deepcopy(followed.state_dict())
    average.follow()
    assert_close(followed.state_dict(), before, rtol=0, atol=0)
    assert followed.training
    assert all(parameter.requires_grad for parameter in followed.parameters())


def test_the_average_answers_in_eval_mode_and_is_not_trained():
    average = FollowingNet(make_net().train(), 0.5)
    average.follow()
    assert not any(module.training for module in average.net.modules())
    assert not average.net(torch.randn(2, 3)).requires_grad


def test_copied_together_the_copies_follow_each_other():
    followed = make_net()
    twin, twin_average = copy.deepcopy((followed, FollowingNet(followed, 0.5)))
    before = twin_average.net[0].weight.clone()
    train(twin)
    twin_average.follow()
    assert_close(twin_average.net[0].weight, (before + twin[0].weight) / 2)


def test_loaded_weights_are_followed_too():
    followed = make_net()
    average = FollowingNet(followed, 0.0)
    followed.load_state_dict(make_net(1).state_dict())
    average.follow()
    assert_close(average.net[0].weight, make_net(1)[0].weight)
