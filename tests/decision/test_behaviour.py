"""What `correct` must do on any data: clean labels stay, names and order do not matter, copies get one label."""

import warnings
from functools import cache

import numpy as np
import pytest
from hypothesis import given as for_any
from hypothesis import settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_iris, load_wine, make_classification

import labelmend
from blobs import QUICK, plant
from labelmend.config import as_arguments
from labelmend.ensemble.state import Problem
from labelmend.errors import LabelmendError, LabelmendWarning

FAST = {**QUICK, "seed": 0}


def correct(X, y, **changes):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LabelmendWarning)
        return labelmend.correct(X, y, **as_arguments({**FAST, **changes}))


def overlapping(n=160, n_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    true = np.arange(n) % n_classes
    return rng.normal(size=(n, 5)) + 1.5 * np.eye(n_classes, 5)[true], true


def wine_with_errors():
    X, true = load_wine(return_X_y=True)
    return X, true, plant(true, 0.2)[0]


@cache
def plain():
    X, _, given = wine_with_errors()
    return correct(X, given)


def thinned(X, y, code, n):
    rows = np.flatnonzero(y == code)
    keep = np.sort(np.concatenate([np.flatnonzero(y != code), np.random.default_rng(0).permutation(rows)[:n]]))
    return X[keep], y[keep]


# Clean in, clean out

CLEAN = {
    "95:5": lambda: thinned(*load_breast_cancer(return_X_y=True), 0, 19),
    "10:1": lambda: thinned(*load_breast_cancer(return_X_y=True), 0, 36),
    "weights": lambda: make_classification(1000, 20, n_informative=8, weights=[0.95], flip_y=0, random_state=0),
    "iris": lambda: load_iris(return_X_y=True),
    "overlapping": overlapping,
    "columns of nothing but noise": lambda: (np.random.default_rng(0).normal(size=(150, 4)), np.arange(150) % 3),
}


@pytest.mark.parametrize("name", CLEAN)
def test_clean_labels_stay_in_every_class(name):
    X, true = CLEAN[name]()
    result = correct(X, true)
    right = np.asarray(result.labels) == true
    assert right.mean() >= 0.95
    for code in np.unique(true):
        assert right[true == code].mean() >= 0.92, code


def test_errors_in_a_small_class_are_found_and_it_is_not_lost():
    X, true = CLEAN["10:1"]()
    given, _ = plant(true, 0.2)
    right = np.asarray(correct(X, given).labels) == true
    assert right.mean() >= 0.95
    assert right[true == 0].mean() >= 0.7


# Names and order


def same(found, expected):
    return (np.asarray(found) == np.asarray(expected)).mean()


@pytest.mark.slow
def test_names_of_the_classes_do_not_matter_to_the_pool_and_hardly_to_the_ensemble():
    X, _, given = wine_with_errors()
    names = np.array(["zebra", "ant", "mole"])  # another order than that of the codes
    assert same(correct(X, names[given]).labels, names[np.asarray(plain().labels)]) >= 0.97
    alone = {"assume": "overlapping", "outlier_share": 0.0}
    one, other = (
        correct(X, given, **as_arguments(alone)),
        correct(X, names[given], **as_arguments(alone)),
    )
    assert same(other.labels, names[np.asarray(one.labels)]) == 1
    np.testing.assert_allclose(other.label_score, one.label_score, atol=1e-3)


def test_the_order_of_the_rows_does_not_matter_much():
    X, _, given = wine_with_errors()
    order = np.random.default_rng(1).permutation(len(X))
    assert same(correct(X[order], given[order]).labels, np.asarray(plain().labels)[order]) >= 0.97


def test_the_order_of_the_columns_does_not_matter_much():
    X, _, given = wine_with_errors()
    order = np.random.default_rng(1).permutation(X.shape[1])
    assert same(correct(X[:, order], given).labels, plain().labels) >= 0.97


def test_units_of_the_columns_do_not_matter_much():
    X, _, given = wine_with_errors()
    scale = 10.0 ** np.random.default_rng(1).integers(-3, 4, X.shape[1])
    assert same(correct(X * scale + 7, given).labels, plain().labels) >= 0.97


# Copies


@pytest.mark.slow
@pytest.mark.parametrize("load", [lambda: load_wine(return_X_y=True), overlapping], ids=["wine", "overlapping"])
def test_every_row_twice_gets_one_label_and_little_is_lost(load):
    X, true = load()
    given, _ = plant(true, 0.2)
    once = correct(X, given)
    twice = correct(np.concatenate([X, X]), np.concatenate([given, given]))
    labels = np.asarray(twice.labels)
    assert same(labels[: len(X)], labels[len(X) :]) == 1
    assert same(labels[: len(X)], true) >= same(once.labels, true) - 0.02


# Odd data


def test_one_row_in_a_class_keeps_its_label():
    X, true = overlapping(100)
    given = np.append(true, 3)
    result = correct(np.append(X, [[9.0] * 5], axis=0), given)
    assert result.labels[-1] == 3
    assert result.status[-1] == "review"


def test_two_classes_of_five_rows():
    rng = np.random.default_rng(0)
    true = np.arange(10) % 2
    result = correct(rng.normal(size=(10, 3)) + 6 * true[:, None], true)
    assert same(result.labels, true) == 1
    assert np.isfinite(result.confidence).all()


def test_columns_that_never_vary_change_nothing():
    X, _, given = wine_with_errors()
    wider = np.column_stack([np.full(len(X), 3.0), X, np.zeros(len(X))])
    assert same(correct(wider, given).labels, plain().labels) >= 0.97


@pytest.mark.slow
def test_a_hundred_classes():
    rng = np.random.default_rng(0)
    true = np.arange(800) % 100
    X = rng.normal(size=(100, 12))[true] * 4 + 0.5 * rng.normal(size=(800, 12))
    given, _ = plant(true, 0.1)
    result = correct(X, given, expert={"n_rounds": 1})
    assert same(result.labels, true) >= 0.95
    assert result.transition.shape == (100, 100)


def test_more_columns_than_rows():
    rng = np.random.default_rng(0)
    true = np.arange(60) % 3
    X = rng.normal(size=(60, 400)) + 2 * rng.normal(size=(3, 400))[true]
    given, _ = plant(true, 0.1)
    assert same(correct(X, given).labels, true) >= same(given, true)


# What there is besides


def test_what_is_assumed_is_said():
    X, _, given = wine_with_errors()
    for assume in ("apart", "overlapping"):
        result = correct(X, given, assume=assume)
        assert (result.verdict.classes, result.verdict.assume) == (assume, assume)
        words = {"apart": "assumed", "overlapping": "assumed"}[assume]
        assert words in result.verdict.reason or result.verdict.adopted
    assert plain().verdict.assume == "auto"


def test_preset_paper_has_its_votes_and_no_verdict():
    X, _, given = wine_with_errors()
    result = correct(X, given, preset="paper")
    assert result.verdict is None
    assert result.label_score.shape == (len(X),)
    voted = np.asarray(result.votes.argmax(axis=1)).ravel()
    assert same(result.corrected_codes, voted) > 0.95


def test_low_scores_are_suspicious():
    _, true, given = wine_with_errors()
    score, wrong = plain().label_score, given != true
    assert ((score >= 0) & (score <= 1)).all()
    ranks = score.argsort().argsort()
    auroc = 1 - (ranks[wrong].mean() - (wrong.sum() - 1) / 2) / (~wrong).sum()
    assert auroc > 0.9


def test_cross_fitted_nets_are_a_member(monkeypatch):
    X, true = overlapping(150)
    result = correct(X, plant(true, 0.1)[0], expert={"held_out_passes": 2})
    assert set(result.verdict.members) >= {"ridge", "trees"}
    assert result.verdict.n_classes == 3


def test_the_noise_rate_with_trusted_rows_is_that_of_all_labels_and_its_interval_that_of_those_in_question():
    rng = np.random.default_rng(0)
    true = np.arange(400) % 2
    X = rng.normal(size=(400, 4)) + 5 * true[:, None]
    trusted = rng.random(400) < 0.5
    given = np.where(~trusted & (rng.random(400) < 0.3), 1 - true, true)
    result = correct(X, given, trusted=trusted)
    wrong = given != true
    assert result.noise_rate == pytest.approx(wrong.mean(), abs=0.06)
    rate = result.profile.rate
    assert rate.low <= wrong[~trusted].mean() <= rate.high
    assert rate.value == pytest.approx(wrong[~trusted].mean(), abs=0.1)


# Anything at all


@st.composite
def problems(draw):
    """(features, labels, trusted): a few rows, ties and copies common, some labels missing."""
    n, columns, n_classes = draw(st.integers(8, 24)), draw(st.integers(1, 4)), draw(st.integers(2, 4))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    coarse = draw(st.booleans())
    X = rng.integers(0, 4, (n, columns)).astype(float) if coarse else rng.normal(size=(n, columns))
    y = rng.integers(0, n_classes, n)
    y[rng.random(n) < draw(st.sampled_from([0.0, 0.3]))] = -1
    trusted = (rng.random(n) < draw(st.sampled_from([0.0, 0.3]))) & (y >= 0)
    return X, y, trusted


@pytest.mark.slow
@settings(max_examples=12)
@for_any(problems(), st.sampled_from(["auto", "apart", "overlapping"]))
def test_whatever_the_data_it_is_an_answer_or_a_clear_refusal(problem, assume):
    X, y, trusted = problem
    try:
        result = correct(X, y, trusted=trusted, missing=-1, assume=assume, expert={"n_rounds": 1, "warmup_passes": 1})
    except LabelmendError:
        return
    n, n_classes = len(y), len(result.classes)
    labels = np.asarray(result.labels)
    assert labels.shape == result.confidence.shape == result.label_score.shape == (n,)
    assert (labels[trusted] == y[trusted]).all()
    assert (result.status[trusted] == "kept").all()
    assert set(labels) <= set(result.classes)
    for numbers in (result.confidence, result.label_score, result.given_confidence):
        assert np.isfinite(numbers).all()
        assert ((numbers >= 0) & (numbers <= 1 + 1e-6)).all()
    np.testing.assert_allclose(result.transition.sum(axis=1), np.ones(n_classes), rtol=1e-5)
    assert 0 <= result.profile.rate.low <= result.profile.rate.value <= result.profile.rate.high <= 1
    assert sum(result.count(status) for status in ("kept", "corrected", "review", "filled")) == n
    assert (result.status == "filled").sum() == (y < 0).sum()
    in_review = result.changed & (result.status == "review")
    assert result.changed.sum() == result.count("corrected") + in_review.sum()
    verdict = result.verdict
    assert verdict.adopted <= verdict.disputed <= verdict.labelled == (y >= 0).sum()
    assert verdict.reason


@settings(max_examples=8)
@for_any(problems())
def test_probabilities_of_a_decision_sum_to_one_and_the_label_is_named(problem):
    from labelmend.decision import deciding

    X, y, trusted = problem
    seen, by_pool = [], deciding.by_pool

    def watched(evidence, inputs, asked: Problem, config):
        seen.append(by_pool(evidence, inputs, asked, config))
        return seen[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(deciding, "by_pool", watched)
        try:
            correct(X, y, trusted=trusted, missing=-1, expert={"n_rounds": 1, "warmup_passes": 1})
        except LabelmendError:
            return
    for found in seen:
        np.testing.assert_allclose(found.probabilities.sum(dim=1), np.ones(len(y)), atol=1e-5)
        np.testing.assert_allclose(found.predicted.sum(dim=1), np.ones(len(y)), atol=1e-5)
        given, labels = y >= 0, found.labels.numpy()
        stays = ~(found.left_alone.numpy() & given)
        named = found.probabilities.argmax(dim=1).numpy()
        ties = found.probabilities.max(dim=1).values - found.probabilities[np.arange(len(y)), labels] < 1e-6
        assert ((named == labels) | ties.numpy())[stays].all()
