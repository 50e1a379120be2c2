"""Diagnostics of a round: what the method does to labels whose truth is known here and nowhere in the method.

Knows the state after a round, given and true labels; changes nothing. Costs no forward pass: the answers of the nets
when the samples were embedded for the graphs were kept.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from labelmend.ensemble.state import RoundState


def diagnose(state: RoundState, given: Tensor, true: Tensor) -> Mapping[str, float]:
    """Shares between 0 and 1, entropies in nats; a share of nothing is left out.

    The source is the net whose features were split: the noisy one, else the corrected one.
    """
    labelled = (given >= 0) & (true >= 0)
    voted, omega = state.corrected_labels, state.omega.double()
    kept, right = voted == given, voted == true
    found = {
        "kept": _mean(kept, labelled),
        "kept_right": _mean(right, labelled & kept),
        "changed_right": _mean(right, labelled & ~kept),
        "right_lost": _mean(~kept, labelled & (given == true)),
        "certainty_right": _mean(omega, labelled & right),
        "certainty_wrong": _mean(omega, labelled & ~right),
        "certainty_auroc": _auroc(omega, right, labelled),
    }
    if state.source_labels is not None:
        source, wrong = state.source_labels, labelled & (given != true)
        found |= {
            "source_right": _mean(source == true, labelled),
            "source_says_wrong_given": _mean(source == given, wrong),
            "source_says_wrong_vote": _mean(source == voted, labelled & ~right),
        }
    if state.branch_labels is not None:
        found["branch_right"] = torch.stack([_mean(labels == true, labelled) for labels in state.branch_labels]).mean()
    targets = state.targets
    for name, distribution in (("answers", targets.answers), ("soft", targets.soft)):
        if distribution is not None:
            best = distribution.argmax(dim=1)
            found |= {
                f"{name}_right": _mean(best == true, labelled),
                f"{name}_entropy": -(distribution * distribution.clamp(min=1e-12).log()).sum(dim=1).double().mean(),
                f"{name}_largest_class": torch.bincount(best).max().double() / len(best),
            }
    values = torch.stack(list(found.values())).tolist()  # one wait for the GPU
    return {name: value for name, value in zip(found, values, strict=True) if value == value}


def _mean(values: Tensor, members: Tensor) -> Tensor:
    """Over the members; not a number where there are none."""
    total: Tensor = (values.double() * members).sum() / members.sum()
    return total


def _auroc(scores: Tensor, positive: Tensor, members: Tensor) -> Tensor:
    """How often a right vote is surer than a wrong one; ties count half."""
    scores, positive = scores[members], positive[members]
    values, place = scores.unique(return_inverse=True)
    counts = torch.stack([torch.bincount(place[part], minlength=len(values)) for part in (positive, ~positive)])
    good, bad = counts.double()
    below = bad.cumsum(0) - bad
    share: Tensor = (good * (below + bad / 2)).sum() / (good.sum() * bad.sum())
    return share
