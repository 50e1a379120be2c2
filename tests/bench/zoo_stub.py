"""A stand-in for `correct` with the interface that the zoo reads: the nearest class mean."""

from types import SimpleNamespace

import numpy as np
from scipy.sparse import csr_matrix


def result_for(given, pool, proposals, probs, labels, **more):
    n, n_classes = probs.shape
    verdict = SimpleNamespace(
        classes="apart",
        adopted=int((labels != pool).sum()),
        mixing=0.1,
        agreement=0.99,
        disputed=int(((pool == given) & (proposals != given)).sum()),
        linear=0.9,
        trees=0.8,
        overlap=0.1,
        reason="supported",
    )
    found = {
        "labels": labels,
        "confidence": np.full(n, 0.9),
        "label_score": probs[np.arange(n), given],
        "noise_rate": 0.2,
        "profile": SimpleNamespace(rate=SimpleNamespace(value=0.2, low=0.1, high=0.3)),
        "verdict": verdict,
        "votes": csr_matrix(np.eye(n_classes)[proposals]),
        "status": np.where(labels == given, "kept", "corrected"),
        "model": SimpleNamespace(predict=lambda X: np.zeros(len(X), dtype=int)),
        "evidence": SimpleNamespace(pool_labels=pool, pool_probs=probs, proposals=proposals),
    }
    return SimpleNamespace(**{**found, **more})


def nearest_mean(X, y, seed=0, assume="auto"):
    """Pool: the nearest class mean where it is far nearer; ensemble: always."""
    X, y = np.asarray(X, dtype=float), np.asarray(y)
    X = (X - X.mean(0)) / (X.std(0) + 1e-9)
    means = np.stack([X[y == c].mean(0) for c in np.unique(y)])
    scores = -((X[:, None] - means) ** 2).sum(2)
    probs = np.exp(scores - scores.max(1, keepdims=True))
    probs /= probs.sum(1, keepdims=True)
    proposals = probs.argmax(1)
    pool = np.where(probs.max(1) > 0.9, proposals, y)
    return result_for(y, pool, proposals, probs, proposals if assume == "apart" else pool)
