import argparse
import json
import pickle

import numpy as np
import pytest
import torch

from labelmend.benchmarks import tuning_grid
from labelmend.benchmarks.planted import Place, Source
from labelmend.benchmarks.tuning_grid import GRID, Cell, Outcome, Run, Setting, as_cell, facts_of, play
from labelmend.cli import main

A, B = GRID[0], GRID[-1]


def written(folder):
    return json.loads((folder / "benchmark-tuning.json").read_text(encoding="utf-8"))


def test_it_runs_writes_json_and_becomes_a_table(human_folder, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["benchmark", "tuning", "--quick", "--data", str(human_folder)]) == 0
    printed, record = capsys.readouterr().out, written(tmp_path)
    cases = [f"{name}, {what}" for name in ("digits", "CIFAR-10 features") for what in ("true labels", "random, 5%")]
    assert [row["case"] for row in record["rows"]] == cases
    given = [row["figures"]["given_accuracy"]["mean"] for row in record["rows"]]
    assert given == pytest.approx([1, 0.952, 1, 57 / 60])  # of 250 digits and of 60 rows
    for row in record["rows"]:
        figures = {name: value["mean"] for name, value in row["figures"].items()}
        assert list(figures) == ["given_accuracy", "label_accuracy", "grid_best", "grid_worst", "grid_gap"]
        assert 0 <= figures["grid_worst"] <= figures["grid_best"] <= 1
        assert figures["grid_gap"] == pytest.approx(figures["grid_best"] - figures["label_accuracy"], abs=1e-6)
        assert record["facts"]["best"][row["case"]] in (A.name, B.name)
    assert record["command"] == "labelmend benchmark tuning --data FILE --quick"
    assert "QUICK RUN" in printed
    assert "NOT FINISHED" not in printed
    assert all(note in printed for note in record["facts"]["notes"])
    assert str(human_folder) not in json.dumps(record)
    assert main(["benchmark", "readme-table", "benchmark-tuning.json"]) == 0
    assert capsys.readouterr().out.startswith("| tuning | labelmend | labels right before, % | best of the grid, % |")


def test_other_processes_get_all_they_need_and_give_the_same_figures(human_folder, tmp_path, monkeypatch):
    """Without their start, which imports torch in each: what goes there and back is pickled all the same."""
    asked = []

    class Pool:
        def __init__(self, n_jobs, context):
            asked.append((n_jobs, context.get_start_method()))

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def shutdown(self, **_):
            pass

        def map(self, do, runs):
            for run in runs:
                there, what = pickle.loads(pickle.dumps((do, run)))
                yield pickle.loads(pickle.dumps(there(what)))

    monkeypatch.setattr(tuning_grid, "ProcessPoolExecutor", Pool)
    monkeypatch.chdir(tmp_path)
    words = ["--quick", "--data", str(human_folder), "--on", "features", "--rates", "20", "--kinds", "mixed"]
    rows = []
    for jobs in ("1", "2"):
        assert main(["benchmark", "tuning", *words, "--jobs", jobs]) == 0
        rows.append(written(tmp_path)["rows"])
    assert rows[0] == rows[1]
    assert asked == [(2, "spawn")]


def test_the_grid_has_sixteen_settings_with_names_of_their_own():
    assert len({setting.name for setting in GRID}) == len(GRID) == 16
    setting = Setting(10, 0.5, 4, False)
    assert setting in GRID
    assert setting.name == "k 10, alpha 0.5, B 4, no noisy branch"
    wanted = {"graph_k": 10, "alpha": 0.5, "packages_per_branch": 4, "noisy_branch": False, "tune": False}
    assert setting.parameters == wanted


def test_best_and_worst_are_chosen_by_the_mean_over_the_seeds():
    outcomes = [Outcome(0.8, share) for share in (0.90, 0.95, 0.91, 0.92, 0.85, 0.93)]  # two seeds of ours, A, B
    cell = as_cell("here", outcomes, (A, B))
    assert cell == Cell("here", [0.8, 0.8], [0.90, 0.92], {A.name: [0.95, 0.85], B.name: [0.91, 0.93]})
    assert (cell.best, cell.worst) == (B.name, A.name)  # .92 and .90, though A has the best single run
    assert cell.gap == pytest.approx(0.01)
    first, second = (trial.figures for trial in cell.trials())
    assert first == pytest.approx(
        {"given_accuracy": 0.8, "label_accuracy": 0.90, "grid_best": 0.91, "grid_worst": 0.95, "grid_gap": 0.01}
    )
    assert second["grid_gap"] == pytest.approx(0.01)


def test_facts_name_the_best_of_every_cell_and_the_largest_gap():
    cells = [
        Cell("one", [0.8], [0.9], {A.name: [0.93], B.name: [0.92]}),
        Cell("two", [0.8], [0.9], {A.name: [0.7], B.name: [0.89]}),
        Cell("three", [0.8], [0.9], {A.name: [0.91], B.name: [0.91]}),  # equal: the first
    ]
    facts = facts_of(cells)
    assert facts["best"] == {"one": A.name, "two": B.name, "three": A.name}
    assert facts["label_accuracy"]["one"] == {"labelmend": [0.9], A.name: [0.93], B.name: [0.92]}
    assert facts["notes"][1] == "Gap to the best: mean 1.00, largest 3.00 points (one)."
    assert facts["notes"][2:] == [f"Best with {A.name}: one; three.", f"Best with {B.name}: two."]


@pytest.mark.parametrize("kind", ["random", "confusing", "patch", "mixed"])
def test_the_rate_is_what_is_planted_and_the_seed_decides(kind):
    place = Place(Source("digits", None, 250), kind, 20)
    true = place.source.rows(1)[1]
    given = place.given_labels(1)
    assert (given != true).mean() == pytest.approx(0.2, abs=0.005)
    np.testing.assert_array_equal(given, place.given_labels(1))
    assert place.name == f"digits, {kind}, 20%"


def test_a_run_is_scored_against_the_truth_and_has_one_thread(monkeypatch):
    source, threads = Source("digits", None, 250), torch.get_num_threads()
    true, seen = source.rows(0)[1], {}

    class Result:
        labels = np.where(np.arange(250) < 25, (true + 1) % 10, true)

    def correct(features, given, **parameters):
        seen.update(parameters, threads=torch.get_num_threads())
        return Result()

    monkeypatch.setattr(tuning_grid, "correct", correct)
    given = np.where(np.arange(250) < 50, (true + 1) % 10, true)
    assert play(Run(source, 0, given, {"alpha": 0.5})) == Outcome(0.8, 0.9)
    assert seen == {"seed": 0, "alpha": 0.5, "threads": 1}
    assert torch.get_num_threads() == threads


def test_a_failed_run_leaves_its_cell_out_and_the_others_are_kept(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def fails_on_errors(run):
        wrong = (run.given_labels != run.source.rows(run.seed)[1]).any()
        return Outcome(1.0, 0.0, "failed: no memory") if wrong else Outcome(1.0, 1.0)

    monkeypatch.setattr(tuning_grid, "play", fails_on_errors)
    assert main(["benchmark", "tuning", "--quick"]) == 1
    whole, broken = written(tmp_path)["rows"]
    assert (whole["note"], broken["note"], broken["figures"]) == (None, "failed: no memory", {})


def test_finished_cells_outlive_an_interruption(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    left = iter([Outcome(1.0, 1.0)] * 3)  # one cell of a quick run

    def stops(run):
        try:
            return next(left)
        except StopIteration:
            raise KeyboardInterrupt from None

    monkeypatch.setattr(tuning_grid, "play", stops)
    with pytest.raises(KeyboardInterrupt):
        tuning_grid.tuning(parsed(["--rates", "0", "5"]), 1, lambda _: None)
    record = written(tmp_path)
    assert [row["case"] for row in record["rows"]] == ["digits, true labels"]
    assert record["facts"]["notes"][0] == "NOT FINISHED: 1 of 2 cells."


def parsed(words):
    parser = argparse.ArgumentParser()
    tuning_grid.tuning_options(parser)
    parser.set_defaults(quick=True, out=None)
    return parser.parse_args(words)


def test_true_labels_are_one_cell_whatever_the_kinds_and_nothing_is_measured_twice():
    asked = parsed(["--rates", "0", "5", "5", "--kinds", "patch", "mixed"])
    asked.quick = False
    names = [place.name for place in tuning_grid._places(asked)]
    assert names == ["digits, true labels", "digits, patch, 5%", "digits, mixed, 5%"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--on", "features"], "--on features needs --data DIR"),
        (["--data", "nowhere"], "--data must be a folder with cifar10_features.npz and labels.npz"),
        (["--rates", "0.2"], "--rates must be percents: 0, or from 1 to below 100. Got 0.2 instead."),
        (["--rates", "100"], "Got 100 instead."),
        (["--rates", "nan"], "Got nan instead."),
        (["--jobs", "0"], "--jobs must be at least 1. Got 0 instead."),
        (["--seeds", "0"], "--seeds must be at least 1. Got 0 instead."),
    ],
)
def test_wrong_requests_are_told_and_write_nothing(words, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["benchmark", "tuning", "--quick", *words]) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.glob("benchmark-*.json"))


@pytest.mark.parametrize("words", [["--on", "pictures"], ["--kinds", "both"]])
def test_unknown_names_are_refused_with_the_known_ones(words, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["benchmark", "tuning", *words])
    assert stopped.value.code == 2
    assert "choose from" in capsys.readouterr().err
