"""Phase 1 of the paper (Sec. III-B): cut the data set into M disjoint subsets made of local packages.

Knows features and labels; does not know nets, graphs or where the features came from.

Differs from the paper in: a package holds N_c / (M B) samples including its seed sample, rounded so that every sample
lands in exactly one package; a class with fewer than M B samples gets packages of one.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Split:
    """Which subset (branch) and which package each sample belongs to; -1 for a sample without a label."""

    branch_of: Tensor
    package_of: Tensor
    seed_indices: Tensor
    similarity: float  # mean cosine between a seed sample and the members of its package

    def members(self, branch: int) -> Tensor:
        return torch.nonzero(self.branch_of == branch).squeeze(1)


def split_into_packages(
    features: Tensor,
    labels: Tensor,
    n_classes: int,
    n_branches: int,
    packages_per_branch: int,
    generator: torch.Generator,
) -> Split:
    """Package every class around random seed samples and deal the packages evenly to the branches.

    `features` are L2-normalised rows, `labels` hold -1 where a sample has none.
    """
    branch_of = torch.full_like(labels, -1)
    package_of = torch.full_like(labels, -1)
    seed_indices: list[Tensor] = []
    similarity_sum = 0.0
    n_packages = 0
    order = torch.argsort(labels, stable=True)
    counts = torch.bincount(labels + 1, minlength=n_classes + 1)
    for members in order.split(counts.tolist())[1:]:
        n_here = min(n_branches * packages_per_branch, len(members))
        if n_here == 0:
            continue
        package, seeds, similarity = _package_class(features, members, n_here, generator)
        start = torch.randint(n_branches, (), generator=generator, device=labels.device)
        deal = (torch.randperm(n_here, generator=generator, device=labels.device) + start) % n_branches
        branch_of[members] = deal[package]
        package_of[members] = package + n_packages
        seed_indices.append(seeds)
        similarity_sum += similarity
        n_packages += n_here
    n_labelled = max(int(counts[1:].sum()), 1)
    seeds = torch.cat(seed_indices) if seed_indices else labels.new_empty(0)
    return Split(branch_of, package_of, seeds, similarity_sum / n_labelled)


def _package_class(
    features: Tensor, members: Tensor, n_packages: int, generator: torch.Generator
) -> tuple[Tensor, Tensor, float]:
    """Package number of each member, the seed samples, and the sum of seed-to-member similarities."""
    size, extra = divmod(len(members), n_packages)
    if size == 1 and extra == 0:
        package = torch.randperm(len(members), generator=generator, device=members.device)
        return package, members[package.argsort()], float(len(members))
    package = torch.full((len(members),), -1, dtype=torch.long, device=members.device)
    # A random order visited from the front, taken samples skipped, is "draw a random seed sample still free".
    visit = torch.randperm(len(members), generator=generator, device=members.device).tolist()
    rows = features[members]
    free = torch.ones(len(members), dtype=torch.bool, device=members.device)
    seeds, similarity_sum, at = [], 0.0, 0
    for number in range(n_packages):
        while not free[visit[at]]:
            at += 1
        seed = visit[at]
        similarity = (rows @ rows[seed]).masked_fill(~free, -torch.inf)
        similarity[seed] = torch.inf  # a duplicate may be exactly as near; the seed sample always comes first
        chosen = similarity.topk(size + (number < extra))
        package[chosen.indices] = number
        free[chosen.indices] = False
        similarity_sum += 1.0 + float(chosen.values[1:].sum())
        seeds.append(seed)
    return package, members[torch.tensor(seeds, device=members.device)], similarity_sum
