"""Labels as users have them, as class codes, and back again in the same container.

Knows numpy, pandas, polars and torch containers, by their shape and without importing them; does not know features.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelmend.errors import DataError

MISSING = -1


@dataclass(frozen=True)
class Labels:
    """Class codes (-1: no label), the classes they stand for, and the way back to the user's container."""

    codes: NDArray[np.int64]
    classes: NDArray[Any]
    restore: Callable[[NDArray[Any]], Any]  # values of every sample -> the container, dtype and index that came

    def values(self, codes: NDArray[np.integer]) -> NDArray[Any]:
        """Class values for codes, None where a code is missing."""
        if (codes >= 0).all():
            return self.classes[codes]
        out = np.empty(len(codes), dtype=object)
        out[codes >= 0] = self.classes[codes[codes >= 0]]
        return out

    def decode(self, codes: NDArray[np.integer]) -> Any:
        return self.restore(self.values(codes))


def read_labels(y: Any, missing: Any = None) -> Labels:
    """Encode labels. None, NaN and pandas.NA mean "no label", and so does the value `missing` if it is given."""
    values, absent, restore = _open(y)
    if values.ndim != 1:
        raise DataError(f"labels must be one-dimensional, one per row. Got an array of shape {values.shape} instead.")
    if missing is not None:
        absent = absent | np.fromiter((value == missing for value in values), dtype=bool, count=len(values))
    present = values[~absent]
    _refuse_continuous(present)
    classes, inverse = _factorize(present)
    codes = np.full(len(values), MISSING, dtype=np.int64)
    codes[~absent] = inverse
    return Labels(codes, classes, restore)


def check_classes(labels: Labels) -> None:
    """Refuse labels that cannot be corrected: one class, or as good as an id."""
    n_labelled, n_classes = int((labels.codes >= 0).sum()), len(labels.classes)
    if n_classes < 2:
        found = f"only the class {labels.classes[0]!r}" if n_classes else "no label at all"
        raise DataError(f"labels must hold at least two classes. Got {found} instead.")
    if n_classes == n_labelled:
        raise DataError(
            f"labels must repeat: {n_classes} labelled rows have {n_classes} different labels, which looks like an id. "
            "Choose the column that holds the class."
        )


def _open(y: Any) -> tuple[NDArray[Any], NDArray[np.bool_], Callable[[NDArray[Any]], Any]]:
    """(values, which are missing, how to put values back) of any container."""
    module = type(y).__module__.split(".")[0]
    if module == "pandas":
        return _open_pandas(y)
    if module == "polars":
        import polars

        if isinstance(y, polars.DataFrame):
            y = y.to_series() if y.width == 1 else y.to_numpy()
        if isinstance(y, polars.Series):
            values = _objects(y.to_list())
            return values, _absent(values), lambda new: polars.Series(y.name, list(new), dtype=y.dtype)
    if module == "torch":
        array = y.detach().cpu().numpy()
        return array, _absent(array), lambda new: y.new_tensor(new.astype(array.dtype))
    if isinstance(y, np.ndarray):
        array = y.ravel() if y.ndim == 2 and y.shape[1] == 1 else y
        return array, _absent(array), lambda new: _like_array(new, y.dtype)
    if isinstance(y, Sequence) and not isinstance(y, str):
        values = _objects(y)
        return values, _absent(values), lambda new: type(y)(new.tolist()) if isinstance(y, (list, tuple)) else list(new)
    raise DataError(
        "labels must be a list, a numpy array, a pandas or polars Series, or a torch tensor. "
        f"Got {type(y).__name__} instead."
    )


def _open_pandas(y: Any) -> tuple[NDArray[Any], NDArray[np.bool_], Callable[[NDArray[Any]], Any]]:
    import pandas

    if isinstance(y, pandas.DataFrame) and y.shape[1] == 1:
        y = y.iloc[:, 0]
    if not isinstance(y, pandas.Series):
        array = np.asarray(y, dtype=object)
        return array, _absent(array), lambda new: pandas.Index(new) if isinstance(y, pandas.Index) else new

    def restore(new: NDArray[Any]) -> Any:
        return pandas.Series(new, index=y.index, name=y.name, dtype=object).astype(y.dtype)

    return y.to_numpy(dtype=object), np.asarray(y.isna(), dtype=bool), restore


def _objects(values: Sequence[Any]) -> NDArray[Any]:
    """An array of the items as they are: no conversion of numbers to strings, no nesting."""
    first = np.asarray(values[:1])
    if first.ndim > 1:
        return np.asarray(values)
    out = np.empty(len(values), dtype=object)
    out[:] = list(values)
    return out


def _absent(values: NDArray[Any]) -> NDArray[np.bool_]:
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype != object:
        return np.zeros(values.shape[:1], dtype=bool)
    # None, float NaN and pandas.NA: the last two are not equal to themselves, in their own ways.
    return np.fromiter(
        (v is None or type(v).__name__ == "NAType" or (isinstance(v, float | np.floating) and v != v) for v in values),
        dtype=bool,
        count=len(values),
    )


def _like_array(new: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    return new if new.dtype == dtype else new.astype(dtype)


def _refuse_continuous(present: NDArray[Any]) -> None:
    numbers = present if present.dtype.kind == "f" else np.array([v for v in present[:1000] if isinstance(v, float)])
    if numbers.dtype.kind == "f" and len(numbers) and not np.equal(np.mod(numbers, 1), 0).all():
        example = numbers[np.mod(numbers, 1) != 0][0]
        raise DataError(
            f"labels must be classes. Got continuous numbers such as {example!s} instead "
            "(Unknown label type: continuous). Put them into bins, or choose the column that holds the class."
        )


def _factorize(present: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Sorted classes and codes; values that cannot be ordered are sorted by type and text."""
    if present.dtype != object:
        classes, inverse = np.unique(present, return_inverse=True)
        return classes, inverse
    try:
        distinct = list(dict.fromkeys(present))
    except TypeError:
        raise DataError(
            "labels must be single values such as strings or numbers. Got lists or other containers."
        ) from None
    try:
        ordered = sorted(distinct)
    except TypeError:
        ordered = sorted(distinct, key=lambda v: (type(v).__name__, str(v)))
    place = {value: position for position, value in enumerate(ordered)}
    inverse = np.fromiter((place[value] for value in present), dtype=np.intp, count=len(present))
    return _objects(ordered), inverse
