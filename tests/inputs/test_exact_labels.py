"""Labels come back exactly as they were given, or are refused before a run."""

from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch

import labelmend
from blobs import QUICK, blobs, plant
from labelmend.cli.reading import missing_value
from labelmend.config import as_arguments
from labelmend.errors import DataError, LabelmendWarning
from labelmend.inputs.annotators import read_table
from labelmend.inputs.containers import exact_numbers
from labelmend.inputs.features import read_features
from labelmend.inputs.labels import read_labels

BIG = 2**63
LARGE = [1, BIG, BIG + 1, 2**64 - 1] * 3
WHOLE = {
    "list": list,
    "tuple": tuple,
    "numpy": lambda values: np.array(values, dtype=np.uint64),
    "numpy objects": lambda values: np.array(values, dtype=object),
    "pandas": lambda values: pd.Series(values, dtype="uint64"),
    "pandas nullable": lambda values: pd.Series(values, dtype="UInt64"),
    "pandas index": lambda values: pd.Index(values, dtype="uint64"),
    "polars": lambda values: pl.Series("y", values, dtype=pl.UInt64),
    "torch": lambda values: torch.tensor(values, dtype=torch.uint64),
}


def plain(values):
    return values.tolist() if hasattr(values, "tolist") else values.to_list() if hasattr(values, "to_list") else values


@pytest.mark.parametrize("name", WHOLE)
def test_whole_numbers_beyond_int64_come_back_as_they_are(name):
    given = WHOLE[name](LARGE)
    labels = read_labels(given)
    assert labels.classes.tolist() == sorted(set(LARGE))
    back = labels.decode(labels.codes)
    assert type(back) is type(given)
    assert list(plain(back)) == LARGE


@pytest.mark.parametrize("values", [[-1, BIG], [1, 2**64], [-(2**70), 3]])
def test_whole_numbers_that_no_array_of_numpy_can_hold_come_back(values):
    labels = read_labels(values * 4)
    assert labels.decode(labels.codes) == values * 4
    assert exact_numbers(values).tolist() == values


def test_a_run_on_large_whole_numbers_keeps_them_to_the_last_digit(tmp_path):
    features, true = blobs(60)
    names = [BIG - 1, BIG, BIG + 1]
    given = [names[code] for code in plant(true, 0.1)[0]]
    result = labelmend.correct(features, given, ids=[BIG + i for i in range(59)] + [5], expert=QUICK)
    kept = result.status == "kept"
    assert kept.any()
    assert [label for label, is_kept in zip(result.labels, kept, strict=True) if is_kept] == [
        label for label, is_kept in zip(given, kept, strict=True) if is_kept
    ]
    again = labelmend.load(result.save(tmp_path / "run"))
    assert again.labels.tolist() == result.labels
    assert again.ids.tolist() == [str(BIG + i) for i in range(59)] + ["5"]
    table = pytest.importorskip("pyarrow.parquet")
    result.export("parquet", tmp_path / "out.parquet")
    assert table.read_table(tmp_path / "out.parquet")["label"].to_pylist() == result.labels


def test_a_missing_value_among_large_numbers_is_that_very_one():
    assert missing_value(str(BIG), [BIG + 1, BIG - 1, BIG]) == BIG
    assert missing_value(str(BIG), [BIG + 1, BIG - 1]) is None
    assert missing_value("-1", [3.0, -1.0]) == -1.0


class Lossy:
    """A container that gives other labels back than it got."""

    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values)


def test_labels_that_would_not_come_back_are_refused_before_the_run(monkeypatch):
    monkeypatch.setattr("labelmend.inputs.containers._to_numpy", lambda dtype, shape, new: new.astype(float))
    with pytest.raises(DataError, match=r"9007199254740993.* would come back as"):
        read_labels(np.array([2**53 + 1, 2**53, 2**53 + 1, 2**53]))

    def refuse(*_):
        raise OverflowError("too large")

    monkeypatch.setattr("labelmend.inputs.containers._to_numpy", refuse)
    with pytest.raises(DataError, match="OverflowError: too large"):
        read_labels(Lossy([1, 2, 1, 2]))


# Masks


def test_a_masked_label_is_a_missing_one_and_comes_back_in_a_masked_array():
    given = np.ma.array([1, 99, 2, 1, 99, 2], mask=[0, 1, 0, 0, 1, 0])
    labels = read_labels(given)
    assert labels.classes.tolist() == [1, 2]
    assert labels.codes.tolist() == [0, -1, 1, 0, -1, 1]
    back = labels.decode(np.array([0, 1, 1, 0, -1, 1]))
    assert isinstance(back, np.ma.MaskedArray)
    assert back.dtype == given.dtype
    assert back.tolist() == [1, 2, 2, 1, None, 2]


def test_a_masked_label_of_an_annotator_was_not_said():
    table = np.ma.array([[1, 2], [2, 2], [1, 1]], mask=[[0, 1], [0, 0], [1, 0]])
    assert [column.tolist() for column in read_table(table).absent] == [[False, False, True], [True, False, False]]


def test_a_masked_feature_is_as_good_as_nan():
    features = np.ma.array(np.arange(12, dtype=np.int64).reshape(6, 2), mask=False)
    features[3, 1] = np.ma.masked
    assert np.isnan(read_features(features)).tolist() == [[False, False]] * 3 + [[False, True]] + [[False, False]] * 2
    with pytest.raises(DataError, match=r"1 of 6 rows instead \(rows 3\)"):
        labelmend.correct(features, [0, 1] * 3)


@pytest.mark.parametrize("name", ["ids", "trusted"])
def test_holes_in_what_must_be_whole_are_refused(name):
    features, true = blobs(30)
    given = np.ma.array(np.arange(30), mask=np.arange(30) == 4)
    with pytest.raises(DataError, match=f"{name} must have a value for every sample"):
        labelmend.correct(features, true, **as_arguments({**QUICK, **{name: given}}))


# Equal values of several types


@pytest.mark.parametrize("given", [[1, True, 1.0, 2, 2], [0, False, 3, 3], [1, Decimal(1), 2, 2], [1, np.True_, 2, 2]])
def test_labels_that_are_equal_in_several_types_are_told(given):
    assert len(read_labels(given).notes) == 1


@pytest.mark.parametrize("given", [[1, np.int64(1), 2, 2], ["1", 1, "1", 1], [True, False, True], [1.0, 2.0, 1.0]])
def test_labels_of_one_spelling_or_of_different_values_are_not(given):
    assert read_labels(given).notes == ()


def test_the_note_reaches_the_result():
    features, true = blobs(40)
    given = [True if code == 1 and row % 2 else int(code) for row, code in enumerate(true)]
    with pytest.warns(LabelmendWarning, match="True, 1"):
        result = labelmend.correct(features, given, expert=QUICK)
    assert any("several types" in note for note in result.warnings)


# What other libraries have


def test_a_decimal_that_is_no_number_is_missing():
    labels = read_labels([Decimal("NaN"), Decimal("sNaN"), Decimal(1), Decimal(2), Decimal(1)])
    assert labels.codes.tolist() == [-1, -1, 0, 1, 0]


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_tensors_without_values_are_refused_and_odd_ones_are_read():
    with pytest.raises(DataError, match="features must be a tensor"):
        read_features(torch.zeros(8, 2, device="meta"))
    with pytest.raises(DataError, match="labels must be a tensor"):
        read_labels(torch.zeros(8, dtype=torch.int64, device="meta"))
    quantised = torch.quantize_per_tensor(torch.arange(12.0).reshape(6, 2), 1.0, 0, torch.quint8)
    for tensor in (quantised, quantised.dequantize().bfloat16(), quantised.dequantize().to_sparse()):
        np.testing.assert_array_equal(read_features(tensor), np.arange(12).reshape(6, 2))
    labels = read_labels(torch.tensor([1, 2, 1, 2], dtype=torch.bfloat16))
    assert labels.decode(labels.codes).dtype == torch.bfloat16


def test_frames_that_are_not_read_yet_and_names_of_several_levels_are_refused():
    lazy = pl.DataFrame({"a": [1.0] * 6, "b": [2.0] * 6}).lazy()
    with pytest.raises(DataError, match="LazyFrame"):
        read_features(lazy)
    with pytest.raises(DataError, match="LazyFrame"):
        read_labels(lazy)
    with pytest.raises(DataError, match="one-dimensional"):
        read_labels(pd.MultiIndex.from_tuples([("a", 1), ("b", 2)]))
