import torch

from labelmend.ensemble.nets import MLP


def test_features_are_the_hidden_layer_and_logits_are_linear_in_them():
    net, x = MLP(3, 5, 2), torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
    features, logits = net(x)
    expected = (x @ net.hidden.weight.T + net.hidden.bias).clamp(min=0)
    torch.testing.assert_close(features, expected)
    torch.testing.assert_close(logits, expected @ net.head.weight.T + net.head.bias)
    assert (features.shape, logits.shape) == ((4, 5), (4, 2))
