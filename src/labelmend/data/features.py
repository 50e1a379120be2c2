"""Feature vectors as users have them, checked once, and scaled for a net.

Knows numpy, pandas, polars, torch and scipy.sparse containers; does not know labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from labelmend.errors import DataError

MIN_ROWS = 5
PROJECTED = 256  # columns that remain of a wide sparse matrix
COMMON_SCALE = 10.0  # columns whose spreads differ by less than this share one scale (pixels, embeddings)
NAMED = 5  # rows or columns named in a message

Matrix = NDArray[np.float32]


@dataclass(frozen=True)
class Scaler:
    """How raw rows become inputs of a net; part of the model, so that new rows go the same way."""

    mean: NDArray[np.float32]
    scale: NDArray[np.float32]
    projection: NDArray[np.float32] | None = None  # (columns, PROJECTED), for wide sparse input

    def __call__(self, matrix: Any) -> Matrix:
        if self.projection is not None:
            matrix = matrix @ self.projection
        if scipy.sparse.issparse(matrix):
            matrix = matrix.toarray()
        scaled: Matrix = ((matrix - self.mean) / self.scale).astype(np.float32, copy=False)
        return scaled

    @property
    def n_inputs(self) -> int:
        return len(self.mean)

    @property
    def n_columns(self) -> int:
        return self.n_inputs if self.projection is None else len(self.projection)


def read_features(X: Any) -> Any:
    """A float32 matrix, dense or CSR, with two dimensions and numbers only. Finiteness is checked apart."""
    if scipy.sparse.issparse(X):
        if X.ndim != 2:
            raise DataError(f"features must be two-dimensional. Got a sparse array of shape {X.shape} instead.")
        return scipy.sparse.csr_matrix(X, dtype=np.float32)
    _refuse_text_columns(X)
    if type(X).__module__.split(".")[0] == "torch":
        X = X.detach().cpu().float().numpy()
    try:
        array = np.asarray(X)
        if array.dtype.kind == "c":
            raise DataError("features must be real numbers. Complex data not supported.")
        array = array.astype(np.float32, copy=False)
    except (ValueError, TypeError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(
            f"features must be numbers, one row per sample. Got something else instead: {error}."
        ) from error
    if array.ndim != 2:
        raise DataError(
            f"features must be two-dimensional, rows by columns. Got an array of shape {array.shape} instead. "
            "Reshape your data: a single column is X.reshape(-1, 1), pictures are X.reshape(len(X), -1)."
        )
    return array


def check_features(matrix: Any) -> None:
    """Refuse what nothing can be learned from, and say what to do."""
    n_rows, n_columns = matrix.shape
    if n_columns == 0:
        raise DataError(f"features must have at least one column. Got 0 feature(s) (shape={matrix.shape}) instead.")
    if n_rows < MIN_ROWS:
        raise DataError(f"features must have at least {MIN_ROWS} rows. Got {n_rows} instead (n_samples = {n_rows}).")
    bad = bad_rows(matrix)
    if len(bad):
        named = ", ".join(map(str, bad[:NAMED])) + (", ..." if len(bad) > NAMED else "")
        raise DataError(
            f"features must be finite. Got NaN or infinity in {len(bad)} of {n_rows} rows (rows {named}). "
            "Fill or drop them; on the command line --drop-bad-rows goes on without them."
        )
    spread = matrix.max(axis=0) - matrix.min(axis=0)
    if float(np.max(spread.toarray() if scipy.sparse.issparse(spread) else spread)) == 0.0:
        raise DataError("features must differ between rows. Got constant columns only instead.")


def bad_rows(matrix: Any) -> NDArray[np.intp]:
    """Rows with NaN or infinity."""
    if scipy.sparse.issparse(matrix):
        return (
            np.unique(matrix.nonzero()[0][~np.isfinite(matrix.data)])
            if not np.isfinite(matrix.data).all()
            else np.empty(0, np.intp)
        )
    sums = matrix.sum(axis=1, dtype=np.float64)  # not finite only if some entry is not
    return np.flatnonzero(~np.isfinite(sums))


def fit_scaler(matrix: Any, seed: int) -> Scaler:
    """Centre the columns; one common scale where they are alike, one per column where they are not.

    A sparse matrix wider than PROJECTED columns is projected on its leading singular directions first.
    """
    projection = None
    if scipy.sparse.issparse(matrix):
        if matrix.shape[1] > PROJECTED:
            projection = _leading_directions(matrix, seed)
            matrix = matrix @ projection
        else:
            matrix = matrix.toarray()
    mean = matrix.mean(axis=0, dtype=np.float64)
    spread = matrix.std(axis=0, dtype=np.float64)
    varying = spread[spread > 0]
    if varying.max() <= COMMON_SCALE * np.median(varying):
        spread = np.full_like(spread, np.sqrt((spread**2).mean()))
    spread = np.where(spread > 0, spread, 1.0)
    return Scaler(mean.astype(np.float32), spread.astype(np.float32), projection)


def conflicting_duplicates(matrix: Any, codes: NDArray[np.integer]) -> list[list[int]]:
    """Groups of identical rows whose labels differ, in order of their first row."""
    if scipy.sparse.issparse(matrix):
        keys = [
            matrix.indices[a:b].tobytes() + matrix.data[a:b].tobytes()
            for a, b in zip(matrix.indptr, matrix.indptr[1:], strict=False)
        ]
    else:
        keys = [row.tobytes() for row in np.ascontiguousarray(matrix)]
    groups: dict[int, list[int]] = {}
    for index, key in enumerate(map(hash, keys)):
        groups.setdefault(key, []).append(index)
    repeated = (group for group in groups.values() if len(group) > 1)
    return [group for group in repeated if len({keys[i] for i in group}) == 1 and len(set(codes[group]) - {-1}) > 1]


def _leading_directions(matrix: Any, seed: int) -> NDArray[np.float32]:
    from sklearn.utils.extmath import randomized_svd

    n_components = min(PROJECTED, min(matrix.shape) - 1)
    _, _, directions = randomized_svd(matrix, n_components, random_state=seed)
    return np.ascontiguousarray(directions.T, dtype=np.float32)


def _refuse_text_columns(X: Any) -> None:
    """Name the columns of a table that are not numbers."""
    module = type(X).__module__.split(".")[0]
    if module == "pandas" and hasattr(X, "dtypes") and getattr(X, "ndim", 0) == 2:
        # Object columns may hold numbers; only what cannot become a number is refused.
        odd = [place for place, dtype in enumerate(X.dtypes) if getattr(dtype, "kind", "O") not in "iufb"]
        text = [str(X.columns[place]) for place in odd if not _is_numeric(X.iloc[:, place])]
    elif module == "polars" and hasattr(X, "schema"):
        text = [name for name, dtype in X.schema.items() if not (dtype.is_numeric() or str(dtype) == "Boolean")]
    else:
        return
    if text:
        named = ", ".join(text[:NAMED]) + (", ..." if len(text) > NAMED else "")
        raise DataError(
            f"features must be numbers. Got {len(text)} column(s) of another kind instead: {named}. "
            "Drop them or encode them as numbers first."
        )


def _is_numeric(column: Any) -> bool:
    try:
        np.asarray(column, dtype=np.float32)
    except (ValueError, TypeError):
        return False
    return True
