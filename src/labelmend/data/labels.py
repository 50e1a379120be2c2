"""Labels as users have them, as class codes, and back again in the same container.

Knows numpy, pandas, polars and torch containers, imported only where one comes; does not know features.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from labelmend.errors import DataError

if TYPE_CHECKING:
    from labelmend.data.annotations import Annotations

MISSING = -1


@dataclass(frozen=True)
class Labels:
    """Class codes (-1: no label), the classes they stand for, and the way back to the user's container."""

    codes: NDArray[np.int64]
    classes: NDArray[Any]
    restore: Callable[[NDArray[Any]], Any]  # values of every sample -> the container, dtype and index that came
    blank: Any = None  # what stood where a label is missing
    annotations: Annotations | None = None  # who said what, where that is known

    def values(self, codes: NDArray[np.integer], blank: Any = None) -> NDArray[Any]:
        """Class values for codes, `blank` where a code is missing."""
        if (codes >= 0).all():
            known: NDArray[Any] = self.classes[codes]
            return known
        out = np.full(len(codes), blank, dtype=object)
        out[codes >= 0] = self.classes[codes[codes >= 0]]
        return out

    def decode(self, codes: NDArray[np.integer]) -> Any:
        return self.restore(self.values(codes, self.blank))

    def of_rows(self, rows: NDArray[np.int64]) -> Labels:
        """Of some of the samples."""
        annotations = None if self.annotations is None else self.annotations.of_rows(rows)
        return replace(self, codes=self.codes[rows], annotations=annotations)


def read_labels(y: Any, missing: Any = None) -> Labels:
    """Encode labels. None, NaN and pandas.NA mean "no label", and so does the value `missing` if it is given."""
    values, absent, restore = _open(y)
    if values.ndim != 1:
        raise _not_one_dimensional(values.shape)
    if missing is not None:
        absent = absent | np.fromiter((value == missing for value in values), dtype=bool, count=len(values))
    present = values[~absent]
    refuse_continuous(present)
    classes, inverse = factorize(present)
    codes = np.full(len(values), MISSING, dtype=np.int64)
    codes[~absent] = inverse
    return Labels(codes, classes, restore, values[absent][0] if absent.any() else None)


def check_classes(labels: Labels) -> None:
    """Refuse labels that cannot be corrected: one class, or as good as an id."""
    n_labelled, n_classes = int((labels.codes >= 0).sum()), len(labels.classes)
    if n_classes < 2:
        found = f"only the class {labels.classes.tolist()[0]!r}" if n_classes else "no label at all"
        raise DataError(f"labels must hold at least two classes. Got {found} instead.")
    if n_classes == n_labelled:
        raise DataError(
            f"labels must repeat: {n_classes} labelled rows have {n_classes} different labels, which looks like an id. "
            "Choose the column that holds the class."
        )


def as_opened(values: Any, what: str) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Values of any container, and which of them are missing."""
    if isinstance(values, str | bytes):
        raise DataError(f"{what} must be one value per sample. Got the text {values!r} instead.")
    try:
        found, absent, _ = _open(values)
    except DataError as error:
        raise DataError(str(error).replace("labels", what, 1)) from None
    return found, absent


Restore = Callable[[NDArray[Any]], Any]
Opened = tuple[NDArray[Any], NDArray[np.bool_], Restore]  # values, which are missing, how to put values back


def _open(y: Any) -> Opened:
    """Any container. What puts values back is a partial of a plain function, so that a result can be pickled."""
    module = type(y).__module__.split(".")[0]
    if module == "pandas":
        return _open_pandas(y)
    if module == "polars":
        return _open_polars(y)
    if module == "torch":
        array = y.detach().cpu().numpy()
        return _drop_column(array), _absent(_drop_column(array)), partial(_to_torch, y.dtype, y.device, array.shape)
    if isinstance(y, Sequence) and not isinstance(y, str | bytes):
        values = objects(y)
        return values, _absent(values), _to_tuple if isinstance(y, tuple) else _to_list
    if hasattr(y, "__array__"):
        array = np.asarray(y)
        return _drop_column(array), _absent(_drop_column(array)), partial(_to_numpy, array.dtype, array.shape)
    raise _unknown_container(y)


def _open_pandas(y: Any) -> Opened:
    import pandas

    if isinstance(y, pandas.DataFrame):
        if y.shape[1] != 1:
            raise _not_one_dimensional(y.shape)
        values, absent, restore = _open_pandas(y.iloc[:, 0])
        return values, absent, partial(_to_frame, restore)
    series = y if isinstance(y, pandas.Series) else pandas.Series(y)
    values, absent = series.to_numpy(dtype=object), np.asarray(series.isna(), dtype=bool)
    if isinstance(y, pandas.Series):
        return values, absent, partial(_to_pandas, y.dtype, y.index, y.name)
    if isinstance(y, pandas.Index):
        return values, absent, partial(_to_pandas_index, y.dtype, y.name)
    return values, absent, partial(_to_pandas_array, y.dtype)


def _open_polars(y: Any) -> Opened:
    import polars

    if isinstance(y, polars.DataFrame):
        if y.width != 1:
            raise _not_one_dimensional(y.shape)
        values, absent, restore = _open_polars(y.to_series())
        return values, absent, partial(_to_frame, restore)
    if not isinstance(y, polars.Series):
        raise _unknown_container(y)
    values = objects(y.to_list())
    return values, _absent(values), partial(_to_polars, y.dtype, y.name)


def _to_numpy(dtype: np.dtype[Any], shape: tuple[int, ...], new: NDArray[Any]) -> NDArray[Any]:
    if dtype.kind == "U":  # a class that no label names may have a longer name
        dtype = np.promote_types(dtype, new.astype(np.str_).dtype)
    return new.astype(dtype, copy=False).reshape(shape)


def _to_torch(dtype: Any, device: Any, shape: tuple[int, ...], new: NDArray[Any]) -> Any:
    import torch

    return torch.tensor(new.tolist(), dtype=dtype, device=device).reshape(shape)


def _to_list(new: NDArray[Any]) -> list[Any]:
    return list(new.tolist())


def _to_tuple(new: NDArray[Any]) -> tuple[Any, ...]:
    return tuple(new.tolist())


def _to_pandas(dtype: Any, index: Any, name: Any, new: NDArray[Any]) -> Any:
    import pandas

    series = pandas.Series(new, index=index, name=name, dtype=object)
    if isinstance(dtype, pandas.CategoricalDtype):
        more = pandas.Index(series.dropna().unique()).difference(dtype.categories)
        dtype = pandas.CategoricalDtype([*dtype.categories, *more], dtype.ordered) if len(more) else dtype
    return series.astype(dtype)


def _to_pandas_index(dtype: Any, name: Any, new: NDArray[Any]) -> Any:
    import pandas

    return pandas.Index(new, name=name, dtype=dtype)


def _to_pandas_array(dtype: Any, new: NDArray[Any]) -> Any:
    import pandas

    return pandas.array(new, dtype=dtype)


def _to_polars(dtype: Any, name: str, new: NDArray[Any]) -> Any:
    import polars

    return polars.Series(name, new.tolist(), dtype=dtype)


def _to_frame(restore: Restore, new: NDArray[Any]) -> Any:
    return restore(new).to_frame()


def _drop_column(array: NDArray[Any]) -> NDArray[Any]:
    """A single column is one label per row."""
    return array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array


def _unknown_container(y: Any) -> DataError:
    return DataError(
        "labels must be a list, a numpy array, a pandas or polars Series, or a torch tensor. "
        f"Got {type(y).__name__} instead."
    )


def _not_one_dimensional(shape: tuple[int, ...]) -> DataError:
    return DataError(f"labels must be one-dimensional, one per row. Got an array of shape {tuple(shape)} instead.")


def objects(values: Sequence[Any]) -> NDArray[Any]:
    """An array of the items as they are: no conversion of numbers to strings, no nesting."""
    out = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        out[place] = value
    return out


def _absent(values: NDArray[Any]) -> NDArray[np.bool_]:
    absent: NDArray[np.bool_]
    if values.dtype.kind == "f":
        absent = np.isnan(values)
    elif values.dtype.kind in "mM":
        absent = np.isnat(values)
    elif values.dtype != object or values.ndim != 1:
        absent = np.zeros(values.shape[:1], dtype=bool)
    else:
        absent = np.fromiter(map(_is_missing, values), dtype=bool, count=len(values))
    return absent


def _is_missing(value: Any) -> bool:
    """None, NaN, pandas.NA and NaT; the last three are not equal to themselves, in their own ways."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating | np.datetime64) and bool(value != value)


def refuse_continuous(present: NDArray[Any]) -> None:
    """Refuse numbers that are not whole: they measure something, they do not name a class."""
    if present.dtype == object:
        present = np.array([value for value in present if isinstance(value, float | np.floating)], dtype=float)
    if present.dtype.kind == "c":
        raise DataError("labels must be classes. Got complex numbers instead.")
    if present.dtype.kind != "f":
        return
    odd = present[~np.isfinite(present) | (present != np.floor(present))]
    if len(odd):
        raise DataError(
            f"labels must be classes. Got continuous numbers such as {odd[0]!s} instead "
            "(Unknown label type: continuous). Put them into bins, or choose the column that holds the class."
        )


def factorize(present: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Sorted classes and codes; values that cannot be ordered are sorted by type and text."""
    if present.dtype != object:
        classes, inverse = np.unique(present, return_inverse=True)
        return classes, inverse
    try:
        distinct = list(dict.fromkeys(present))
    except TypeError:
        raise DataError(
            "labels must be single values such as strings or numbers. Got lists or other containers instead."
        ) from None
    try:
        ordered = sorted(distinct)
    except TypeError:
        ordered = sorted(distinct, key=lambda v: (type(v).__name__, str(v)))
    place = {value: position for position, value in enumerate(ordered)}
    inverse = np.fromiter((place[value] for value in present), dtype=np.intp, count=len(present))
    # Numbers of one type become an array of numbers: what compares predictions with labels expects that.
    types = {type(value) for value in ordered}
    numbers = len(types) == 1 and all(t in (int, bool, float) or issubclass(t, np.number | np.bool_) for t in types)
    return np.array(ordered) if numbers else objects(ordered), inverse
