import copy

import pytest
import torch
from torch import nn

from labelmend.inputs.efficientnet_lite import N_FEATURES, STAGES, Block, ConvNorm, EfficientNetLite0, SameConv


def noise(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


@pytest.fixture(scope="module")
def net():
    """Random weights and statistics that are not the identity."""
    torch.manual_seed(0)
    net = EfficientNetLite0(n_classes=7)
    for layer in net.modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.running_mean.normal_(0, 0.1)
            layer.running_var.uniform_(0.5, 1.5)
            layer.weight.data.uniform_(0.8, 1.2)
    return net.eval()


def test_the_published_size():
    assert sum(p.numel() for p in EfficientNetLite0().parameters()) == 4_652_008
    assert sum(stage[0] for stage in STAGES) == 16


@pytest.mark.parametrize("size", [32, 33])
def test_features_and_logits_for_any_size(net, size):
    with torch.inference_mode():
        features, logits = net(noise(2, 3, size, size))
        torch.testing.assert_close(logits, net.head(features))
    assert (features.shape, logits.shape) == ((2, N_FEATURES), (2, 7))
    assert 0 <= features.min() <= features.max() <= 6


@pytest.mark.parametrize(("side", "kernel", "start"), [(6, 3, 0), (7, 3, 1), (6, 5, 1), (7, 5, 2)])
def test_an_odd_pixel_of_padding_goes_to_the_end(side, kernel, start):
    conv = SameConv(1, 1, kernel, 2, bias=False)
    nn.init.zeros_(conv.weight)
    conv.weight.data[..., start, start] = 1  # the tap that lies on the first pixel
    x = noise(1, 1, side, side)
    out = conv(x)
    assert out.shape[2:] == (-(-side // 2),) * 2
    torch.testing.assert_close(out, x[..., ::2, ::2])


def test_sides_are_padded_each_by_its_own_length():
    assert SameConv(1, 1, 3, 2)(noise(1, 1, 6, 9)).shape == (1, 1, 3, 5)


def test_only_blocks_that_keep_the_shape_add_their_input():
    assert Block(4, 4, 3, 1, 6).residual
    assert not Block(4, 4, 3, 2, 6).residual
    assert not Block(4, 5, 3, 1, 6).residual
    block, x = Block(4, 4, 3, 1, 2).eval(), noise(1, 4, 5, 5)
    torch.testing.assert_close(block(x), block.layers(x) + x)


def test_frozen_net_computes_the_same_without_normalisation_layers(net):
    frozen, x = copy.deepcopy(net).freeze(), noise(2, 3, 32, 32)
    assert not any(isinstance(layer, nn.BatchNorm2d) for layer in frozen.modules())
    assert not any(p.requires_grad for p in frozen.parameters())
    with torch.inference_mode():
        torch.testing.assert_close(frozen(x), net(x), rtol=1e-4, atol=1e-5)


def test_frozen_net_computes_the_same_in_both_layouts(net):
    frozen, x = copy.deepcopy(net).freeze(), noise(2, 3, 32, 32)
    with torch.inference_mode():
        other = frozen(x.contiguous(memory_format=torch.channels_last))
        torch.testing.assert_close(other, frozen(x), rtol=1e-4, atol=1e-5)


def test_weights_under_other_names_are_taken_in_order(net):
    other = EfficientNetLite0(n_classes=7)
    other.load_in_order({f"w{i}": value for i, value in enumerate(net.state_dict().values())})
    torch.testing.assert_close(other.state_dict(), net.state_dict(), rtol=0, atol=0)


def test_too_few_weights_are_refused():
    with pytest.raises(ValueError, match="shorter"):
        EfficientNetLite0().load_in_order({"w": torch.zeros(1)})


def test_unfrozen_net_can_be_trained():
    block = nn.Sequential(ConvNorm(3, 4, kernel=3, stride=2), Block(4, 4, 3, 1, 6), Block(4, 4, 3, 1, 6))
    block(noise(2, 3, 8, 8)).sum().backward()
    assert all(p.grad is not None for p in block.parameters())
