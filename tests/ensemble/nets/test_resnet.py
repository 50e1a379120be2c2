import pytest
import torch
from torch.testing import assert_close

from labelmend.ensemble.nets import ResNet50


def test_the_full_width_is_resnet_50():
    """23,508,032 weights without the last layer, counted by hand from He et al.'s table; 2,048 features."""
    with torch.device("meta"):
        net = ResNet50(1000)
    n_weights = sum(p.numel() for name, p in net.named_parameters() if not name.startswith("fc."))
    assert n_weights == 23_508_032
    assert net.fc.in_features == 2048


def test_layers_are_named_as_in_torchvision():
    names = set(ResNet50(4, width=2).state_dict())
    expected = {"conv1.weight", "bn1.running_var", "layer1.0.downsample.0.weight", "layer1.0.downsample.1.bias"}
    assert expected <= names
    assert {"layer4.2.conv3.weight", "layer4.2.bn3.weight", "layer3.5.bn1.num_batches_tracked", "fc.bias"} <= names
    assert "layer1.1.downsample.0.weight" not in names


@pytest.mark.parametrize("side", [64, 70])
def test_shapes_and_gradients(side):
    net = ResNet50(4, width=2)
    features, logits = net(torch.randn(3, 3, side, side))
    assert features.shape == (3, 64)
    assert logits.shape == (3, 4)
    (features.square().sum() + logits.square().sum()).backward()
    assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in net.parameters())


def test_one_bottleneck_by_hand():
    """Eval mode, statistics 0 and 1: normalisation does nothing, so the block is relu of convolutions plus input."""
    block = ResNet50(4, width=2).layer1[1].eval()
    x = torch.rand(2, 8, 5, 5)
    inner = block.conv3(torch.relu(block.conv2(torch.relu(block.conv1(x)))))
    assert_close(block(x), torch.relu(inner + x), rtol=1e-4, atol=1e-4)
