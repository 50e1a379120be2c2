import pickle

import numpy as np
import pandas as pd
import polars as pl
import polars.testing
import pytest
import torch

from labelmend.errors import DataError
from labelmend.inputs.labels import check_classes, read_labels

TEXT = ["b", "a", "b", "c"]
CODES = [1, 0, 1, 2]


def same(first, second):
    """Equal in type, values, dtype, index and name."""
    assert type(first) is type(second)
    if isinstance(second, pd.Series):
        pd.testing.assert_series_equal(first, second)
    elif isinstance(second, pd.DataFrame):
        pd.testing.assert_frame_equal(first, second)
    elif isinstance(second, pd.Index):
        pd.testing.assert_index_equal(first, second, exact=True)
    elif isinstance(second, pd.api.extensions.ExtensionArray):
        pd.testing.assert_extension_array_equal(first, second)
    elif isinstance(second, pl.Series):
        polars.testing.assert_series_equal(first, second)
    elif isinstance(second, pl.DataFrame):
        polars.testing.assert_frame_equal(first, second)
    elif isinstance(second, torch.Tensor):
        torch.testing.assert_close(first, second, rtol=0, atol=0)
    elif isinstance(second, np.ndarray):
        np.testing.assert_array_equal(first, second, strict=True)
    else:
        assert first == second
        assert list(map(type, first)) == list(map(type, second))


CONTAINERS = {
    "list of strings": TEXT,
    "list of ints": [7, 3, 7, 9],
    "list of bools": [True, False, True, True],
    "tuple": tuple(TEXT),
    "numpy strings": np.array(TEXT),
    "numpy objects": np.array(TEXT, dtype=object),
    "numpy objects that are ints": np.array([7, 3, 7, 9], dtype=object),
    "numpy uint8": np.array([7, 3, 7, 9], dtype=np.uint8),
    "numpy whole floats": np.array([1.0, 0.0, 1.0, 2.0], dtype=np.float32),
    "numpy bools": np.array([True, False, True, False]),
    "numpy dates": np.array(["2020-01-02", "2020-01-01", "2020-01-02", "2021-01-01"], dtype="datetime64[D]"),
    "numpy column": np.array([[7], [3], [7], [9]]),
    "torch": torch.tensor([7, 3, 7, 9], dtype=torch.int32),
    "torch column": torch.tensor([[7], [3], [7], [9]]),
    "torch bools": torch.tensor([True, False, True, False]),
    "pandas strings": pd.Series(TEXT, index=[5, 9, 2, 4], name="kind"),
    "pandas objects": pd.Series(TEXT, dtype=object),
    "pandas int16": pd.Series([7, 3, 7, 9], dtype="int16", index=list("wxyz")),
    "pandas nullable ints": pd.Series([7, 3, 7, 9], dtype="Int64"),
    "pandas nullable bools": pd.Series([True, False, True, False], dtype="boolean"),
    "pandas categories": pd.Series(TEXT, dtype=pd.CategoricalDtype(["c", "b", "a", "z"], ordered=True)),
    "pandas frame": pd.DataFrame({"kind": TEXT}, index=[5, 9, 2, 4]),
    "pandas index": pd.Index([7, 3, 7, 9], name="kind"),
    "pandas array": pd.array([7, 3, 7, 9], dtype="Int32"),
    "pandas categorical": pd.Categorical(TEXT),
    "polars strings": pl.Series("kind", TEXT),
    "polars categories": pl.Series("kind", TEXT, dtype=pl.Enum(["c", "b", "a"])),
    "polars ints": pl.Series("kind", [7, 3, 7, 9], dtype=pl.UInt16),
    "polars frame": pl.DataFrame({"kind": TEXT}),
}


@pytest.mark.parametrize("name", CONTAINERS)
def test_labels_come_back_in_their_container(name):
    given = CONTAINERS[name]
    labels = read_labels(given)
    assert len(labels.classes) == labels.codes.max() + 1
    same(labels.decode(labels.codes), given)


@pytest.mark.parametrize("name", CONTAINERS)
def test_the_way_back_survives_pickling(name):
    labels = read_labels(CONTAINERS[name])
    again = pickle.loads(pickle.dumps(labels))
    same(again.decode(again.codes), CONTAINERS[name])


@pytest.mark.parametrize("name", ["list of strings", "numpy strings", "pandas categories", "polars strings"])
def test_codes_follow_the_sorted_classes(name):
    labels = read_labels(CONTAINERS[name])
    assert labels.codes.tolist() == CODES
    assert labels.classes.tolist() == ["a", "b", "c"]


def test_other_codes_give_other_labels_in_the_same_container():
    given = CONTAINERS["pandas categories"]
    changed = read_labels(given).decode(np.array([0, 0, 2, 2]))
    same(changed, pd.Series(["a", "a", "c", "c"], dtype=given.dtype))


@pytest.mark.parametrize("name", ["list of ints", "numpy objects that are ints", "pandas nullable ints", "polars ints"])
def test_classes_that_are_all_numbers_are_an_array_of_numbers(name):
    assert read_labels(CONTAINERS[name]).classes.dtype == np.int64


@pytest.mark.parametrize(
    "given",
    [
        ["a", None, "b", "a"],
        ("a", float("nan"), "b", "a"),
        np.array(["a", None, "b", "a"], dtype=object),
        np.array(["a", np.nan, "b", "a"], dtype=object),
        np.array([0.0, np.nan, 1.0, 0.0]),
        np.array(["2020-01-01", "NaT", "2021-01-01", "2020-01-01"], dtype="datetime64[D]"),
        pd.Series(["a", None, "b", "a"]),
        pd.Series(["a", pd.NA, "b", "a"], dtype=object),
        pd.Series([0, pd.NA, 1, 0], dtype="Int64"),
        pd.Series(["a", None, "b", "a"], dtype="category"),
        pd.Series(pd.to_datetime(["2020-01-01", None, "2021-01-01", "2020-01-01"])),
        pl.Series(["a", None, "b", "a"]),
        torch.tensor([0.0, float("nan"), 1.0, 0.0]),
    ],
    ids=lambda given: f"{type(given).__module__}.{type(given).__name__} {getattr(given, 'dtype', '')}",
)
def test_none_nan_and_na_are_missing_labels_and_can_be_filled(given):
    labels = read_labels(given)
    assert labels.codes.tolist() == [0, -1, 1, 0]
    filled = labels.decode(np.array([0, 1, 1, 0]))
    assert type(filled) is type(given)
    assert list(filled) == [given[0], given[2], given[2], given[0]]


@pytest.mark.parametrize(
    ("given", "missing"),
    [
        (np.array([0, -1, 1, 0]), -1),
        ([0, -1, 1, 0], -1),
        (torch.tensor([0, -1, 1, 0]), -1),
        (pd.Series(["a", "?", "b", "a"]), "?"),
        (pl.Series(["a", "?", "b", "a"]), "?"),
    ],
)
def test_a_declared_value_is_a_missing_label(given, missing):
    assert read_labels(given, missing).codes.tolist() == [0, -1, 1, 0]
    assert read_labels(given).codes.min() == 0, "and only where it is declared"


def test_values_are_none_where_there_is_no_label():
    labels = read_labels(["a", None, "b"])
    assert labels.values(labels.codes).tolist() == ["a", None, "b"]


def test_classes_that_cannot_be_ordered_are_sorted_by_type_and_text():
    labels = read_labels(["b", 2, "a", 1])
    assert labels.classes.tolist() == [1, 2, "a", "b"]
    assert labels.decode(labels.codes) == ["b", 2, "a", 1]


@pytest.mark.parametrize(
    "given",
    [[0.5, 1.0], np.array([0.0, 1.25]), pd.Series([0.1, 0.2]), np.array([0.0, np.inf]), [0, 1] * 600 + [0.5]],
)
def test_continuous_labels_are_refused(given):
    with pytest.raises(DataError, match=r"labels .*continuous"):
        read_labels(given)


def test_complex_labels_are_refused():
    with pytest.raises(DataError, match=r"labels must be classes\. Got complex numbers instead"):
        read_labels(np.array([1j, 2j]))


@pytest.mark.parametrize(
    "given",
    [
        np.zeros((4, 2)),
        np.zeros((2, 2, 1)),
        np.array(3),
        torch.zeros(4, 2),
        pd.DataFrame({"a": [1], "b": [2]}),
        pl.DataFrame({"a": [1], "b": [2]}),
    ],
)
def test_labels_of_several_dimensions_are_refused(given):
    with pytest.raises(DataError, match=r"labels .*one-dimensional.*shape \("):
        read_labels(given)


def test_lists_of_lists_are_refused():
    with pytest.raises(DataError, match=r"labels .*single values.*lists"):
        read_labels([[1, 0], [0, 1]])


@pytest.mark.parametrize("given", ["abc", 3, None, {1: 2}, pl.LazyFrame({"kind": TEXT})])
def test_what_holds_no_labels_is_refused(given):
    with pytest.raises(DataError, match=rf"labels must be a list, .*\. Got {type(given).__name__} instead\."):
        read_labels(given)


@pytest.mark.parametrize(
    ("given", "found"),
    [(["a", "a", None], "only the class 'a'"), ([None, None], "no label at all"), ([], "no label at all")],
)
def test_fewer_than_two_classes_are_refused(given, found):
    with pytest.raises(DataError, match=rf"labels must hold at least two classes\. Got {found} instead\."):
        check_classes(read_labels(given))


def test_labels_that_are_all_different_are_refused():
    with pytest.raises(DataError, match=r"labels .*3 labelled rows.*3 different"):
        check_classes(read_labels(["x1", "x2", None, "x3"]))


def test_one_repeated_label_is_enough_to_go_on():
    check_classes(read_labels(["x1", "x2", "x3", "x1"]))
