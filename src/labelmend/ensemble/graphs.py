"""Neighbours by cosine similarity, and the normalised graph W of equations (2) and (3).

Neighbours are exact or searched cell by cell; never an n x n array.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

BLOCK_ENTRIES = 2**24  # similarities held at once: 64 MiB of float32
CUDA_BLOCK_ENTRIES = 2**29
GROUP = 8  # columns a group in `largest`; 4 and 16 are slower


@dataclass(frozen=True)
class Neighbors:
    """The k nearest neighbours of every row, nearest first."""

    indices: Tensor  # (n, k) int64
    similarities: Tensor  # (n, k) cosine, may be negative


@dataclass(frozen=True)
class Cells:
    """Rows grouped around centres, and for each cell the cells whose rows are searched for its neighbours."""

    members: list[Tensor]
    nearby: Tensor  # (n_cells, n_probe), the cell itself first


def normalize_rows(features: Tensor) -> Tensor:
    """Rows of length one; a zero row stays zero and is similar to nothing."""
    return torch.nn.functional.normalize(features, dim=1)


def exact_neighbors(rows: Tensor, k: int) -> Neighbors:
    """The true k nearest neighbours, by a blocked matrix product."""
    return neighbors_of(torch.arange(len(rows), device=rows.device), rows, k)


def neighbors_of(asked: Tensor, rows: Tensor, k: int) -> Neighbors:
    """The true k nearest neighbours, among all rows, of the rows `asked` about."""
    k = min(k, len(rows) - 1)
    block = max(1, (CUDA_BLOCK_ENTRIES if rows.is_cuda else BLOCK_ENTRIES) // len(rows))
    indices = torch.empty(len(asked), k, dtype=torch.long, device=rows.device)
    similarities = torch.empty(len(asked), k, dtype=rows.dtype, device=rows.device)
    for places in torch.arange(len(asked), device=rows.device).split(block):
        queries = asked[places]
        similarity = rows[queries] @ rows.T
        similarity[torch.arange(len(queries), device=rows.device), queries] = -torch.inf
        similarities[places], indices[places] = largest(similarity, k)
    return Neighbors(indices, similarities)


def largest(values: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest values of every row and where they are, largest first; `topk`, in half the time.

    Columns are dealt into groups: the k largest lie in the k groups with the largest maxima, so only those are sorted.
    """
    n, width = values.shape
    n_groups = width // GROUP
    if n_groups <= 2 * k:
        plain = values.topk(k, dim=1)
        return plain.values, plain.indices
    grouped = n_groups * GROUP
    maxima = values[:, :grouped].unflatten(1, (GROUP, n_groups)).amax(dim=1)
    winners = maxima.topk(k, dim=1, sorted=False).indices
    offsets = torch.arange(0, grouped, n_groups, device=values.device)
    columns = (winners.unsqueeze(1) + offsets.view(1, -1, 1)).flatten(1)
    rest = torch.arange(grouped, width, device=values.device).expand(n, -1)
    columns = torch.cat([columns, rest], dim=1)
    best = values.gather(1, columns).topk(k, dim=1)
    return best.values, columns.gather(1, best.indices)


def make_cells(rows: Tensor, n_probe: int, generator: torch.Generator, n_passes: int = 4) -> Cells:
    """Spherical k-means with about sqrt(n) cells, fitted on a sample of the rows."""
    n = len(rows)
    n_cells = max(2, round(n**0.5))
    sample = torch.randperm(n, generator=generator, device=rows.device)[: n_cells * 64]
    centres = rows[sample[:n_cells]].clone()
    for _ in range(n_passes):
        sums = torch.zeros_like(centres).index_add_(0, _nearest_centre(rows[sample], centres), rows[sample])
        centres = torch.where(sums.norm(dim=1, keepdim=True) > 0, normalize_rows(sums), centres)
    cell_of = _nearest_centre(rows, centres)
    order = torch.argsort(cell_of, stable=True)
    sizes = torch.bincount(cell_of, minlength=n_cells)
    members = list(order.split(sizes.tolist()))
    used = torch.nonzero(sizes > 0).squeeze(1)
    centres = centres[used]
    affinity = centres @ centres.T
    affinity.fill_diagonal_(torch.inf)
    nearby = affinity.topk(min(n_probe, len(used)), dim=1).indices
    return Cells([members[c] for c in used.tolist()], nearby)


def cell_neighbors(rows: Tensor, cells: Cells, k: int) -> Neighbors:
    """Neighbours searched among the rows of the nearby cells only; approximate, about 28 times less work at 50,000.

    `cells` may come from other features of the same samples: every branch searches the cells of `noisy_net`.
    """
    n = len(rows)
    k = min(k, n - 1)
    indices = torch.empty(n, k, dtype=torch.long, device=rows.device)
    similarities = torch.empty(n, k, dtype=rows.dtype, device=rows.device)
    # One copy in the order of the cells: the candidates of a cell are then a few slices, not a scattered gather.
    in_order = rows[torch.cat(cells.members)].split([len(members) for members in cells.members])
    for cell, nearby in enumerate(cells.nearby.tolist()):
        queries = cells.members[cell]
        candidates = torch.cat([cells.members[c] for c in nearby])
        candidate_rows = torch.cat([in_order[c] for c in nearby])
        if len(candidates) <= k:  # a crowded corner of tiny cells: search everything
            candidates = torch.cat([queries, _all_but(queries, n)])
            candidate_rows = rows[candidates]
        step = max(1, BLOCK_ENTRIES // len(candidates))
        for start in range(0, len(queries), step):
            part = queries[start : start + step]
            similarity = in_order[cell][start : start + step] @ candidate_rows.T
            # The queries are the first candidates, in the same order: the shifted diagonal is the sample itself.
            similarity[torch.arange(len(part)), torch.arange(start, start + len(part))] = -torch.inf
            similarities[part], best = largest(similarity, k)
            indices[part] = candidates[best]
    return Neighbors(indices, similarities)


def _nearest_centre(rows: Tensor, centres: Tensor) -> Tensor:
    block = max(1, BLOCK_ENTRIES // len(centres))
    return torch.cat([(part @ centres.T).argmax(dim=1) for part in rows.split(block)])


def _all_but(excluded: Tensor, n: int) -> Tensor:
    keep = torch.ones(n, dtype=torch.bool, device=excluded.device)
    keep[excluded] = False
    return torch.nonzero(keep).squeeze(1)


def normalized_graph(neighbors: Neighbors, gamma: float) -> Tensor:
    """W = D^-1/2 (A + A^T) D^-1/2 as a sparse CSR tensor, A(s, t) = max(sim, 0)^gamma for neighbours."""
    weights = neighbors.similarities.clamp(min=0).pow(gamma)
    both = _sum_on_device(neighbors.indices, weights) if weights.is_cuda else _sum_by_scipy(neighbors.indices, weights)
    pointers, columns, values = both
    n = len(weights)
    row_of = torch.repeat_interleave(torch.arange(n, device=weights.device), pointers.diff())
    degree = torch.zeros(n, dtype=weights.dtype, device=weights.device).index_add_(0, row_of, values)
    scale = torch.where(degree > 0, degree.rsqrt(), 0.0)
    values = values * scale[row_of] * scale[columns]
    index_type = torch.int32 if len(values) < 2**31 else torch.int64  # half the memory, and faster products
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*[Ss]parse.*")  # torch: "CSR support is in beta state"
        return torch.sparse_csr_tensor(
            pointers.to(index_type), columns.to(index_type), values, size=(n, n), check_invariants=False
        )


def _sum_by_scipy(indices: Tensor, weights: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """A + A^T as row pointers, columns and values; a third of the time of sorting edges on a CPU."""
    n, k = indices.shape
    parts = (weights.numpy().ravel(), indices.numpy().ravel(), np.arange(n + 1) * k)
    directed = scipy.sparse.csr_matrix(parts, shape=(n, n))
    both = (directed + directed.T).tocsr()
    pointers, columns = (torch.from_numpy(part.astype(np.int64)) for part in (both.indptr, both.indices))
    return pointers, columns, torch.from_numpy(both.data)


def _sum_on_device(indices: Tensor, weights: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """A + A^T the same way without leaving the GPU: edges both ways, sorted, equal ones added."""
    n, k = indices.shape
    start = torch.arange(n, device=indices.device).repeat_interleave(k)
    end = indices.flatten()
    edges, place = torch.cat([start * n + end, end * n + start]).unique(return_inverse=True)
    values = torch.zeros(len(edges), dtype=weights.dtype, device=weights.device)
    values.index_add_(0, place, weights.flatten().repeat(2))
    rows = torch.div(edges, n, rounding_mode="floor")
    pointers = torch.zeros(n + 1, dtype=torch.long, device=indices.device)
    pointers[1:] = torch.bincount(rows, minlength=n).cumsum(dim=0)
    return pointers, edges % n, values
