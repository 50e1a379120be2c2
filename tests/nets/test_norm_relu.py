"""On a CPU: torch's own layers. What a GPU computes is compared there."""

import torch
from torch import nn
from torch.testing import assert_close

from labelmend.nets.interpolate import refresh_batch_norm
from labelmend.nets.norm_relu import NormReLU


def test_it_is_batch_normalisation_and_relu_in_training_and_in_use():
    one, two, x = NormReLU(3), nn.BatchNorm2d(3), 2 + 5 * torch.randn(6, 3, 4, 4)
    for layer in (one, two):
        nn.init.constant_(layer.bias, 0.5)
    for training in (True, False):
        one.train(training), two.train(training)
        assert_close(one(x), two(x).clamp(min=0))
    assert_close(one.state_dict(), two.state_dict())


def test_its_statistics_can_be_refreshed():
    class Samples:
        device = torch.device("cpu")

        def __len__(self):
            return 8

        def batch(self, indices, augment, generator):
            return x[indices]

    layer, x = NormReLU(3), 2 + 5 * torch.randn(8, 3, 4, 4)
    refresh_batch_norm(layer, Samples(), torch.Generator())
    assert_close(layer.running_mean, x.mean(dim=(0, 2, 3)))
