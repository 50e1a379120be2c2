import json
import sys

import numpy as np
import pytest

from bench.datasets import Dataset
from bench.zoo import rivals


def separable():
    rng = np.random.default_rng(0)
    true = np.arange(90) % 3
    given = true.copy()
    given[:9] = (given[:9] + 1) % 3
    return Dataset(rng.normal(size=(90, 3)).astype(np.float32) + 6 * np.eye(3, dtype=np.float32)[true], given, true)


def test_rivals_are_measured_and_the_timed_one_has_seconds():
    pytest.importorskip("cleanlab")
    found, seconds = rivals.measure_rivals(separable(), {})
    assert {"cleanlab_lr", "cleanlab_hgb", "knn", "simi"} <= set(found)
    assert all(found[name]["right"] > 97 for name in ("cleanlab_lr", "knn", "simi"))
    assert found["cleanlab_lr"]["auroc"] > 99
    assert seconds["cleanlab_lr"] >= seconds["cleanlab_lr_folds"] > 0


def test_stored_figures_stand_and_only_the_timed_rival_runs_beside_them(tmp_path, monkeypatch):
    row = {"name": "x", "kind": "clean", "acc": {"knn": 12.0, "cleanlab_lr": 34.0}, "auc": {"knn": 56.0}, "s": {}}
    (tmp_path / "rivals.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    stored = rivals.stored_figures(tmp_path)["x", "clean"]
    assert stored == {"knn": {"right": 12.0, "auroc": 56.0}, "cleanlab_lr": {"right": 34.0}}
    assert rivals.stored_figures(None) == {}
    monkeypatch.setitem(rivals.RIVALS, "cleanlab_hgb", None)  # nobody is asked who cannot run: see below
    monkeypatch.setattr(rivals, "can_run", lambda rival, data: rival in ("cleanlab_lr", "knn"))
    monkeypatch.setitem(rivals.RIVALS, "cleanlab_lr", rivals.knn)
    found, seconds = rivals.measure_rivals(separable(), stored)
    assert found["knn"] == {"right": 12.0, "auroc": 56.0}
    assert found["cleanlab_lr"]["right"] == 34.0
    assert found["cleanlab_lr"]["balanced"] > 97  # measured, where nothing is stored
    assert "cleanlab_lr" in seconds


def test_without_cleanlab_the_votes_are_left(monkeypatch):
    monkeypatch.setitem(sys.modules, "cleanlab.filter", None)
    found, seconds = rivals.measure_rivals(separable(), {})
    assert set(found) == {"knn", "simi"}
    assert seconds == {}


def test_a_rival_that_cannot_answer_has_no_figures(monkeypatch):
    def gives_up(columns, codes):
        raise ValueError("too few")

    monkeypatch.setattr(rivals, "RIVALS", {"knn": gives_up, "simi": rivals.similar})
    assert set(rivals.measure_rivals(separable(), {})[0]) == {"simi"}


def test_boosting_is_left_out_where_it_takes_minutes():
    pytest.importorskip("cleanlab")
    for shape, runs in (((6000, 100), True), ((6100, 100), False), ((60, 131), False)):
        labels = np.arange(shape[0]) % 2
        assert rivals.can_run("cleanlab_hgb", Dataset(np.zeros(shape, dtype=np.float32), labels, labels)) is runs


def test_votes_by_hand():
    columns = np.array([[0.0], [1.0], [2.0], [3.0]])
    counts = rivals.neighbours_say(columns, np.array([0, 0, 1, 1]))  # three others each
    assert counts.tolist() == [[1, 2], [1, 2], [2, 1], [2, 1]]
