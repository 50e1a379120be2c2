"""Pictures that anything can tell apart by their colour, and settings that take a second."""

import numpy as np
import torch
from torch import nn

TINY = {
    "n_rounds": 3,
    "n_branches": 2,
    "packages_per_branch": 2,
    "hidden": 16,
    "width": 4,
    "graph_k": 5,
    "warmup_passes": 3,
    "average_decay": 0.5,
    "correct_every": 1,
    "device": "cpu",
}
COLOURS = ("red", "green", "blue")


def coloured(n=60, side=8, seed=0):
    """(pixels (n, side, side, 3), classes 0..2): dim noise, with one channel bright; classes take turns."""
    random = np.random.default_rng(seed)
    classes = np.arange(n) % 3
    pixels = random.integers(0, 70, (n, side, side, 3), dtype=np.uint8)
    pixels[np.arange(n), :, :, classes] += 150
    return pixels, classes


def write_folders(root, pixels, labels):
    """Class folders of PNG files, and the paths in the order of `pixels`."""
    from PIL import Image

    paths = []
    for number, (picture, label) in enumerate(zip(pixels, labels, strict=True)):
        folder = root / str(label)
        folder.mkdir(parents=True, exist_ok=True)
        paths.append(folder / f"{number:03d}.png")
        Image.fromarray(picture).save(paths[-1])
    return paths


class TinyBackbone(nn.Module):
    """Eight features from one convolution; counts its calls."""

    def __init__(self, seed=0):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, bias=False)
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            self.conv.weight.normal_(generator=generator)
        self.conv.requires_grad_(False)
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return torch.relu(self.conv(x)).mean(dim=(2, 3))
