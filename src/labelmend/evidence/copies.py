"""Which rows are copies of one another.

Copies must not judge each other: each carries the other's label. But in a table of few distinct rows identical rows are
different people, who do judge each other. So identical rows count as copies where coincidence is improbable: the chance
that two rows share all values, from the columns taken one by one, times the number of pairs, below one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Groups = NDArray[np.int64]
ROUNDED = 1e-300  # the logarithm of nothing


def groups_of_copies(matrix: NDArray[Any]) -> Groups:
    """(n,) the group of every row; rows that are copies of one another share one."""
    n = len(matrix)
    alone = np.arange(n)
    rows = np.ascontiguousarray(matrix) + 0.0  # minus zero is zero
    as_bytes = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
    _, first, group = np.unique(as_bytes, return_index=True, return_inverse=True)
    if len(first) == n or not _improbable(rows, n):
        return alone
    return np.asarray(group.ravel(), dtype=np.int64)


def _improbable(rows: NDArray[Any], n: int) -> bool:
    log_chance = 0.0
    for column in rows.T:
        _, counts = np.unique(column, return_counts=True)
        log_chance += np.log(max(float(((counts / n) ** 2).sum()), ROUNDED))
    return bool(log_chance + 2 * np.log(n) < 0)


def deal_into_folds(groups: Groups, n_folds: int, seed: int) -> NDArray[np.int64]:
    """(n,) the fold of every row, drawn without looking at labels; copies share one."""
    n_groups = int(groups.max()) + 1 if len(groups) else 0
    order = np.random.default_rng(seed).permutation(n_groups)
    fold_of_group = np.empty(n_groups, dtype=np.int64)
    fold_of_group[order] = np.arange(n_groups) % n_folds
    return np.asarray(fold_of_group[groups])
