"""Features for the members: ranks to a normal shape, the same way for new rows; columns and copies to know of."""

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import ndtri

from labelmend.evidence import preparation
from labelmend.evidence.inputs import Inputs
from labelmend.evidence.preparation import fit_preparation, groups_of_copies


def skewed(n=200, columns=4, seed=0):
    return np.exp(2 * np.random.default_rng(seed).normal(size=(n, columns)))


def test_every_column_gets_a_normal_shape_by_its_ranks():
    raw = skewed()
    found = fit_preparation(raw)(raw)
    assert_allclose(found.mean(axis=0), 0, atol=1e-9)
    assert_allclose(found.std(axis=0), 1)
    for column in range(4):
        ranks = raw[:, column].argsort().argsort() + 0.5
        expected = ndtri(ranks / 200)
        assert_allclose(found[:, column], expected / expected.std(), atol=1e-9)


def test_equal_values_share_the_mean_of_their_ranks():
    raw = np.array([0.0, 0, 0, 1, 1, 2])[:, None]
    found = fit_preparation(raw)(raw)[:, 0]
    expected = ndtri(np.array([1.5, 1.5, 1.5, 4, 4, 5.5]) / 6)
    assert_allclose(found, (expected - expected.mean()) / expected.std())


@pytest.mark.parametrize("monotone", [np.log, lambda x: 1000 * x - 7, np.sqrt])
def test_a_monotone_map_of_a_column_changes_nothing(monotone):
    raw = skewed()
    assert_allclose(fit_preparation(monotone(raw))(monotone(raw)), fit_preparation(raw)(raw), atol=1e-9)


def test_of_many_distinct_values_knots_come_close_to_the_ranks(monkeypatch):
    raw = skewed(n=5000, columns=1)
    few = fit_preparation(raw)
    assert len(few.values) <= preparation.KNOTS + 2
    monkeypatch.setattr(preparation, "KNOTS", 10_000)
    exact = fit_preparation(raw)
    assert len(exact.values) == 5000
    assert_allclose(few(raw), exact(raw), atol=0.05)
    assert np.abs(few(raw) - exact(raw)).mean() < 0.005
    assert few(raw).argmax() == raw.argmax()


def test_columns_that_never_vary_are_left_out():
    raw = np.insert(skewed(columns=2), 1, 5.0, axis=1)
    found = fit_preparation(raw)
    assert found.columns.tolist() == [0, 2]
    assert found(raw).shape == (200, 2)


def test_many_columns_are_projected_on_orthogonal_components(monkeypatch):
    monkeypatch.setattr(preparation, "WIDE", 6)
    raw = skewed(columns=10)
    assert fit_preparation(raw[:, :6]).components is None
    found = fit_preparation(raw)
    assert_allclose(found.components.T @ found.components, np.eye(6), atol=1e-9)
    variance = found(raw).var(axis=0)
    assert (np.diff(variance) <= 1e-9).all(), "leading components first"
    assert_array_equal(found(raw), fit_preparation(raw)(raw))


def test_a_new_row_goes_the_way_of_the_rows_of_today():
    raw = skewed()
    found = fit_preparation(raw)
    assert_array_equal(found(raw[7:9]), found(raw)[7:9])
    assert_array_equal(found(scipy.sparse.csr_array(raw[:5])), found(raw)[:5])
    ends = found(np.array([[-1e9] * 4, [1e9] * 4]))
    assert_allclose(ends, [found(raw).min(axis=0), found(raw).max(axis=0)])
    between = found((np.sort(raw, axis=0)[:1] + np.sort(raw, axis=0)[1:2]) / 2)[0]
    ordered = np.sort(found(raw), axis=0)
    assert ((ordered[0] < between) & (between < ordered[1])).all()


def test_identical_rows_of_continuous_columns_are_copies():
    rows = np.random.default_rng(0).normal(size=(50, 3))
    assert_array_equal(groups_of_copies(rows), np.arange(50))
    rows[40:] = rows[:10]
    groups = groups_of_copies(rows)
    assert_array_equal(groups[40:], groups[:10])
    assert len(np.unique(groups)) == 40


def test_in_a_table_of_few_distinct_rows_identical_rows_are_different_people():
    rows = np.random.default_rng(0).integers(0, 3, size=(200, 3)).astype(float)
    assert len(np.unique(rows, axis=0)) < 30
    assert_array_equal(groups_of_copies(rows), np.arange(200))


def test_minus_zero_is_zero():
    rows = np.random.default_rng(0).normal(size=(20, 3))
    rows[3], rows[7] = [0.0, 1.5, 2.5], [-0.0, 1.5, 2.5]
    assert groups_of_copies(rows)[3] == groups_of_copies(rows)[7]


def test_inputs_never_list_a_row_among_its_neighbours_and_leave_room_for_copies():
    rows = np.random.default_rng(0).normal(size=(60, 3))
    plain = Inputs.of(rows, None, 0)
    assert plain.neighbours.shape == (60, 10)
    assert not (plain.neighbours == np.arange(60)[:, None]).any()
    doubled = Inputs.of(np.concatenate([rows, rows]), None, 0)
    assert doubled.neighbours.shape == (120, 30)
    assert (doubled.groups[:60] == doubled.groups[60:]).all()


def test_classes_are_known_by_a_label_or_by_a_column_of_the_users_own_model():
    inputs = Inputs.of(np.random.default_rng(0).normal(size=(6, 2)), None, 0)
    given = np.array([0, 0, 2, 2, -1, -1])
    assert inputs.known(given, 4).tolist() == [True, False, True, False]
    named = Inputs(inputs.raw, inputs.preparation, 0, named=np.array([False, True, False, False]))
    assert named.known(given, 4).tolist() == [True, True, True, False]
