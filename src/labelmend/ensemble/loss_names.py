"""Names of the losses, apart from the losses so that the command line need not load torch.

Each smoothness name stands for (space the distance is taken in, distance, weighted by certainty).
"""

from __future__ import annotations

SMOOTHNESS = {
    "smoothness": ("softmax", "l2", True),
    "smoothness-unweighted": ("softmax", "l2", False),
    "smoothness-features": ("features", "l2", False),
    "smoothness-kl": ("softmax", "kl", True),
    "smoothness-js": ("softmax", "js", True),
}
BRANCH_LOSSES = (*SMOOTHNESS, "cross-entropy", "cross-entropy-mae", "split")
CORRECTED_LOSSES = ("all", "split", "semi-supervised")
