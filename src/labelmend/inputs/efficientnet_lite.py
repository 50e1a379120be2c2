"""EfficientNet-Lite0 (Tan and Le, 2019; the Lite variant of 2020): 4.7 M weights, 1280 features, made for small CPUs.

Inverted residual blocks without squeeze-and-excitation, ReLU6 everywhere. Its public ImageNet weights were trained in
TensorFlow, hence the lopsided "same" padding of strided convolutions and the input (pixel - 127) / 128.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.fusion import fuse_conv_bn_eval

PIXEL_MEAN, PIXEL_STD = 127.0, 128.0
N_FEATURES = 1280
STEM = 32
STAGES = (  # blocks, kernel, stride of the first block, expansion, channels
    (1, 3, 1, 1, 16),
    (2, 3, 2, 6, 24),
    (2, 5, 2, 6, 40),
    (3, 3, 2, 6, 80),
    (3, 5, 1, 6, 112),
    (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
)


class SameConv(nn.Conv2d):
    """A strided convolution whose output has ceil(side / stride) pixels; an odd pixel of padding goes to the end."""

    def forward(self, x: Tensor) -> Tensor:
        pads = []
        for side, kernel, stride in zip(x.shape[:1:-1], self.kernel_size[::-1], self.stride[::-1], strict=True):
            total = max((-(-side // stride) - 1) * stride + kernel - side, 0)
            pads += [total // 2, total - total // 2]
        return super().forward(F.pad(x, pads))


class ConvNorm(nn.Sequential):
    """Convolution, batch normalisation and, unless it ends a block, ReLU6."""

    def __init__(
        self, n_in: int, n_out: int, kernel: int = 1, stride: int = 1, groups: int = 1, activate: bool = True
    ) -> None:
        conv = (
            nn.Conv2d(n_in, n_out, kernel, padding=kernel // 2, groups=groups, bias=False)
            if stride == 1
            else SameConv(n_in, n_out, kernel, stride, groups=groups, bias=False)
        )
        activation = [nn.ReLU6(inplace=True)] if activate else []
        super().__init__(conv, nn.BatchNorm2d(n_out, eps=1e-3, momentum=0.01), *activation)

    def fold(self) -> None:
        """Put the normalisation into the weights of the convolution."""
        conv, norm = self[0], self[1]
        assert isinstance(conv, nn.Conv2d)
        assert isinstance(norm, nn.BatchNorm2d)
        self[0], self[1] = fuse_conv_bn_eval(conv, norm), nn.Identity()


class Block(nn.Module):
    """Widen, filter each channel, narrow; the input is added where the shape stays."""

    def __init__(self, n_in: int, n_out: int, kernel: int, stride: int, expansion: int) -> None:
        super().__init__()
        wide = n_in * expansion
        widen = [ConvNorm(n_in, wide)] if expansion > 1 else []
        self.layers = nn.Sequential(
            *widen, ConvNorm(wide, wide, kernel, stride, groups=wide), ConvNorm(wide, n_out, activate=False)
        )
        self.residual = stride == 1 and n_in == n_out

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.layers(x)
        return out.add_(x) if self.residual else out


class EfficientNetLite0(nn.Module):
    """Maps a normalised batch (n, 3, H, W) of any size to (features, logits)."""

    def __init__(self, n_classes: int = 1000) -> None:
        super().__init__()
        self.stem = ConvNorm(3, STEM, kernel=3, stride=2)
        widths = pairwise((STEM, *(stage[-1] for stage in STAGES)))
        blocks: list[Block] = []
        for (n_in, n_out), (n_blocks, kernel, stride, expansion, _) in zip(widths, STAGES, strict=True):
            blocks.append(Block(n_in, n_out, kernel, stride, expansion))
            blocks += [Block(n_out, n_out, kernel, 1, expansion) for _ in range(n_blocks - 1)]
        self.blocks = nn.Sequential(*blocks)
        self.top = ConvNorm(STAGES[-1][-1], N_FEATURES)
        self.head = nn.Linear(N_FEATURES, n_classes)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        features = self.top(self.blocks(self.stem(x))).mean(dim=(2, 3))
        return features, self.head(features)

    def load_in_order(self, weights: Mapping[str, Tensor]) -> None:
        """Weights under other names, in the order in which a batch meets them."""
        names = self.state_dict().keys()
        self.load_state_dict(dict(zip(names, weights.values(), strict=True)))

    def freeze(self) -> EfficientNetLite0:
        """For inference only: eval mode, no gradients, batch normalisation folded away."""
        self.eval().requires_grad_(False)
        for layer in self.modules():
            if isinstance(layer, ConvNorm):
                layer.fold()
        return self
