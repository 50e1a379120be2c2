"""On a CPU: torch's own layers. What a GPU computes is compared there."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from labelmend.ensemble.nets import NormReLU, refresh_batch_norm


def test_it_is_batch_normalisation_and_relu_in_training_and_in_use():
    one, two, x = NormReLU(3), nn.BatchNorm2d(3), 2 + 5 * torch.randn(6, 3, 4, 4)
    for layer in (one, two):
        nn.init.constant_(layer.bias, 0.5)
    for training in (True, False):
        one.train(training), two.train(training)
        assert_close(one(x), two(x).clamp(min=0))
    assert_close(one.state_dict(), two.state_dict())


def test_of_a_sum_it_also_gives_the_sum():
    layer, x, other = NormReLU(3).eval(), torch.randn(6, 3, 4, 4), torch.randn(6, 3, 4, 4)
    total, active = layer.of_sum(x, other)
    assert_close(total, x + other)
    assert_close(active, layer(x + other))


@pytest.mark.parametrize("stride", [1, 2])
def test_in_use_it_becomes_part_of_the_convolution_before_it(stride):
    layer, convolution = NormReLU(5), nn.Conv2d(3, 5, 3, stride, padding=1, bias=False)
    nn.init.normal_(layer.weight)
    nn.init.normal_(layer.bias)
    x = 2 + torch.randn(6, 3, 8, 8)
    layer(convolution(3 * x))  # statistics that are not those of the batch
    layer.eval()
    expected = layer(convolution(x))
    with torch.no_grad():
        assert_close(layer.of_convolution(convolution, x), expected, rtol=1e-4, atol=1e-5)
    weight, bias = layer.folded_into(convolution)
    assert_close(torch.relu(nn.functional.conv2d(x, weight, bias, stride, padding=1)), expected, rtol=1e-4, atol=1e-5)
    # While something is learned gradients must reach the layer, so nothing is folded.
    assert_close(layer.of_convolution(convolution, x), expected, rtol=0, atol=0)
    layer.train()
    with torch.no_grad():
        learned = layer.of_convolution(convolution, x)
    assert_close(learned.amin(), torch.tensor(0.0))
    assert not torch.allclose(learned, expected)


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
