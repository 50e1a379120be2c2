"""Outputs of a run made by hand: what it knows at its end, small enough to count."""

import numpy as np

from labelmend.diagnosis.run_outputs import RunOutputs


def by_hand(given, decided, graphs, **changes):
    """Whatever is not said is plain: kept where given is decided, a net that speaks like the graphs, no neighbours."""
    given, decided, graphs = np.asarray(given), np.asarray(decided), np.asarray(graphs, dtype=float)
    n, n_classes = graphs.shape
    transition = changes.pop("transition", np.full((n_classes, n_classes), 1 / n_classes))
    made = {
        "confidence": np.ones(n),
        "kept": given == decided,
        "fixed": np.zeros(n, dtype=bool),
        "net": np.maximum(graphs, 1e-6) / np.maximum(graphs, 1e-6).sum(axis=1, keepdims=True),
        "length": np.ones(n),
        "predicted": graphs,
        "posterior": np.eye(n_classes)[decided],
        "transition": np.asarray(transition, dtype=float),
        "neighbors": np.tile(np.arange(1, 3), (n, 1)),
    }
    return RunOutputs(given=given, decided=decided, graphs=graphs, **{**made, **changes})


def clusters(n_classes=4, size=300, seed=0):
    """A ring of classes on a line: (true label, position along the line, neighbours, what the graphs say).

    A sample at position t of class c leans towards class c + 1 near t = 1 and towards c - 1 near t = 0.
    """
    rng = np.random.default_rng(seed)
    true = np.repeat(np.arange(n_classes), size)
    at = np.tile(np.linspace(0, 1, size, endpoint=False), n_classes) + 0.5 / size
    shares = np.full((len(true), n_classes), 0.01)
    lean = np.clip(np.abs(at - 0.5) - 0.3, 0, 1) * 2  # 0 in the middle, 0.4 at the border
    other = np.where(at > 0.5, true + 1, true - 1) % n_classes
    shares[np.arange(len(true)), true] += 1 - lean
    shares[np.arange(len(true)), other] += lean
    shares += 0.005 * rng.random(shares.shape)
    shares /= shares.sum(axis=1, keepdims=True)
    place = true + at
    near = np.argsort(np.abs(place[:, None] - place[None, :]), axis=1)[:, 1:11]
    return true, at, near, shares


def outputs_of(true, near, shares, given):
    """A run that decides right and holds every wrong label wrong."""
    n_classes = shares.shape[1]
    counts = np.full((n_classes, n_classes), 0.5)
    np.add.at(counts, (true, given), 1)
    transition = counts / counts.sum(axis=1, keepdims=True)
    predicted = shares**4 / (shares**4).sum(axis=1, keepdims=True)
    posterior = predicted * transition.T[given]
    posterior /= posterior.sum(axis=1, keepdims=True)
    return by_hand(given, true, shares, neighbors=near, transition=transition, predicted=predicted, posterior=posterior)
