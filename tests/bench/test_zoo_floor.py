"""A floor under a dozen fast cells of scikit-learn's sets. The whole zoo is `python -m bench zoo`."""

import numpy as np
import pytest

from bench.datasets import Dataset
from bench.zoo import answers, own_sets
from bench.zoo.figures import of_labels, of_ranking
from bench.zoo.measure import one_thread, quiet

DIGITS = 300  # rows of the digits, so that a cell takes seconds


def run(name, kind, n_rows=None):
    whole = own_sets.load(name, kind, 0)
    data = Dataset(whole.features[:n_rows], whole.given_labels[:n_rows], whole.true_labels[:n_rows])
    with one_thread(), quiet():
        return data, answers.ask(data.features, data.given_labels, 0, "auto")


@pytest.mark.parametrize(
    ("name", "n_rows"),
    [("iris", None), ("wine", None), ("breast_cancer_10_1", None), ("breast_cancer_95_5", None), ("digits", DIGITS)],
)
def test_clean_in_clean_out(name, n_rows):
    data, found = run(name, "clean", n_rows)
    figures = of_labels(data, found.labels["labelmend"])
    assert figures["right"] >= 99
    assert figures["kept"] >= 92  # in every class


@pytest.mark.parametrize(
    ("name", "kind", "n_rows", "least"),
    [
        ("iris", "random20", None, 90),
        ("wine", "random20", None, 90),
        ("breast_cancer_10_1", "random20", None, 95),
        ("digits", "random20", DIGITS, 96),
        ("digits", "conf15", DIGITS, 89),
    ],
)
def test_errors_are_mended(name, kind, n_rows, least):
    data, found = run(name, kind, n_rows)
    assert of_labels(data, found.labels["labelmend"])["right"] >= least
    assert of_labels(data, found.labels["labelmend"])["broken"] <= 7
    if kind.startswith("random"):
        assert of_ranking(data, found.suspicion)["auroc"] >= 95
        assert abs(found.rate - np.mean(data.given_labels != data.true_labels)) <= 0.08


def test_no_more_harm_than_a_point_where_errors_sit_together():
    data, found = run("wine", "patch20")
    assert of_labels(data, found.labels["labelmend"])["right"] >= 79


def test_a_rare_class_among_errors_keeps_its_labels():
    data, found = run("digit_three_95_5", "random8", 700)
    figures = of_labels(data, found.labels["labelmend"])
    assert figures["right"] >= 97
    assert figures["kept"] >= 85
