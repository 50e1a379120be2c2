"""Pools made by hand: what the members say of a few rows."""

import numpy as np

from labelmend.decision.pool import Pool


def pool_of(probs, posterior=None, members=None, rates=(0.0, 0.1), rate_weights=(1.0, 0.0)):
    """`members` name -> the class of every row; without a posterior it is `probs`."""
    probs = np.asarray(probs, dtype=np.float32)
    n_classes = probs.shape[1]
    return Pool(
        weights={"ridge": 1.0},
        probs=probs,
        posterior=probs if posterior is None else np.asarray(posterior, dtype=np.float32),
        transition=np.eye(n_classes),
        rates=np.array(rates),
        rate_weights=np.array(rate_weights),
        member_labels={name: np.asarray(labels) for name, labels in (members or {}).items()},
    )


def sure_of(labels, n_classes, probability=0.9):
    """(n, C) so sure of the labels."""
    out = np.full((len(labels), n_classes), (1 - probability) / (n_classes - 1))
    out[np.arange(len(labels)), labels] = probability
    return out
