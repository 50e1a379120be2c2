import numpy as np
import pytest

from labelmend.evidence.regression import Linear, Regression, Solved, Taught, fit_regression, kernels


def problem(n=40, n_columns=5, n_classes=3, seed=0):
    random = np.random.default_rng(seed)
    inputs = random.normal(size=(n, n_columns))
    given = random.integers(0, n_classes, n)
    given[:3] = -1
    return inputs, given


def answer_without(basis, penalty, inputs, given, left_out, row, n_classes=3):
    """A dense ridge regression that never saw the rows that are left out."""
    features = basis(inputs)
    taught = np.setdiff1d(np.flatnonzero(given >= 0), left_out)
    known, labels = features[taught], np.eye(n_classes)[given[taught]]
    weights = np.linalg.solve(known.T @ known + penalty * np.eye(features.shape[1]), known.T @ labels)
    return features[row] @ weights


@pytest.mark.parametrize("kind", ["linear", "kernel"])
def test_answers_without_the_row_are_those_of_a_regression_that_never_saw_it(kind):
    inputs, given = problem()
    taught = Taught(given, 3, np.arange(len(given)))
    bases = [Linear.of(inputs)] if kind == "linear" else kernels(inputs, 0, 12)
    found = fit_regression(inputs, taught, bases)
    answers = found.without_own(taught)
    for row in range(len(given)):
        expected = answer_without(found.basis, found.penalty, inputs, given, [row], row)
        np.testing.assert_allclose(answers[row], expected, atol=1e-6)


def test_copies_are_left_out_with_the_row():
    inputs, given = problem(n=20)
    inputs, given = np.vstack([inputs, inputs]), np.concatenate([given, np.roll(given, 1)])
    taught = Taught(given, 3, np.arange(40) % 20)
    found = fit_regression(inputs, taught, [Linear.of(inputs)])
    answers = found.without_own(taught)
    for row in (0, 7, 33):
        expected = answer_without(found.basis, found.penalty, inputs, given, [row, (row + 20) % 40], row)
        np.testing.assert_allclose(answers[row], expected, atol=1e-8)


@pytest.mark.parametrize("kind", ["linear", "kernel"])
def test_its_weights_give_the_answers_of_the_whole_regression(kind):
    inputs, given = problem()
    taught = Taught(given, 3, np.arange(len(given)))
    found = fit_regression(inputs, taught, [Linear.of(inputs)] if kind == "linear" else kernels(inputs, 0))
    for row in (0, 5):
        expected = answer_without(found.basis, found.penalty, inputs, given, [], row)
        np.testing.assert_allclose(found(inputs[[row]])[0], expected, atol=1e-4)


def test_penalty_and_basis_are_those_with_the_least_error_without_the_row():
    inputs, given = problem()
    given = (inputs[:, 0] ** 2 > 0.5).astype(int)  # not linear
    taught = Taught(given, 2, np.arange(len(given)))
    bases = [Linear.of(inputs), *kernels(inputs, 0)]
    found = fit_regression(inputs, taught, bases)

    def error(basis, penalty):
        one = fit_regression(inputs, taught, [basis])
        answers = Regression(basis, one.solved, penalty).without_own(taught)
        return ((answers - np.eye(2)[given]) ** 2).mean()

    def penalties(basis) -> list[float]:
        solved: Solved = fit_regression(inputs, taught, [basis]).solved
        return solved.penalties().tolist()

    least = min(error(basis, penalty) for basis in bases for penalty in penalties(basis))
    assert error(found.basis, found.penalty) == pytest.approx(least)
