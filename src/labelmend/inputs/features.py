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
from labelmend.inputs.containers import columns_of, library_of, listed, open_matrix

MIN_ROWS = 5
PROJECTED = 256  # columns that remain of a wide sparse matrix
COMMON_SCALE = 10.0  # columns whose spreads differ by less than this share one scale (pixels, embeddings)
LARGEST = 1e37  # of a feature: twice that, and what it is divided by, stay below 3.4e38

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
    """A float32 matrix, dense or CSR, with two dimensions and numbers only. Finiteness is checked apart.

    The user's own arrays may be shared: nothing here or later writes into them.
    """
    if scipy.sparse.issparse(X):
        return _read_sparse(X)
    _refuse_text_columns(X)
    try:
        array = open_matrix(X, "features")
        if array.dtype.kind != "c":
            with np.errstate(over="ignore"):  # numbers beyond float32 become infinite, and are refused as such
                array = array.astype(np.float32, copy=False)
    except (ValueError, TypeError, OverflowError) as error:
        raise DataError(f"features must be numbers, one row per sample. Got this instead: {error}.") from error
    _refuse_complex(array.dtype)
    if array.ndim != 2:
        raise DataError(
            f"features must be two-dimensional, rows by columns. Got an array of shape {array.shape} instead. "
            "Reshape your data: a single column is X.reshape(-1, 1), pictures are X.reshape(len(X), -1)."
        )
    return array


def _read_sparse(X: Any) -> Any:
    if X.ndim != 2:
        raise DataError(f"features must be two-dimensional. Got a sparse array of shape {X.shape} instead.")
    _refuse_complex(X.dtype)
    with np.errstate(over="ignore"):
        matrix = scipy.sparse.csr_matrix(X, dtype=np.float32)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()  # the arrays may still be the user's
        matrix.sum_duplicates()
    return matrix


def _refuse_complex(dtype: np.dtype[Any]) -> None:
    if dtype.kind == "c":
        raise DataError("features must be real numbers. Got complex numbers instead (Complex data not supported).")


def check_features(matrix: Any) -> None:
    """Refuse what nothing can be learned from, and say what to do."""
    n_rows, n_columns = matrix.shape
    if n_columns == 0:
        raise DataError("features must have at least one column. Got none instead.")
    if n_rows < MIN_ROWS:
        raise DataError(f"features must have at least {MIN_ROWS} rows. Got {n_rows} instead.")
    check_finite(matrix)
    spread = matrix.max(axis=0) - matrix.min(axis=0)
    if float(np.max(spread.toarray() if scipy.sparse.issparse(spread) else spread)) == 0.0:
        raise DataError("features must differ between rows. Got constant columns only instead.")


def check_finite(matrix: Any) -> None:
    bad = bad_rows(matrix)
    if len(bad):
        raise DataError(
            "features must be finite numbers that fit into 32 bits. "
            f"Got NaN or infinity in {len(bad)} of {matrix.shape[0]} rows instead (rows {listed(bad)}). "
            "Fill or drop them; on the command line --drop-bad-rows goes on without them."
        )
    if (largest := float(abs(matrix).max() if matrix.shape[0] else 0.0)) > LARGEST:
        raise DataError(
            f"features must be at most {LARGEST:g} in size, so that differences fit into 32 bits. Got {largest:g} "
            "instead; divide the column by a power of ten, or leave it out."
        )


def bad_rows(matrix: Any) -> NDArray[np.intp]:
    """Rows with NaN or infinity."""
    if scipy.sparse.issparse(matrix):
        row_of = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        return np.unique(row_of[~np.isfinite(matrix.data)])
    with np.errstate(invalid="ignore"):  # infinity minus infinity
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
    spread[spread <= np.finfo(np.float32).eps * np.abs(mean)] = 0.0  # a constant column, up to rounding
    varying = spread[spread > 0]
    # Directions of a projection are a rotation of one space: a scale each would blow up those that hold only rounding.
    if projection is not None or len(varying) == 0 or varying.max() <= COMMON_SCALE * np.median(varying):
        spread = np.full_like(spread, np.sqrt((spread**2).mean()))
    spread = np.where(spread > 0, spread, 1.0)
    return Scaler(mean.astype(np.float32), spread.astype(np.float32), projection)


def conflicting_duplicates(matrix: Any, codes: NDArray[np.integer]) -> list[list[int]]:
    """Groups of identical rows, or pictures of uint8, whose labels differ, in order of their first row."""
    same_hash: dict[int, list[int]] = {}
    for index in range(matrix.shape[0]):
        same_hash.setdefault(hash(_row_bytes(matrix, index)), []).append(index)
    groups: dict[bytes, list[int]] = {}
    for candidates in same_hash.values():
        if len(candidates) > 1 and len(set(codes[candidates]) - {-1}) > 1:
            for index in candidates:
                groups.setdefault(_row_bytes(matrix, index), []).append(index)
    return [group for group in groups.values() if len(set(codes[group]) - {-1}) > 1]


def _row_bytes(matrix: Any, index: int) -> bytes:
    """Equal for equal rows: minus zero is zero, and a zero that is stored is as good as one that is not."""
    if not scipy.sparse.issparse(matrix):
        if matrix.dtype == np.uint8:
            return matrix[index].tobytes()  # type: ignore[no-any-return]
        return (matrix[index] + 0.0).tobytes()  # type: ignore[no-any-return]
    part = slice(matrix.indptr[index], matrix.indptr[index + 1])
    data, indices = matrix.data[part], matrix.indices[part]
    return indices[data != 0].tobytes() + data[data != 0].tobytes()  # type: ignore[no-any-return]


def _leading_directions(matrix: Any, seed: int) -> NDArray[np.float32]:
    from sklearn.utils.extmath import randomized_svd

    n_components = min(PROJECTED, min(matrix.shape) - 1)
    _, _, directions = randomized_svd(matrix, n_components, random_state=seed % 2**32)
    return np.ascontiguousarray(directions.T, dtype=np.float32)


def _refuse_text_columns(X: Any) -> None:
    """Name the columns of a table that are not numbers."""
    library = library_of(X)
    if library == "polars" and type(X).__name__ == "LazyFrame":
        raise DataError("features must be there to be read. Got a polars LazyFrame instead; call .collect() on it.")
    if library not in ("pandas", "polars") or getattr(X, "ndim", 2) != 2 or not hasattr(X, "columns"):
        return
    if text := [str(name) for name, column in columns_of(X) if not _is_numeric(column)]:
        raise DataError(
            f"features must be numbers. Got {len(text)} column(s) of another kind instead: {listed(text)}. "
            "Drop them or encode them as numbers first."
        )


def _is_numeric(column: Any) -> bool:
    """Columns of Python objects may hold numbers; only what cannot become a number is refused."""
    if library_of(column) == "polars":
        return column.dtype.is_numeric() or str(column.dtype) == "Boolean"
    if (kind := getattr(column.dtype, "kind", "O")) in "iufbc":
        return True
    if kind in "mM":
        return False  # times would become huge numbers
    try:
        np.asarray(column, dtype=np.float32)
    except (ValueError, TypeError):
        return False
    return True
