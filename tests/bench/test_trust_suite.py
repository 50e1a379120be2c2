import json

import numpy as np
import pytest

from bench.command import main
from bench.trust_suite import FOREIGN, outlier_figures, plant_foreign


@pytest.mark.parametrize(("name", "figure", "n_rows"), [("kinds", "rate_inside", 2), ("outliers", "auroc", 6)])
def test_each_benchmark_runs_writes_json_and_becomes_a_table(name, figure, n_rows, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main([name, "--quick"]) == 0
    printed = capsys.readouterr().out
    assert "QUICK RUN" in printed
    record = json.loads((tmp_path / f"benchmark-{name}.json").read_text(encoding="utf-8"))
    assert len(record["rows"]) == n_rows
    assert all(0 <= row["figures"][figure]["mean"] <= 1 for row in record["rows"])
    assert record["facts"]["notes"][0] in printed
    assert main(["readme-table", f"benchmark-{name}.json"]) == 0
    assert capsys.readouterr().out.startswith(f"| {name} | ")


def rows(n=400, n_classes=5):
    labels = np.arange(n) % n_classes
    return np.eye(n_classes)[labels] + 0.01 * np.random.default_rng(0).normal(size=(n, n_classes)), labels


def test_foreign_classes_are_taken_out_and_come_back_without_a_true_label():
    features, labels = rows()
    data = plant_foreign(features, labels, "classes", 0.0, None, 0)
    foreign = data.true_labels < 0
    assert foreign.mean() == pytest.approx(FOREIGN, abs=0.005)
    np.testing.assert_array_equal(data.given_labels[~foreign], data.true_labels[~foreign])
    assert set(data.true_labels[~foreign]) == set(data.given_labels) == {0, 1, 2}
    kept, away = (set(data.features[part].argmax(axis=1)) for part in (~foreign, foreign))
    assert len(kept) == 3
    assert not kept & away


def test_blends_are_half_of_each_and_carry_one_of_the_labels():
    features, labels = rows()
    data = plant_foreign(features, labels, "blends", 0.1, None, 0)
    foreign = data.true_labels < 0
    two = np.sort(data.features[foreign], axis=1)[:, -2:]
    np.testing.assert_allclose(two, 0.5, rtol=0, atol=0.05)
    own = data.features[foreign][np.arange(foreign.sum()), data.given_labels[foreign]]
    np.testing.assert_allclose(own, 0.5, rtol=0, atol=0.05)
    assert (data.given_labels != data.true_labels)[~foreign].mean() == pytest.approx(0.1, abs=0.005)


def test_scores_are_judged_by_hand():
    foreign = np.zeros(100, dtype=bool)
    foreign[:4] = True
    scores = np.linspace(1, 0, 100)
    assert outlier_figures(scores, foreign) == {"auroc": 1.0, "foreign_in_least": 1.0}
    assert outlier_figures(-scores, foreign)["auroc"] == 0.0
