"""From neighbours to the normalised graph W of equations (2) and (3).

Knows a `Neighbors` record; does not know features, labels or the solver.

Differs from the paper in: similarities are clamped at 0 before the power gamma; rows without any edge stay zero.
"""

from __future__ import annotations

import warnings

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from labelmend.graph.knn import Neighbors


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
