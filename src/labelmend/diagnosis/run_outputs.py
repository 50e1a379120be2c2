"""What a run knows about every sample at its end, gathered once for the noise profile and the reasons.

Knows the nets, graphs and decided labels of a run, and turns them into arrays; does not know what they are used for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from labelmend.decision.deciding import Decided
from labelmend.decision.pool import softmax
from labelmend.decision.posterior import Decision, as_distribution
from labelmend.ensemble.fit import embed
from labelmend.ensemble.state import Problem, RoundState

Floats = NDArray[np.floating]
Codes = NDArray[np.int64]


@dataclass(frozen=True)
class RunOutputs:
    """Arrays run along the samples; C classes."""

    given: Codes  # -1: no label
    decided: Codes  # the label the run holds most probable
    confidence: Floats  # its posterior probability
    kept: NDArray[np.bool_]  # the given label stays, and not for want of evidence
    fixed: NDArray[np.bool_]  # trusted: never in question
    graphs: Floats  # (n, C) class probabilities of the graphs, without the sample's own label
    net: Floats  # (n, C) class probabilities of the deployed net
    length: Floats  # (n,) of the features of the deployed net
    predicted: Floats  # (n, C) p(c | x) as the decision used it: the given label is not in it
    posterior: Floats  # (n, C) of the true class, with the given label
    transition: Floats  # (C, C) P(given | true)
    neighbors: Codes  # (n, k) nearest samples on a graph of the last round

    @classmethod
    def of(cls, state: RoundState, problem: Problem, decided: Decided, decision: Decision) -> RunOutputs:
        assert state.neighbors is not None
        features, logits = embed(state.deployed_net, problem.samples)
        return cls(
            given=_numpy(problem.given_labels),
            decided=_numpy(decision.labels),
            confidence=_numpy(decision.confidence),
            kept=_numpy((decision.labels == problem.given_labels) & ~decided.left_alone),  # whatever is for review
            fixed=_numpy(problem.trusted),
            graphs=_numpy(as_distribution(state.held_out)),
            net=softmax(_numpy(logits - logits.mean(dim=1, keepdim=True))),
            length=_numpy(features.float().norm(dim=1)),
            predicted=_numpy(decided.predicted),
            posterior=_numpy(decided.probabilities),
            transition=_numpy(decided.transition),
            neighbors=_numpy(state.neighbors),
        )

    @property
    def n_classes(self) -> int:
        return int(self.graphs.shape[1])


def _numpy(values: Tensor) -> NDArray[Any]:
    return np.asarray(values.detach().cpu().numpy())
