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
    n, k = neighbors.indices.shape
    weights = neighbors.similarities.clamp(min=0).pow(gamma)
    pointers = np.arange(n + 1) * k
    columns = neighbors.indices.cpu().numpy().ravel()
    directed = scipy.sparse.csr_matrix((weights.cpu().numpy().ravel(), columns, pointers), shape=(n, n))
    both = (directed + directed.T).tocsr()
    degree = np.asarray(both.sum(axis=1)).ravel()
    scale = np.divide(1.0, np.sqrt(degree), out=np.zeros_like(degree), where=degree > 0)
    row_of = np.repeat(np.arange(n), np.diff(both.indptr))
    values = both.data * scale[row_of] * scale[both.indices]
    index_type = np.int32 if both.nnz < 2**31 else np.int64  # half the memory, and faster products
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*[Ss]parse.*")  # torch: "CSR support is in beta state"
        return torch.sparse_csr_tensor(
            torch.from_numpy(both.indptr.astype(index_type)),
            torch.from_numpy(both.indices.astype(index_type)),
            torch.from_numpy(values.astype(weights.cpu().numpy().dtype)),
            size=(n, n),
            check_invariants=False,
        ).to(neighbors.indices.device)
