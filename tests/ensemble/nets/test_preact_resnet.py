import pytest
import torch
from torch.testing import assert_close

from labelmend.ensemble.nets import PreActBlock, PreActResNet, interpolate


def pictures(n=4, channels=3, size=8, seed=0):
    return torch.randn(n, channels, size, size, generator=torch.Generator().manual_seed(seed))


def make_net(seed=0, width=4, n_classes=3, channels=3):
    torch.manual_seed(seed)
    return PreActResNet(channels, n_classes, width)


def n_weights(net):
    return sum(parameter.numel() for parameter in net.parameters())


def expected_weights(channels, n_classes, width):
    """3 x 3 convolutions, 1 x 1 shortcuts where the width doubles, two numbers per normalised channel, the head."""
    total, n_in = 9 * channels * width, width
    for n_out in (width, 2 * width, 4 * width, 8 * width):
        convolutions = 9 * (n_in * n_out + 3 * n_out * n_out)
        shortcut = n_in * n_out if n_in != n_out else 0
        total += convolutions + shortcut + 2 * (n_in + 3 * n_out)
        n_in = n_out
    return total + 2 * n_in + (n_in + 1) * n_classes


def test_width_64_is_the_net_of_eleven_million_weights():
    with torch.device("meta"):
        net = PreActResNet(3, 10)
    assert n_weights(net) == expected_weights(3, 10, 64) == 11_172_170


@pytest.mark.parametrize(("channels", "n_classes", "width", "size"), [(3, 10, 4, 32), (1, 2, 2, 28), (3, 7, 6, 9)])
def test_features_are_eight_times_the_width_and_logits_linear_in_them(channels, n_classes, width, size):
    net = make_net(0, width, n_classes, channels).eval()
    features, logits = net(pictures(2, channels, size))
    assert n_weights(net) == expected_weights(channels, n_classes, width)
    assert (features.shape, logits.shape) == ((2, 8 * width), (2, n_classes))
    assert features.dtype == logits.dtype == torch.float32
    assert features.min() >= 0
    assert_close(logits, features @ net.head.weight.T + net.head.bias)


def test_three_stages_halve_the_picture():
    net, seen = make_net(), []
    for block in net.blocks:
        block.register_forward_hook(lambda _, __, out: seen.append(tuple(out[0].shape[1:])))
    net(pictures(size=16))
    assert seen == [(4, 16, 16)] * 2 + [(8, 8, 8)] * 2 + [(16, 4, 4)] * 2 + [(32, 2, 2)] * 2


def test_a_block_without_weights_passes_its_input_on():
    block, x = PreActBlock(4, 4, stride=1), pictures(channels=4)
    torch.nn.init.zeros_(block.conv2.weight)
    assert_close(sum(block(x)), x)
    assert_close(sum(block(x, 2 * x)), 3 * x)


def test_a_block_that_widens_passes_its_activated_input_through_the_shortcut():
    block, x = PreActBlock(4, 8, stride=2).eval(), pictures(channels=4)
    torch.nn.init.zeros_(block.conv2.weight)
    assert_close(sum(block(x)), torch.nn.functional.conv2d(block.norm1(x), block.shortcut.weight, stride=2))


def test_weights_are_normalised_before_they_act():
    # Batch statistics make the output of a training step independent of the scale after the first convolution.
    net, x = make_net(), pictures(8)
    expected = net(x)[1]
    block = net.blocks[2]
    with torch.no_grad():
        block.conv1.weight.mul_(100)
    assert_close(net(x)[1], expected, rtol=1e-2, atol=1e-2)


def test_gradients_reach_all_weights():
    net = make_net()
    features, logits = net(pictures(6))
    (logits.square().sum() + features.sum()).backward()
    for name, parameter in net.named_parameters():
        assert (parameter.grad != 0).any(), name


def test_the_layout_of_the_batch_does_not_matter():
    net, x = make_net().eval(), pictures()
    assert net.stem.weight.is_contiguous(memory_format=torch.channels_last)
    assert_close(net(x.contiguous(memory_format=torch.channels_last)), net(x), rtol=1e-4, atol=1e-5)


def test_in_eval_mode_a_picture_does_not_depend_on_the_others():
    net, x = make_net(), pictures()
    net(x)
    net.eval()
    assert_close(net(x)[1][:1], net(x[:1])[1], rtol=1e-4, atol=1e-5)


def test_nets_can_be_interpolated():
    target, first, second = make_net(0), make_net(1), make_net(2)
    for net in (first, second):
        net(pictures(seed=3))  # their running statistics move
    interpolate(target, first, second, 0.25)
    for name, value in target.state_dict().items():
        a, b = first.state_dict()[name], second.state_dict()[name]
        assert_close(value, 0.75 * a + 0.25 * b if value.is_floating_point() else a)
    assert target.stem.weight.is_contiguous(memory_format=torch.channels_last)
    interpolate(target, first, second, 1.0)
    assert_close(target.eval()(pictures())[1], second.eval()(pictures())[1])
