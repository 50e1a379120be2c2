import math

import numpy as np
import pytest

from bench.annotators import calibration_error
from bench.datasets import Dataset
from bench.zoo import figures, tables
from bench.zoo.layout import Mean, Table, mean_over_families


def line(name, kind, right, family=None, **more):
    """Of a cell in which every method got `right` percent."""
    known = {
        "name": name,
        "kind": kind,
        "family": family or name,
        "source": "other",
        "methods": {method: {"right": value} for method, value in right.items()},
        "wrong": 20.0,
        "rate": 15.0,
        "rate_low": 10.0,
        "rate_high": 20.0,
        "calibration_error": 0.04,
        "review": 1.0,
        "seconds": {"labelmend": 2.0},
        "verdict": {},
    }
    return {**known, **more}


def test_labels_are_scored_by_row_by_class_and_by_what_was_good_before():
    true = np.array([0, 0, 0, 0, 1, 1])
    given = np.array([0, 0, 0, 1, 1, 0])
    found = figures.of_labels(Dataset(np.zeros((6, 1)), given, true), np.array([0, 0, 1, 0, 1, 0]))
    # right: rows 0, 1, 3, 4; of class 0 3 of 4, of class 1 1 of 2; good were 0, 1, 2 and 4: row 2 was broken
    assert found == {"right": 66.6667, "balanced": 62.5, "broken": 25.0, "kept": 66.6667}


def test_ranking_is_the_share_of_pairs_in_order_and_average_precision():
    true, given = np.zeros(4, dtype=int), np.array([1, 1, 0, 0])
    data = Dataset(np.zeros((4, 1)), given, true)
    # ranked: wrong, good, wrong, good: 3 of 4 pairs in order; precision 1 at the first, 2/3 at the second
    found = figures.of_ranking(data, np.array([0.9, 0.5, 0.7, 0.1]))
    assert found == {"auroc": 75.0, "precision": pytest.approx(100 * (1 + 2 / 3) / 2, abs=1e-3)}
    assert figures.of_ranking(Dataset(np.zeros((4, 1)), true, true), np.arange(4.0)) == {}
    assert figures.of_ranking(data, None) == {}


def test_calibration_error_by_hand():
    confidence = np.array([0.95, 0.95, 0.95, 0.95, 0.55, 1.0])
    right = np.array([True, True, True, False, False, True])
    # bins: five rows at .95 (1.0 among them), sum of confidence 4.8 against 4 right; one row at .55 against 0
    assert calibration_error(confidence, right) == pytest.approx((0.8 + 0.55) / 6)


def test_standard_errors_are_those_of_families_not_of_cells():
    found = mean_over_families([("a", 1.0), ("a", 3.0), ("b", 5.0), ("c", 7.0)])
    # mean 4; deviations summed: a -4, b 1, c 3; sqrt(3/2 * (16 + 1 + 9)) / 4
    assert found == Mean(4.0, pytest.approx(math.sqrt(1.5 * 26) / 4), 4, 3)
    alone = mean_over_families([(name, value) for name, value in zip("abcd", (1.0, 3.0, 5.0, 7.0), strict=True)])
    assert alone.error == pytest.approx(np.std([1, 3, 5, 7], ddof=1) / 2)  # a family each: the usual one
    copies = mean_over_families([(name, value) for name, value in zip("ab", (1.0, 5.0), strict=True) for _ in range(9)])
    assert copies.error == pytest.approx(mean_over_families([("a", 1.0), ("b", 5.0)]).error)  # copies add nothing
    assert mean_over_families([("a", 1.0)]).error is None
    assert mean_over_families([]) is None


def test_wins_ties_and_losses_within_half_a_point():
    assert tables.count_outcomes([0.5, 0.51, -0.5, -0.51, 0, 3]) == (2, 3, 1)
    cells = [
        line("a", "clean", {"labelmend": 99, "knn": 98}),
        line("b", "clean", {"labelmend": 90, "knn": 90.4}),
        line("c", "clean", {"labelmend": 80, "knn": 83}),
        line("d", "clean", {"labelmend": 80}),  # no answer: no duel
    ]
    table = tables.duels(cells, ["knn", "simi"])
    [(name, (n, wins, ties, losses, share, ahead, ranking))] = table.rows
    assert (name, n, wins, ties, losses, share, ranking) == ("10-NN vote", 3, 1, 1, 1, "66.7", None)
    assert ahead.value == pytest.approx(-0.8)
    assert ahead.families == 3


def test_means_by_kind_come_in_the_order_of_kinds_and_name_missing_cells():
    cells = [
        line("a", "other9", {"labelmend": 60, "knn": 50}),
        line("a", "clean", {"labelmend": 100}),
        line("b", "clean", {"labelmend": 80, "knn": 70}),
    ]
    table = tables.by_kind(cells, "right", "title", ["labelmend", "knn", "simi"])
    assert table.head == ["all", "clean", "other9"]
    rows = {name: [entry.value for entry in entries] for name, entries in table.rows}
    assert rows == {"labelmend": [80, 90, 60], "10-NN vote (2 cells)": [60, 70, 50]}


def test_what_a_run_says_of_itself_is_held_against_the_truth():
    cells = [
        line("a", "clean", {}, wrong=0.0, rate=3.0, rate_low=0.0, rate_high=9.0),
        line("b", "clean", {}, wrong=0.0, rate=5.0, rate_low=1.0, rate_high=9.0),
        line("c", "random20", {}, rate_low=None, rate_high=None),
    ]
    rows = dict(tables.own_words(cells).rows)
    assert [entry.value for entry in rows["mean absolute error, points"]] == pytest.approx([13 / 3, 4, 5])
    whole, clean, without = rows["interval holds the truth, % of cells"]
    assert (whole.value, clean.value, without) == (50, 50, None)
    assert [entry.value for entry in rows["calibration error of confidence, %"]] == pytest.approx([4, 4, 4])


def test_seconds_are_a_ratio_in_the_same_cell():
    times = [{"labelmend": 2.0, "cleanlab_lr": 1.0}, {"labelmend": 9.0, "cleanlab_lr": 3.0}, {"labelmend": 50.0}]
    table = tables.seconds([line(f"{i}", "clean", {}, seconds=time) for i, time in enumerate(times)])
    rows = dict(table.rows)
    assert rows["labelmend, CPU seconds"] == [3, 9.0, 5.5, 29.5, 50.0]
    assert rows["times cleanlab with logistic regression"][:2] == [2, 2.5]
    assert "its five folds alone" not in rows


def test_the_worst_cells_are_named():
    cells = [
        line("a", "random20", {"given": 80, "labelmend": 70, "pool": 79}),
        line("b", "clean", {"given": 100, "labelmend": 98, "pool": 99}, wrong=0.0),
    ]
    rows = dict(tables.extremes(cells, ["pool"]).rows)
    assert rows["worst against given, pool alone"][0] == "-1.0 a:random20"
    assert rows["labelmend, worst against given"] == ["-10.0 a:random20", "-2.0 b:clean"]
    assert rows["labelmend, fewest right of clean labels"][0] == "98.0 b:clean"


def test_the_better_of_both_parts_is_one_more_method():
    [found, other] = tables.with_better(
        [line("a", "clean", {"pool": 90, "ensemble": 95}), line("b", "clean", {"pool": 90})]
    )
    assert found["methods"][tables.BETTER] == {"right": 95}
    assert tables.BETTER not in other["methods"]


def test_classifiers_are_compared_where_they_were_checked():
    checked = {"labelmend": 90.0, "ridge": 88.0, "best member": 91.0}
    cells = [line("a", "clean", {}, classifier=checked), line("b", "clean", {}, classifier={}), line("c", "clean", {})]
    rows = dict(tables.classifiers(cells).rows)
    assert rows["ridge"][2:5] == [1, 0, 0]
    assert rows["best member"][2:5] == [0, 0, 1]
    assert rows["best member"][5].value == -1
    assert tables.classifiers(cells[1:]) is None


def test_a_table_is_text_and_plain_values():
    table = Table("Title", ["x", "words"], [("one", [Mean(1.25, 0.5, 4, 3), "w"]), ("two", [2.0, None])], notes=["n"])
    assert table.lines() == ["Title", "            x  words", "one  1.2 ±0.5      w", "two       2.0      -", "n"]
    assert table.plain()["rows"][0] == {
        "name": "one",
        "values": [{"mean": 1.25, "error": 0.5, "cells": 4, "families": 3}, "w"],
    }
