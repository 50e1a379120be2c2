import json
import sys

import pytest

from bench import trial
from bench.trial import Case

SHAPE = {"n_rows": 90, "n_columns": 5, "n_classes": 3, "spread": 4.0}
CASE = Case("easy", "clusters", SHAPE, neighbours=7)


def test_figures_are_those_of_the_method_on_the_data_of_the_seed():
    figures = trial.measure(CASE, "labelmend", seed=3)
    assert figures["given_accuracy"] == pytest.approx(0.8)
    assert figures["label_accuracy"] > 0.9
    assert figures["seconds"] > 0
    assert {"noise_rate", "review_share", "errors_in_review", "f1"} <= set(figures)
    vote = trial.measure(CASE, "k-NN vote", seed=3)
    assert vote["noise_rate"] is None
    assert "review_share" not in vote


def test_the_seed_reaches_the_data_only_where_they_are_drawn_with_it(human_folder):
    fixed = Case("human", "human", {"folder": str(human_folder), "label_set": "worst"}, seeded=False)
    assert (fixed.load(0).features == fixed.load(1).features).all()
    assert (CASE.load(0).features != CASE.load(1).features).any()


def test_a_fresh_process_gives_the_same_figures_and_its_memory():
    here, there = trial.measure(CASE, "k-NN vote", seed=1), trial.measure_alone(CASE, "k-NN vote", seed=1)
    assert there["label_accuracy"] == here["label_accuracy"]
    assert 20e6 < there["peak_bytes"] < 1e9
    assert 0 <= there["used_bytes"] < there["peak_bytes"]


def test_the_last_words_of_a_process_that_fails_are_kept(monkeypatch):
    with pytest.raises(trial.TrialFailedError, match="KeyError: 'nowhere'"):
        trial.measure_alone(Case("bad", "nowhere", {}), "k-NN vote", seed=0)
    monkeypatch.setattr(sys, "executable", "false")
    with pytest.raises(trial.TrialFailedError, match="ended with code 1"):
        trial.measure_alone(CASE, "k-NN vote", seed=0)


def test_the_answer_of_the_fresh_process_is_json():
    order = {"case": {"name": "easy", "source": "clusters", "arguments": SHAPE}, "method": "k-NN vote", "seed": 0}
    figures = json.loads(trial.answer(json.dumps(order)))
    assert figures["used_bytes"] <= figures["peak_bytes"]


def test_peak_memory_is_read_from_the_system_or_from_the_usage_of_the_process(tmp_path):
    status = tmp_path / "status"
    status.write_text("VmPeak:\t 9999 kB\nVmHWM:\t   2048 kB\n")
    assert trial.peak_bytes(status) == 2048 * 1024
    status.write_text("Name: python\n")
    assert 10e6 < trial.peak_bytes(status) < 100e9
    assert 10e6 < trial.peak_bytes(tmp_path / "absent") < 100e9
