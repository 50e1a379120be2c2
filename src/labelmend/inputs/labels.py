"""Labels as users have them, as class codes, and back again in the same container.

Knows numpy, pandas, polars and torch containers, imported only where one comes; does not know features.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelmend.errors import DataError
from labelmend.labels import MISSING, Labels


def read_labels(y: Any, missing: Any = None) -> Labels:
    """Encode labels. None, NaN and pandas.NA mean "no label", and so does the value `missing` if it is given."""
    values, absent, restore = _open(y)
    if values.ndim != 1:
        raise _not_one_dimensional(values.shape)
    if missing is not None:
        absent = absent | equal_to(missing, values)
    present = values[~absent]
    refuse_continuous(present)
    classes, inverse = factorize(present)
    codes = np.full(len(values), MISSING, dtype=np.int64)
    codes[~absent] = inverse
    blank = values[absent][0] if absent.any() else None
    labels = Labels(codes, classes, restore, blank, notes=_merged(present))
    _check_return(labels, values, absent)
    return labels


def _check_return(labels: Labels, values: NDArray[Any], absent: NDArray[np.bool_]) -> None:
    """Refuse before the run what would not come back from it as it was given."""
    try:
        returned = _open(labels.decode(labels.codes))[0]
        returned, values = returned[~absent], values[~absent]
        if returned.dtype != values.dtype:  # numpy would compare them as float64, Python compares them as they are
            returned, values = returned.astype(object), values.astype(object)
        odd = np.flatnonzero(~np.asarray(returned == values, dtype=bool))
    except Exception as error:  # a container may refuse a value in its own way
        raise DataError(
            f"labels must fit back into what they came in. They do not ({type(error).__name__}: {error}); give them as "
            "a list or as text."
        ) from error
    if len(odd):
        raise DataError(
            f"labels must come back as they were given. {values[odd[0]]!r} would come back as {returned[odd[0]]!r}; "
            "give them as text."
        )


def _merged(present: NDArray[Any]) -> tuple[str, ...]:
    """Values of several types that are equal, and so are one class: 1, True and 1.0."""
    if present.dtype != object:
        return ()
    pairs = list(dict.fromkeys(zip(map(type, present), present, strict=True)))
    spellings: dict[Any, dict[str, None]] = {}
    for _, value in pairs:
        spellings.setdefault(value, {})[repr(value.item() if isinstance(value, np.generic) else value)] = None
    several = [", ".join(words) for words in spellings.values() if len(words) > 1]
    if not several:
        return ()
    named = "; ".join(several[:3])
    return (f"labels that are equal are one class, though they are of several types: {named}. Give text to tell them.",)


def equal_to(wanted: Any, values: NDArray[Any]) -> NDArray[np.bool_]:
    """Where the values equal one; what cannot be compared with it does not."""

    def same(value: Any) -> bool:
        try:
            return bool(value == wanted)
        except Exception:  # pandas.NA is neither, and arrays are several answers
            return False

    return np.fromiter(map(same, values), dtype=bool, count=len(values))


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


def values_of(values: Any, what: str) -> NDArray[Any]:
    """Marks or names as an array, as exact as labels are; a masked one is refused, because it would be lost."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.getmaskarray(values).any():
        raise DataError(f"{what} must have a value for every sample. Got a masked array with holes; fill them.")
    if isinstance(values, list | tuple) and values and all(type(value) is int for value in values):
        return exact_numbers(values)
    return np.asarray(values)


Restore = Callable[[NDArray[Any]], Any]

Opened = tuple[NDArray[Any], NDArray[np.bool_], Restore]  # values, which are missing, how to put values back


def _open(y: Any) -> Opened:
    """Any container. What puts values back is a partial of a plain function, so that a result can be pickled."""
    module = type(y).__module__.split(".")[0]
    if module == "pandas":
        return _open_pandas(y)
    if module == "polars":
        return _open_polars(y)
    if isinstance(y, np.ma.MaskedArray):
        return _open_masked(y)
    if module == "torch":
        array = tensor_as_array(y, "labels")
        return _drop_column(array), _absent(_drop_column(array)), partial(_to_torch, y.dtype, y.device, array.shape)
    if isinstance(y, Sequence) and not isinstance(y, str | bytes):
        values = objects(y)
        return values, _absent(values), _to_tuple if isinstance(y, tuple) else _to_list
    if hasattr(y, "__array__"):
        array = np.asarray(y)
        return _drop_column(array), _absent(_drop_column(array)), partial(_to_numpy, array.dtype, array.shape)
    raise _unknown_container(y)


def _open_masked(y: Any) -> Opened:
    """A masked label is a missing one, and stays masked where nothing is found for it."""
    flat = _drop_column(y)
    masked = np.ma.getmaskarray(flat)
    if flat.ndim != 1:
        return np.asarray(flat), masked, _to_list  # refused for its shape
    plain = np.asarray(flat)
    values = plain.astype(object)
    values[masked] = None
    return values, masked | _absent(plain), partial(_to_masked, y.dtype, y.shape)


def _open_pandas(y: Any) -> Opened:
    import pandas

    if isinstance(y, pandas.MultiIndex):
        raise _not_one_dimensional((len(y), y.nlevels))
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
    if isinstance(value, Decimal):
        return value.is_nan()
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
    except Exception:  # a TypeError of lists; other things refuse in their own ways
        raise DataError(
            "labels must be single values such as strings or numbers. Got lists or other containers instead."
        ) from None
    try:
        ordered = sorted(distinct)
    except Exception:  # values of several libraries refuse each other in their own ways
        ordered = sorted(distinct, key=lambda v: (type(v).__name__, str(v)))
    place = {value: position for position, value in enumerate(ordered)}
    inverse = np.fromiter((place[value] for value in present), dtype=np.intp, count=len(present))
    # Numbers of one type become an array of numbers: what compares predictions with labels expects that.
    types = {type(value) for value in ordered}
    numbers = len(types) == 1 and all(t in (int, bool, float) or issubclass(t, np.number | np.bool_) for t in types)
    return exact_numbers(ordered) if numbers else objects(ordered), inverse


def exact_numbers(values: Sequence[Any]) -> NDArray[Any]:
    """An array of numbers of one type. Whole numbers that neither int64 nor uint64 can hold stay Python's: numpy would
    make float64 of them, and neighbours one number."""
    if values and all(type(value) is int for value in values):
        for kind in (np.int64, np.uint64):
            if np.iinfo(kind).min <= min(values) and max(values) <= np.iinfo(kind).max:
                return np.array(values, dtype=kind)
        return objects(values)
    return np.array(values)
