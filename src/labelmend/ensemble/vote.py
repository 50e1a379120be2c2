"""Phase 3 of the paper (Sec. III-D): the majority label of all suggestions and its certainty, equations (6) and (7).

Knows suggested labels and certainties; does not know graphs or nets.

Differs from the paper in: ties go to the larger sum of certainties, then to the current corrected label, then to the
given one, then to the lowest class, so the vote is deterministic; where every suggestion abstains the given label
stays with certainty 0; trusted samples keep their label with certainty 1 and do not take part in the min-max.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import torch
from torch import Tensor

BLOCK_ENTRIES = 2**24


@dataclass(frozen=True)
class Vote:
    labels: Tensor  # (n,) majority class; the given label where nobody votes, -1 if there is none
    certainty: Tensor  # (n,) omega, equation (6)
    share: Tensor  # (n, C) sparse CSR: share of the suggestions for each class


def vote(
    suggested: Tensor,
    certainty: Tensor,
    given: Tensor,
    current: Tensor,
    n_classes: int,
    fixed: Tensor,
    percentiles: tuple[float, float],
) -> Vote:
    """Count the suggestions (n, s). `fixed` marks trusted samples; `percentiles` (0, 1) is the paper's min-max."""
    labels = torch.empty_like(given)
    raw = torch.empty(len(given), dtype=certainty.dtype, device=given.device)
    crow, columns, values = [torch.zeros(1, dtype=torch.long)], [], []
    for rows in torch.arange(len(given), device=given.device).split(max(1, BLOCK_ENTRIES // n_classes)):
        counts, sums = _tally(suggested[rows], certainty[rows], n_classes)
        labels[rows] = _winner(counts, sums, current[rows], given[rows])
        raw[rows] = sums.gather(1, labels[rows].clamp(min=0).unsqueeze(1)).squeeze(1) / suggested.shape[1]
        held = counts > 0
        crow.append(held.sum(dim=1).cumsum(dim=0).cpu() + crow[-1][-1])
        columns.append(held.nonzero()[:, 1].cpu())
        values.append((counts[held] / suggested.shape[1]).cpu())
    labels = torch.where(fixed, given, labels)
    omega = torch.where((suggested >= 0).any(dim=1), stretch(raw, ~fixed, percentiles), 0.0)
    omega = torch.where(fixed, 1.0, omega)
    omega = torch.where(labels < 0, 0.0, omega)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*[Ss]parse.*")  # torch: "CSR support is in beta state"
        share = torch.sparse_csr_tensor(
            torch.cat(crow), torch.cat(columns), torch.cat(values), size=(len(given), n_classes), check_invariants=False
        )
    return Vote(labels, omega, share)


def stretch(raw: Tensor, counted: Tensor, percentiles: tuple[float, float]) -> Tensor:
    """Equation (6): map [low, high] of the counted samples to [0, 1]; all ones where they are all equal."""
    if not bool(counted.any()):
        return torch.ones_like(raw)
    ordered = raw[counted].sort().values
    low, high = (ordered[round(q * (len(ordered) - 1))] for q in percentiles)
    if high <= low:
        return torch.ones_like(raw)
    return ((raw - low) / (high - low)).clamp(0, 1)


def _tally(suggested: Tensor, certainty: Tensor, n_classes: int) -> tuple[Tensor, Tensor]:
    """Votes and summed certainties per class; abstentions (-1) count for nobody."""
    votes = suggested >= 0
    at = suggested.clamp(min=0)
    shape = (len(suggested), n_classes)
    counts = torch.zeros(shape, dtype=certainty.dtype, device=certainty.device)
    sums = torch.zeros_like(counts)
    counts.scatter_add_(1, at, votes.to(certainty.dtype))
    sums.scatter_add_(1, at, certainty * votes)
    return counts, sums


def _winner(counts: Tensor, sums: Tensor, current: Tensor, given: Tensor) -> Tensor:
    """The class that wins by (votes, certainty, is current, is given, lowest index), decided one key at a time."""
    alive = counts == counts.amax(dim=1, keepdim=True)
    ranked = sums.masked_fill(~alive, -torch.inf)
    alive &= ranked == ranked.amax(dim=1, keepdim=True)
    for preferred in (current, given):
        holds = (preferred >= 0) & alive.gather(1, preferred.clamp(min=0).unsqueeze(1)).squeeze(1)
        only = torch.zeros_like(alive).scatter_(1, preferred.clamp(min=0).unsqueeze(1), True)
        alive = torch.where(holds.unsqueeze(1), only, alive)
    winner = alive.to(torch.int8).argmax(dim=1)
    return torch.where(counts.sum(dim=1) > 0, winner, given)
