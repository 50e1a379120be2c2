import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
import torch

from labelmend.errors import DataError
from labelmend.inputs.features import bad_rows, check_features, conflicting_duplicates, fit_scaler, read_features

ROWS = np.arange(12, dtype=np.float64).reshape(6, 2) % 5


@pytest.mark.parametrize(
    "given",
    [
        ROWS,
        ROWS.astype(np.int8),
        ROWS.astype(object),
        ROWS.tolist(),
        np.asfortranarray(ROWS),
        pd.DataFrame(ROWS),
        pd.DataFrame(ROWS).astype({0: "int64"}),
        pd.DataFrame(ROWS).astype({0: "category", 1: "Int64"}),
        pd.DataFrame(ROWS, dtype="Int64"),
        pd.DataFrame(ROWS, dtype=object),
        pl.DataFrame(ROWS),
        torch.tensor(ROWS, dtype=torch.bfloat16, requires_grad=True),
    ],
    ids=[
        "f8",
        "i1",
        "object",
        "list",
        "fortran",
        "pandas",
        "pandas ints",
        "pandas categories",
        "pandas Int64",
        "pandas object",
        "polars",
        "torch bf16",
    ],
)
def test_numbers_of_any_container_become_float32(given):
    np.testing.assert_array_equal(read_features(given), ROWS.astype(np.float32), strict=True)


@pytest.mark.parametrize("kind", ["csr_array", "csc_matrix", "coo_array", "lil_matrix"])
def test_sparse_features_become_csr(kind):
    matrix = read_features(getattr(scipy.sparse, kind)(ROWS))
    assert (matrix.format, matrix.dtype) == ("csr", np.float32)
    np.testing.assert_array_equal(matrix.toarray(), ROWS)


def test_entries_of_a_sparse_matrix_stored_twice_are_added_up_without_touching_the_matrix():
    given = scipy.sparse.csr_matrix(
        (np.array([1, 2, 3], dtype=np.float32), np.array([1, 1, 0]), np.array([0, 2, 3])), shape=(2, 2)
    )
    np.testing.assert_array_equal(read_features(given).data, [3, 3])
    np.testing.assert_array_equal(given.data, [1, 2, 3])


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_true_and_false_are_one_and_zero(frame):
    matrix = read_features(frame({"a": [True, False], "b": [0.5, 2.0]}))
    np.testing.assert_array_equal(matrix, np.array([[1, 0.5], [0, 2]], dtype=np.float32), strict=True)


@pytest.mark.parametrize("given", [np.arange(5.0), np.zeros((3, 2, 2)), np.array(1.0), [1.0, 2.0], torch.zeros(3)])
def test_features_that_are_not_two_dimensional_are_refused(given):
    with pytest.raises(DataError, match=r"two-dimensional.*shape \(.*Reshape your data"):
        read_features(given)


def test_one_dimensional_sparse_features_are_refused():
    features = scipy.sparse.coo_array(np.arange(3))
    if features.ndim != 1:
        pytest.skip("scipy before 1.13 has no such arrays")
    with pytest.raises(DataError, match=r"two-dimensional.*sparse.*\(3,\)"):
        read_features(features)


@pytest.mark.parametrize(
    "given", [ROWS * 1j, scipy.sparse.csr_array(ROWS * 1j), torch.tensor(ROWS * 1j), pd.DataFrame(ROWS * 1j)]
)
def test_complex_features_are_refused(given):
    with pytest.raises(DataError, match=r"features .*real numbers.*complex"):
        read_features(given)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_columns_that_are_not_numbers_are_named(frame):
    table = frame({"size": [1.0, 2.0], "colour": ["red", "blue"], "place": ["x", "y"]})
    with pytest.raises(DataError, match=r"features .*2 column.*: colour, place\."):
        read_features(table)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_dates_are_not_numbers(frame):
    days = pd.date_range("2020-01-01", periods=2)
    table = frame({"size": [1.0, 2.0], "day": list(days)})
    with pytest.raises(DataError, match=r"features .*1 column.*: day\."):
        read_features(table)


@pytest.mark.parametrize("given", [[["a", "b"], ["c", "d"]], [[1, 2], [3]], np.array([[{}, {}]]), "text"])
def test_what_is_no_table_of_numbers_is_refused(given):
    with pytest.raises(DataError, match=r"features must be"):
        read_features(given)


def test_a_column_is_needed():
    with pytest.raises(DataError, match=r"features .*at least one column"):
        check_features(read_features(np.empty((6, 0))))


def test_fewer_than_five_rows_are_refused():
    check_features(read_features(ROWS[:5]))
    with pytest.raises(DataError, match=r"features must have at least 5 rows\. Got 4 instead\."):
        check_features(read_features(ROWS[:4]))


@pytest.mark.parametrize("make", [np.array, scipy.sparse.csr_array, pd.DataFrame, torch.tensor, pl.DataFrame])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_rows_with_nan_or_infinity_are_named(make, value):
    rows = ROWS.copy()
    rows[1, 0] = rows[4, 1] = value
    with pytest.raises(DataError, match=r"finite .*2 of 6 .*rows 1, 4\)"):
        check_features(read_features(make(rows)))


def test_numbers_too_large_for_float32_are_refused_as_infinite():
    rows = ROWS.copy()
    rows[3, 0] = 1e300
    with pytest.raises(DataError, match=r"32 bits.*1 of 6 .*rows 3\)"):
        check_features(read_features(rows))


@pytest.mark.parametrize("table", [pd.DataFrame({"a": [1, pd.NA]}, dtype="Int64"), pl.DataFrame({"a": [1, None]})])
def test_missing_values_of_a_table_are_nan(table):
    assert bad_rows(read_features(table)).tolist() == [1]


def test_many_bad_rows_are_counted_and_the_first_named():
    rows = np.full((9, 2), np.nan)
    with pytest.raises(DataError, match=r"in 9 of 9 rows instead \(rows 0, 1, 2, 3, 4, \.\.\.\)"):
        check_features(read_features(rows))


def test_infinities_of_both_signs_do_not_cancel():
    assert bad_rows(read_features([[1.0, 2.0], [np.inf, -np.inf]])).tolist() == [1]


def test_bad_rows_of_a_sparse_matrix_are_found_beside_stored_zeros():
    matrix = scipy.sparse.csr_array(
        (np.array([0.0, 1.0, np.nan]), np.array([0, 1, 0]), np.array([0, 1, 2, 3])), shape=(3, 2)
    )
    assert bad_rows(read_features(matrix)).tolist() == [2]


@pytest.mark.parametrize("make", [np.array, scipy.sparse.csr_array])
def test_constant_features_are_refused(make):
    with pytest.raises(DataError, match=r"features .*differ.*constant"):
        check_features(read_features(make(np.full((6, 3), 2.5))))


def test_one_varying_column_is_enough():
    rows = np.ones((6, 3))
    rows[2, 1] = 2
    check_features(read_features(rows))


def test_columns_alike_share_one_scale():
    rows = np.random.default_rng(0).normal(size=(200, 2)) * [1.0, 3.0] + [5.0, -2.0]
    scaled = fit_scaler(read_features(rows), 0)(read_features(rows))
    np.testing.assert_allclose(scaled.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose((scaled**2).mean(), 1, rtol=1e-5)
    np.testing.assert_allclose(scaled[:, 1].std() / scaled[:, 0].std(), rows[:, 1].std() / rows[:, 0].std(), rtol=1e-5)


def test_columns_of_very_different_spread_get_a_scale_each():
    rows = np.random.default_rng(0).normal(size=(200, 3)) * [1.0, 1.0, 1000.0]
    scaled = fit_scaler(read_features(rows), 0)(read_features(rows))
    np.testing.assert_allclose(scaled.std(axis=0), 1, rtol=1e-5)


def test_a_constant_column_is_left_at_zero_and_does_not_explode_on_new_rows():
    rows = np.random.default_rng(0).normal(size=(7, 3)) * [1.0, 1.0, 1000.0]
    rows = np.hstack([rows, np.full((7, 1), 0.1)])
    scaler = fit_scaler(read_features(rows), 0)
    np.testing.assert_array_equal(scaler(read_features(rows))[:, 3], 0)
    rows[:, 3] = 0.2
    np.testing.assert_allclose(scaler(read_features(rows))[:, 3], 0.1, rtol=1e-5)


def test_sparse_rows_are_scaled_as_dense_ones():
    dense, sparse = read_features(ROWS), read_features(scipy.sparse.csr_array(ROWS))
    np.testing.assert_array_equal(fit_scaler(sparse, 0)(sparse), fit_scaler(dense, 0)(dense), strict=True)


def test_a_wide_sparse_matrix_is_projected_with_its_distances_kept():
    random = np.random.default_rng(0)
    rows = random.normal(size=(40, 6)) @ random.normal(size=(6, 400))
    matrix = read_features(scipy.sparse.csr_array(rows))
    scaler = fit_scaler(matrix, seed=2**40)
    scaled = scaler(matrix)
    assert (scaler.n_columns, scaler.n_inputs) == (400, 39)
    assert scaled.shape == (40, 39)
    ratio = np.linalg.norm(scaled[1:] - scaled[0], axis=1) / np.linalg.norm(rows[1:] - rows[0], axis=1)
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-3)


@pytest.mark.parametrize("make", [np.array, scipy.sparse.csr_array])
def test_identical_rows_with_different_labels_are_listed(make):
    rows = make(np.array([[0, 1], [2, 0], [0, 1], [2, 0], [3, 3], [0, 1], [2, 0]], dtype=float))
    assert conflicting_duplicates(read_features(rows), np.array([0, 1, 0, 2, 1, 1, -1])) == [[0, 2, 5], [1, 3, 6]]


def test_identical_rows_that_agree_are_not_listed():
    rows = read_features([[0.0, 1.0], [0.0, 1.0], [2.0, 2.0], [2.0, 2.0]])
    assert conflicting_duplicates(rows, np.array([1, 1, 0, -1])) == []


def test_minus_zero_and_stored_zeros_are_zero():
    assert conflicting_duplicates(read_features([[0.0, 1.0], [-0.0, 1.0]]), np.array([0, 1])) == [[0, 1]]
    stored = scipy.sparse.csr_array((np.array([0.0, 1.0, 1.0]), np.array([0, 1, 1]), np.array([0, 2, 3])), shape=(2, 2))
    assert conflicting_duplicates(read_features(stored), np.array([0, 1])) == [[0, 1]]
