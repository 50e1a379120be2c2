"""The pool against a slow reference written from its formulas, and what must be true of it."""

import numpy as np
import pytest
from made_pools import pool_of, sure_of
from numpy.testing import assert_allclose

import reference
from labelmend.decision import pool as stage
from labelmend.decision.pool import fit_pool, rate_weights, transition_at


def problem(n=300, n_classes=3, noise=0.2, seed=0):
    """(scores by three members, given labels, true ones): one good, one fair, one of nothing but chance."""
    rng = np.random.default_rng(seed)
    true = rng.integers(0, n_classes, n)
    hint = 2.0 * np.eye(n_classes)[true]
    scores = {
        name: (weight * hint + rng.normal(size=hint.shape)).astype(np.float32)
        for name, weight in (("good", 1.5), ("fair", 0.6), ("chance", 0.0))
    }
    wrong = rng.random(n) < noise
    given = np.where(wrong, (true + rng.integers(1, n_classes, n)) % n_classes, true)
    return scores, given, true


def data_of(scores, given, trusted=None):
    stacked = np.stack(list(scores.values()), axis=2)
    trusted = np.zeros(len(given), bool) if trusted is None else trusted
    return stage._Data.of(stacked, given, trusted, np.ones(stacked.shape[1], bool)), stacked.astype(float)


def fit(scores, given, trusted=None, known=None):
    n_classes = next(iter(scores.values())).shape[1]
    trusted = np.zeros(len(given), bool) if trusted is None else trusted
    return fit_pool(scores, given, trusted, np.ones(n_classes, bool) if known is None else known)


def some_transition(n_classes=3, seed=1):
    T = np.random.default_rng(seed).random((n_classes, n_classes)) + 3 * np.eye(n_classes)
    return T / T.sum(axis=1, keepdims=True)


def test_the_objective_is_that_of_the_formulas_and_its_gradient_that_of_finite_differences():
    scores, given, _ = problem(40)
    trusted = np.arange(40) % 7 == 0
    data, stacked = data_of(scores, given, trusted)
    T, theta = some_transition(), np.array([0.7, 0.2, 0.4, 0.3, -0.5, 0.1])
    value, gradient = stage._objective(data, theta, T)
    assert value == pytest.approx(reference.pool_objective(theta, stacked, given, trusted, T), rel=1e-9)
    for place in range(6):
        step = np.eye(6)[place] * 1e-5
        slope = (stage._objective(data, theta + step, T)[0] - stage._objective(data, theta - step, T)[0]) / 2e-5
        assert gradient[place] == pytest.approx(slope, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("rate", [0.01, 0.2, 0.6])
def test_the_transition_at_a_rate_is_that_of_the_formulas(rate):
    counts = np.array([[40.0, 5, 1], [0.5, 20, 12], [2, 3, 6]])
    found = transition_at(rate, counts)
    expected = reference.pool_transition(rate, counts, stage.COMMON_ROWS, stage.SPREAD_ROWS)
    assert_allclose(found, expected, rtol=1e-9)
    assert_allclose(found.sum(axis=1), 1)
    assert (1 - found.diagonal() <= max(0.5, rate) + 1e-12).all(), "no class is mostly wrong, unless all are"


def test_a_fit_at_a_rate_is_that_of_the_slow_reference():
    scores, given, _ = problem(50)
    trusted = np.arange(50) % 9 == 0
    data, stacked = data_of(scores, given, trusted)
    found = stage.fit_at_rate(data, 0.2, None)
    theta, T, value = reference.pool_fit(
        stacked,
        given,
        trusted,
        0.2,
        stage.STEPS,
        stage.EM_PASSES,
        (stage.FIRST_ITERATIONS, stage.ITERATIONS),
        stage.ENOUGH,
        stage.COMMON_ROWS,
        stage.SPREAD_ROWS,
    )
    assert found.log_likelihood == pytest.approx(value, abs=1e-2)
    assert_allclose(found.theta, theta, atol=0.02)
    assert_allclose(found.transition, T, atol=0.005)


def test_the_weight_of_a_rate_is_root_likelihood_times_prior_times_step():
    rates, logs = np.array([0.0, 0.1, 0.3, 0.6]), np.array([-10.0, -8.0, -9.0, -14.0])
    steps = np.array([0.1, 0.15, 0.25, 0.3])  # half of the way to either side; at the ends the whole of it
    expected = np.exp(logs / 2) * 3 * (1 - rates) ** 2 * steps
    assert_allclose(rate_weights(rates, logs), expected / expected.sum())


def test_noise_rate_and_interval_are_those_of_the_weights():
    rates = np.linspace(0, 0.5, 501)
    weights = np.exp(-0.5 * ((rates - 0.2) / 0.03) ** 2)
    found = pool_of(np.eye(2), rates=rates, rate_weights=weights / weights.sum())
    assert found.noise_rate == pytest.approx(0.2, abs=1e-6)
    assert found.interval == pytest.approx((0.2 - 1.645 * 0.03, 0.2 + 1.645 * 0.03), abs=1e-3)
    clean = pool_of(np.eye(2), rates=(0.001, 0.01, 0.1), rate_weights=(0.98, 0.02, 0.0))
    assert clean.interval[0] == 0
    assert clean.interval[0] <= clean.noise_rate <= clean.interval[1]


def test_overlap_is_how_often_the_best_guess_is_expected_to_be_wrong():
    assert pool_of([[0.9, 0.1], [0.4, 0.6]]).overlap == pytest.approx(1 - (0.9 + 0.6) / 2)


def test_it_weighs_members_by_what_they_know_and_finds_the_errors():
    scores, given, true = problem(900)
    found = fit(scores, given)
    assert found.weights["good"] > found.weights["fair"] > found.weights["chance"] < 0.1
    assert found.interval[0] <= (given != true).mean() <= found.interval[1]
    assert (found.posterior.argmax(axis=1) == true).mean() > (given == true).mean() + 0.1
    assert_allclose(found.posterior.sum(axis=1), 1, atol=1e-5)
    assert_allclose(found.probs.sum(axis=1), 1, atol=1e-5)
    assert_allclose(found.transition.sum(axis=1), 1)
    assert (found.member_labels["fair"] == scores["fair"].argmax(axis=1)).all()


def test_the_posterior_is_the_mean_over_rates_of_probability_times_transition():
    scores, given, _ = problem(60)
    found = fit(scores, given)
    data, stacked = data_of(scores, given)
    mean, start = np.zeros((60, 3)), None
    for rate, weight in zip(found.rates, found.rate_weights, strict=True):
        one = stage.fit_at_rate(data, float(rate), start)
        start = one.theta
        joint = reference.softmax(stacked @ one.theta[:3] + one.theta[3:]) * one.transition.T[given]
        mean += weight * joint / joint.sum(axis=1, keepdims=True)
    assert_allclose(found.posterior, mean, atol=1e-3)


def test_a_trusted_row_keeps_its_class_and_stays_out_of_the_transition():
    scores, given, true = problem(400, noise=0.3)
    trusted = np.arange(400) < 200
    given[:200] = true[:200]
    data, _ = data_of(scores, given, trusted)
    assert data.trusted.tolist() == trusted.tolist()
    assert data.counts(np.full((400, scores[next(iter(scores))].shape[1]), 1.0))[0].sum() == 200
    found = fit(scores, given, trusted)
    assert_allclose(found.posterior[:200].max(axis=1), 1)
    assert (found.posterior[:200].argmax(axis=1) == given[:200]).all()
    assert found.noise_rate == pytest.approx(0.3, abs=0.08), "of the labels in question"


def test_rows_without_a_label_are_predicted_only():
    scores, given, _ = problem(200)
    more = {name: np.concatenate([score, score[:30]]) for name, score in scores.items()}
    found, alone = fit(more, np.append(given, np.full(30, -1))), fit(scores, given)
    assert found.weights == alone.weights
    assert_allclose(found.rate_weights, alone.rate_weights)
    assert_allclose(found.probs[:200], alone.probs)
    assert_allclose(found.probs[200:], alone.probs[:30])
    sharpest = found.posterior[200:].argmax(axis=1) == alone.probs[:30].argmax(axis=1)
    assert sharpest.mean() > 0.9, "averaged over the rates"


def test_a_class_that_nothing_names_is_never_the_answer():
    scores, given, _ = problem(120)
    wider = {
        name: np.concatenate([score, np.full((120, 1), 9.0, np.float32)], axis=1) for name, score in scores.items()
    }
    found = fit(wider, given, known=np.array([True, True, True, False]))
    assert found.posterior[:, 3].max() < 1e-3


def test_renaming_the_classes_permutes_everything():
    scores, given, _ = problem(200)
    order = np.array([2, 0, 1])  # class c is called order[c]
    renamed = {name: score[:, np.argsort(order)] for name, score in scores.items()}
    found, other = fit(scores, given), fit(renamed, order[given])
    assert_allclose(other.posterior[:, order], found.posterior, atol=5e-3)
    assert_allclose(other.probs[:, order], found.probs, atol=5e-3)
    assert_allclose(other.transition[np.ix_(order, order)], found.transition, atol=5e-3)
    assert_allclose(other.rate_weights, found.rate_weights, atol=5e-3)


def test_two_classes_do_not_swap_their_names():
    scores, given, true = problem(400, n_classes=2, noise=0.4)
    found = fit(scores, given)
    assert found.rates.max() <= stage.MOST_OF_TWO
    assert (found.posterior.argmax(axis=1) == true).mean() > 0.55


def test_blocks_of_rows_give_the_same_as_one_block(monkeypatch):
    scores, given, _ = problem(100)
    whole = fit(scores, given)
    monkeypatch.setattr(stage, "BLOCK", 100)
    parts = fit(scores, given)
    assert_allclose(parts.posterior, whole.posterior)
    assert_allclose(parts.probs, whole.probs)


def test_of_many_rows_a_part_is_fitted_on_and_all_are_judged(monkeypatch):
    scores, given, true = problem(600)
    monkeypatch.setattr(stage, "FEWEST_FITTED", 150)
    monkeypatch.setattr(stage, "ENTRIES", 200 * 3)
    data, _ = data_of(scores, given)
    assert len(data.given) == 200
    found = fit(scores, given)
    assert found.posterior.shape == (600, 3)
    assert (found.posterior.argmax(axis=1) == true).mean() > 0.85


def test_members_that_say_nothing_change_nothing():
    rng = np.random.default_rng(0)
    given = rng.integers(0, 3, 150)
    found = fit({"none": np.zeros((150, 3), np.float32)}, given)
    assert found.overlap > 0.5
    assert sure_of(given, 3).argmax(axis=1).tolist() == given.tolist()


def test_of_many_classes_the_likely_ones_stand_for_all(monkeypatch):
    rng = np.random.default_rng(0)
    n, n_classes = 400, 60
    true = rng.integers(n_classes, size=n)
    given = np.where(rng.random(n) < 0.2, rng.integers(n_classes, size=n), true)
    scores = {
        name: (3 * np.eye(n_classes)[true] + rng.normal(size=(n, n_classes))).astype(np.float32) for name in "abc"
    }
    nobody, known = np.zeros(n, dtype=bool), np.ones(n_classes, dtype=bool)
    found = stage.fit_pool(scores, given, nobody, known)
    monkeypatch.setattr(stage, "MANY_CLASSES", n_classes)
    dense = stage.fit_pool(scores, given, nobody, known)
    assert (found.posterior.argmax(axis=1) == dense.posterior.argmax(axis=1)).mean() >= 0.99
    assert found.noise_rate == pytest.approx(dense.noise_rate, abs=0.01)
