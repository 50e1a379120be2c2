import pytest
import torch
from torch import nn

from labelmend.ensemble.fit import embed
from labelmend.ensemble.nets import MLP
from labelmend.samples import VectorSamples


class Noisy(nn.Module):
    """Returns its input, disturbed while training."""

    def forward(self, x):
        return (x + 1, x) if self.training else (x, 2 * x)


class Unaugmented(VectorSamples):
    """Samples that refuse to be changed."""

    def batch(self, indices, augment, generator):
        assert augment == "none"
        assert generator is None
        return super().batch(indices, augment, generator)


@pytest.mark.parametrize("batch_size", [1, 3, 7, 100])
def test_batches_give_the_rows_of_one_pass_in_order(batch_size):
    samples = VectorSamples(torch.randn(7, 3, generator=torch.Generator().manual_seed(0)))
    net = MLP(3, 4, 2)
    features, logits = embed(net, samples, batch_size)
    expected = net(samples.rows)
    torch.testing.assert_close(features, expected[0].detach())
    torch.testing.assert_close(logits, expected[1].detach())


def test_nets_embed_in_eval_mode_without_augmentation_or_gradient():
    rows = torch.randn(5, 2).requires_grad_()
    features, logits = embed(Noisy().train(), Unaugmented(rows))
    torch.testing.assert_close(features, rows.detach())
    torch.testing.assert_close(logits, 2 * rows.detach())
    assert not features.requires_grad


def test_large_samples_go_through_in_small_batches(monkeypatch):
    monkeypatch.setattr("labelmend.samples.VALUES_AT_ONCE", 8)
    sizes = []

    class Counting(Noisy):
        def forward(self, x):
            sizes.append(len(x))
            return super().forward(x)

    embed(Counting(), VectorSamples(torch.zeros(7, 3)))
    assert sizes == [2, 2, 2, 1]
    embed(Counting(), VectorSamples(torch.zeros(2, 100)))
    assert sizes[4:] == [1, 1]
