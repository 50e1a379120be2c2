"""Labels as class codes, and whether they can be corrected at all.

Knows values and classes; `containers.py` knows what they come in. Does not know features.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelmend.errors import DataError
from labelmend.inputs.containers import exact_numbers, not_one_dimensional, objects, open_values
from labelmend.labels import MISSING, Labels


def read_labels(y: Any, missing: Any = None) -> Labels:
    """Encode labels. None, NaN and pandas.NA mean "no label", and so does the value `missing` if it is given."""
    values, absent, restore = open_values(y, "labels")
    if values.ndim != 1:
        raise not_one_dimensional(values.shape, "labels")
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
        returned = open_values(labels.decode(labels.codes), "labels").values
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
