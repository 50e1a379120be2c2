"""Containers of values as numpy arrays, and the way back: lists, tuples, numpy, pandas, polars and torch.

Each library is imported only where one of its containers comes. What puts values back is a partial of a plain function,
so that a result can be pickled. Does not know what the values mean.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from labelmend.errors import DataError

Restore = Callable[[NDArray[Any]], Any]


class Opened(NamedTuple):
    values: NDArray[Any]
    absent: NDArray[np.bool_]  # None, NaN, NaT, pandas.NA and what is masked
    restore: Restore  # values -> the container, dtype and index that came


def library_of(value: Any) -> str:
    return type(value).__module__.split(".")[0]


def columns_of(frame: Any) -> list[tuple[Any, Any]]:
    """Name and column of a pandas or polars DataFrame; names may repeat."""
    if library_of(frame) == "pandas":
        return [(name, frame.iloc[:, place]) for place, name in enumerate(frame.columns)]
    return [(name, frame[name]) for name in frame.columns]


def open_values(given: Any, what: str) -> Opened:
    """One value per sample, from any container; a single column is one value per row. `what`: for messages."""
    library = library_of(given)
    if library == "pandas":
        return _open_pandas(given, what)
    if library == "polars":
        return _open_polars(given, what)
    if isinstance(given, np.ma.MaskedArray):
        return _open_masked(given)
    if isinstance(given, Sequence) and not isinstance(given, str | bytes):
        values = objects(given)
        return Opened(values, _absent(values), _to_tuple if isinstance(given, tuple) else _to_list)
    if library == "torch":
        array = tensor_as_array(given, what)
        restore: Restore = partial(_to_torch, given.dtype, given.device, array.shape)
    elif hasattr(given, "__array__"):
        array = np.asarray(given)
        restore = partial(_to_numpy, array.dtype, array.shape)
    else:
        raise _unknown(given, what)
    flat = _drop_column(array)
    return Opened(flat, _absent(flat), restore)


def _open_masked(given: Any) -> Opened:
    """A masked value is a missing one, and stays masked where nothing is found for it."""
    flat = _drop_column(given)
    masked, plain = np.ma.getmaskarray(flat), np.asarray(flat)
    if flat.ndim != 1:
        return Opened(plain, masked, _to_list)  # refused for its shape
    values = plain.astype(object)
    values[masked] = None
    return Opened(values, masked | _absent(plain), partial(_to_masked, given.dtype, given.shape))


def _open_pandas(given: Any, what: str) -> Opened:
    import pandas

    if isinstance(given, pandas.MultiIndex):
        raise not_one_dimensional((len(given), given.nlevels), what)
    if isinstance(given, pandas.DataFrame):
        return _open_frame(given, what)
    series = given if isinstance(given, pandas.Series) else pandas.Series(given)
    if isinstance(given, pandas.Series):
        restore: Restore = partial(_to_series, given.dtype, given.index, given.name)
    elif isinstance(given, pandas.Index):
        restore = partial(to_pandas, "Index", {"dtype": given.dtype, "name": given.name})
    else:
        restore = partial(to_pandas, "array", {"dtype": given.dtype})
    return Opened(series.to_numpy(dtype=object), np.asarray(series.isna(), dtype=bool), restore)


def _open_polars(given: Any, what: str) -> Opened:
    import polars

    if isinstance(given, polars.DataFrame):
        return _open_frame(given, what)
    if not isinstance(given, polars.Series):
        raise _unknown(given, what)
    values = objects(given.to_list())
    return Opened(values, _absent(values), partial(to_polars, given.dtype, given.name))


def _open_frame(frame: Any, what: str) -> Opened:
    if frame.shape[1] != 1:
        raise not_one_dimensional(frame.shape, what)
    values, absent, restore = open_values(columns_of(frame)[0][1], what)
    return Opened(values, absent, partial(_to_frame, restore))


def _to_numpy(dtype: np.dtype[Any], shape: tuple[int, ...], new: NDArray[Any]) -> NDArray[Any]:
    if dtype.kind == "U":  # a class that no label names may have a longer name
        dtype = np.promote_types(dtype, new.astype(np.str_).dtype)
    return new.astype(dtype, copy=False).reshape(shape)


def _to_masked(dtype: np.dtype[Any], shape: tuple[int, ...], new: NDArray[Any]) -> Any:
    masked = np.fromiter((value is None for value in new), dtype=bool, count=len(new))
    values = np.zeros(len(new), dtype=dtype)
    values[~masked] = new[~masked]
    return np.ma.MaskedArray(values, mask=masked).reshape(shape)


def _to_torch(dtype: Any, device: Any, shape: tuple[int, ...], new: NDArray[Any]) -> Any:
    import torch

    return torch.tensor(new.tolist(), dtype=dtype, device=device).reshape(shape)


def _to_list(new: NDArray[Any]) -> list[Any]:
    return list(new.tolist())


def _to_tuple(new: NDArray[Any]) -> tuple[Any, ...]:
    return tuple(new.tolist())


def _to_series(dtype: Any, index: Any, name: Any, new: NDArray[Any]) -> Any:
    import pandas

    series = pandas.Series(new, index=index, name=name, dtype=object)
    if isinstance(dtype, pandas.CategoricalDtype):
        more = pandas.Index(series.dropna().unique()).difference(dtype.categories)
        dtype = pandas.CategoricalDtype([*dtype.categories, *more], dtype.ordered) if len(more) else dtype
    return series.astype(dtype)


def to_pandas(kind: str, options: dict[str, Any], new: NDArray[Any]) -> Any:
    import pandas

    return getattr(pandas, kind)(new, **options)


def to_polars(dtype: Any, name: str, new: NDArray[Any]) -> Any:
    import polars

    return polars.Series(name, new.tolist(), dtype=dtype)


def _to_frame(restore: Restore, new: NDArray[Any]) -> Any:
    return restore(new).to_frame()


def is_table(annotators: Any) -> bool:
    """Whether it holds labels, a column for each annotator, and not one name per sample."""
    if isinstance(annotators, Mapping) or hasattr(annotators, "columns"):
        return True
    shape = getattr(annotators, "shape", None)
    if shape is not None:
        return len(shape) == 2
    return isinstance(annotators, Sequence) and any(isinstance(row, list | tuple | np.ndarray) for row in annotators)


def values_of(values: Any, what: str) -> NDArray[Any]:
    """Marks or names as an array, as exact as labels are; a masked one is refused, because it would be lost."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.getmaskarray(values).any():
        raise DataError(f"{what} must have a value for every sample. Got a masked array with holes; fill them.")
    if isinstance(values, list | tuple) and values and all(type(value) is int for value in values):
        return exact_numbers(values)
    return np.asarray(values)


def open_matrix(X: Any, what: str) -> NDArray[Any]:
    """A table of numbers from any container; what is missing or masked is NaN."""
    library, is_matrix = library_of(X), getattr(X, "ndim", 0) == 2
    if library == "torch":
        return tensor_as_array(X, what)
    if isinstance(X, np.ma.MaskedArray):
        return np.ma.filled(X.astype(np.complex128 if X.dtype.kind == "c" else np.float32), np.nan)
    if library == "pandas" and is_matrix and not all(isinstance(dtype, np.dtype) for dtype in X.dtypes):
        return np.asarray(X.to_numpy(dtype=np.float64, na_value=np.nan))  # nullable columns hold pandas.NA
    return np.asarray(X.to_numpy() if library == "polars" and hasattr(X, "schema") else X)


def tensor_as_array(tensor: Any, what: str) -> NDArray[Any]:
    """A torch tensor of numbers; numpy has no 16-bit floats of this kind, and nothing for tensors without values."""
    import torch

    try:
        if tensor.is_quantized:
            tensor = tensor.dequantize()
        tensor = tensor.detach().cpu()
        tensor = tensor.to_dense() if tensor.layout != torch.strided else tensor
        tensor = tensor.resolve_conj().resolve_neg()
        array: NDArray[Any] = (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy()
    except (TypeError, RuntimeError, AttributeError) as error:
        raise DataError(
            f"{what} must be a tensor of numbers that numpy can read. Got {type(tensor).__name__} instead: "
            f"{str(error).splitlines()[0]}."
        ) from error
    return array


def listed(values: Sequence[Any] | NDArray[Any], most: int = 5) -> str:
    """The first few, for a message."""
    return ", ".join(map(str, values[:most])) + (", ..." if len(values) > most else "")


def objects(values: Sequence[Any] | NDArray[Any]) -> NDArray[Any]:
    """An array of the items as they are: no conversion of numbers to strings, no nesting."""
    out = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        out[place] = value
    return out


def exact_numbers(values: Sequence[Any]) -> NDArray[Any]:
    """An array of numbers of one type. Whole numbers that neither int64 nor uint64 can hold stay Python's: numpy would
    make float64 of them, and neighbours one number."""
    if values and all(type(value) is int for value in values):
        for kind in (np.int64, np.uint64):
            if np.iinfo(kind).min <= min(values) and max(values) <= np.iinfo(kind).max:
                return np.array(values, dtype=kind)
        return objects(values)
    return np.array(values)


def _drop_column(array: NDArray[Any]) -> NDArray[Any]:
    return array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array


def _absent(values: NDArray[Any]) -> NDArray[np.bool_]:
    if values.dtype.kind == "f":
        return np.asarray(np.isnan(values))
    if values.dtype.kind in "mM":
        return np.asarray(np.isnat(values))
    if values.dtype != object or values.ndim != 1:
        return np.zeros(values.shape[:1], dtype=bool)
    return np.fromiter(map(_is_missing, values), dtype=bool, count=len(values))


def _is_missing(value: Any) -> bool:
    """None, NaN, pandas.NA and NaT; the last three are not equal to themselves, in their own ways."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, Decimal):
        return value.is_nan()
    return isinstance(value, float | np.floating | np.datetime64) and bool(value != value)


def not_one_dimensional(shape: tuple[int, ...], what: str) -> DataError:
    return DataError(f"{what} must be one-dimensional, one per row. Got an array of shape {tuple(shape)} instead.")


def _unknown(given: Any, what: str) -> DataError:
    return DataError(
        f"{what} must be a list, a numpy array, a pandas or polars Series, or a torch tensor. "
        f"Got {type(given).__name__} instead."
    )
