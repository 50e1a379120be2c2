import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from labelmend.ensemble.propagate import conjugate_gradient
from strategies import eighths


def positive_definite(n, condition, seed=0):
    """A symmetric matrix with eigenvalues from 1 / condition to 1."""
    rotation, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(n, n)))
    return (rotation * np.geomspace(1 / condition, 1, n)) @ rotation.T


def solve(matrix, rhs, tolerance=1e-10, max_iter=500, dtype=torch.float64):
    matrix, rhs = torch.as_tensor(matrix, dtype=dtype), torch.as_tensor(rhs, dtype=dtype)
    return conjugate_gradient(lambda x: matrix @ x, rhs, tolerance, max_iter)


def true_residual(matrix, rhs, solution):
    error = rhs - matrix @ solution.value.double().numpy()
    return np.linalg.norm(error, axis=0) / np.linalg.norm(rhs, axis=0)


def test_two_equations_by_hand():
    # 4 x + y = 1, x + 3 y = 2 has x = 1/11, y = 7/11; two distinct eigenvalues take two iterations.
    got = solve([[4.0, 1.0], [1.0, 3.0]], [[1.0], [2.0]])
    np.testing.assert_allclose(got.value, [[1 / 11], [7 / 11]], rtol=1e-12)
    assert got.iterations == 2
    assert got.converged.tolist() == [True]


def test_a_multiple_of_the_identity_takes_one_iteration():
    rhs = np.random.default_rng(0).normal(size=(6, 3))
    got = solve(4 * np.eye(6), rhs)
    np.testing.assert_allclose(got.value, rhs / 4, rtol=1e-12)
    assert got.iterations == 1


@given(eighths((8, 3)), st.integers(0, 9))
def test_a_chosen_solution_is_found(x, seed):
    matrix = positive_definite(8, condition=50, seed=seed)
    got = solve(matrix, matrix @ x)
    np.testing.assert_allclose(got.value, x, rtol=0, atol=1e-7)
    assert got.converged.all()


@given(eighths((12, 4)), st.sampled_from([1, 10, 1000]))
def test_solution_is_that_of_the_dense_solver(rhs, condition):
    matrix = positive_definite(12, condition)
    np.testing.assert_allclose(solve(matrix, rhs).value, np.linalg.solve(matrix, rhs), rtol=0, atol=1e-5)


def test_columns_are_solved_independently():
    matrix, rhs = positive_definite(20, 100), np.random.default_rng(1).normal(size=(20, 3))
    together = solve(matrix, rhs).value
    alone = torch.cat([solve(matrix, rhs[:, [column]]).value for column in range(3)], dim=1)
    torch.testing.assert_close(together, alone, rtol=0, atol=1e-7)


def test_a_zero_column_has_the_solution_zero_and_disturbs_no_other():
    matrix, rhs = positive_definite(10, 100), np.random.default_rng(1).normal(size=(10, 2))
    rhs[:, 0] = 0
    got = solve(matrix, rhs)
    assert (got.value[:, 0] == 0).all()
    assert got.residual[0] == 0
    assert got.converged.tolist() == [True, True]
    np.testing.assert_allclose(got.value[:, 1], np.linalg.solve(matrix, rhs[:, 1]), rtol=0, atol=1e-7)


def test_nothing_to_solve_takes_no_iteration():
    got = solve(np.eye(3), np.zeros((3, 2)))
    assert got.iterations == 0
    assert got.converged.all()


def test_a_column_solved_early_stays_solved_while_others_go_on():
    matrix = positive_definite(60, 1e4)
    easy = np.linalg.eigh(matrix)[1][:, -1]
    rhs = np.stack([easy, np.random.default_rng(2).normal(size=60)], axis=1)
    got = solve(matrix, rhs, tolerance=1e-5, dtype=torch.float32)
    assert got.iterations > 20
    np.testing.assert_allclose(got.value[:, 0], easy, rtol=0, atol=1e-4)


def test_the_iteration_cap_is_reported_as_not_converged():
    matrix, rhs = positive_definite(40, 1e4), np.random.default_rng(3).normal(size=(40, 2))
    got = solve(matrix, rhs, tolerance=1e-8, max_iter=5)
    assert got.iterations == 5
    assert got.converged.tolist() == [False, False]
    np.testing.assert_allclose(got.residual, true_residual(matrix, rhs, got), rtol=1e-9)


def test_convergence_is_reported_per_column():
    matrix = np.diag(np.geomspace(1e-4, 1, 30))
    rhs = np.stack([np.eye(30)[0], np.ones(30)], axis=1)
    assert solve(matrix, rhs, max_iter=4).converged.tolist() == [True, False]


def test_the_residual_is_the_true_one_where_the_recurrence_claims_more_than_float32_has():
    matrix, rhs = positive_definite(200, 1e3), np.random.default_rng(4).normal(size=(200, 3))
    got = solve(matrix, rhs, tolerance=1e-9, max_iter=2000, dtype=torch.float32)
    assert got.iterations < 2000, "the recurrence must have claimed convergence"
    assert not got.converged.any()
    np.testing.assert_allclose(got.residual, true_residual(matrix, rhs, got), rtol=0.3)


def test_the_right_hand_side_is_left_alone():
    rhs = torch.ones(3, 2, dtype=torch.float64)
    conjugate_gradient(lambda x: 2 * x, rhs, 1e-8, 10)
    torch.testing.assert_close(rhs, torch.ones(3, 2, dtype=torch.float64))
