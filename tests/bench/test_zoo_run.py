import json
import os
import pickle
from concurrent.futures import Future

import numpy as np
import pytest
import torch
from zoo_stub import nearest_mean

from bench.command import main
from bench.lines import append_line
from bench.zoo import answers, classifier, rivals, run
from bench.zoo import command as zoo_command
from bench.zoo.cells import choose_cells, find_sets
from labelmend.errors import ConfigError, DataError


@pytest.fixture
def corrections(monkeypatch):
    """Every call of the stand-in for `correct`: how many classes and rows, and what was assumed."""
    calls = []

    def correct(X, y, seed=0, assume="auto"):
        calls.append((len(y), assume, torch.get_num_threads()))
        return nearest_mean(X, y, seed, assume)

    monkeypatch.setattr(answers, "correct", correct)
    monkeypatch.setattr(classifier, "correct", correct)
    monkeypatch.setattr(run.measure, "warm_up", lambda: None)
    return calls


@pytest.fixture
def votes_only(monkeypatch):
    monkeypatch.setattr(rivals, "RIVALS", {"knn": rivals.knn, "simi": rivals.similar})


def lines_of(path):
    return [json.loads(row) for row in path.read_text(encoding="utf-8").splitlines()]


def zoo(*words):
    return main(["zoo", "--jobs", "1", *words])


@pytest.mark.usefixtures("votes_only")
def test_it_runs_keeps_a_line_a_cell_and_does_not_run_it_again(corrections, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert zoo("--only", "iris,wine", "--kinds", "clean,random20") == 0
    printed = capsys.readouterr().out
    lines = lines_of(tmp_path / "benchmark-zoo.jsonl")
    assert {(line["name"], line["kind"]) for line in lines} == {
        (name, kind) for name in ("iris", "wine") for kind in ("clean", "random20")
    }
    for title in (
        "Labels right, %",
        "labelmend against each",
        "A run's own estimates",
        "CPU seconds",
        "Every limit",
    ):
        assert title in printed
    assert "n = 4 cells of 2 data sets in 2 families" in printed
    assert len(corrections) == 4
    assert {threads for _, _, threads in corrections} == {1}
    assert zoo("--only", "iris,wine", "--kinds", "clean,random20") == 0
    assert capsys.readouterr().out == printed
    assert len(corrections) == 4
    record = json.loads((tmp_path / "benchmark-zoo.json").read_text(encoding="utf-8"))
    assert record["command"] == "python -m bench zoo --only iris,wine --kinds clean,random20"
    assert {"machine", "versions", "facts"} <= set(record)
    assert main(["readme-table", "benchmark-zoo.json"]) == 0
    assert capsys.readouterr().out.startswith("| zoo | given | labelmend | pool | ensemble |")


@pytest.mark.usefixtures("votes_only")
def test_a_line_has_all_that_the_tables_ask_for(corrections, tmp_path):
    out = tmp_path / "zoo.jsonl"
    assert zoo("--only", "iris", "--kinds", "random20", "--out", str(out)) == 0
    [line] = lines_of(out)
    parts = {"given", "labelmend", "pool", "ensemble", "best_guess", "everything", "preferred"}
    assert set(line["methods"]) == {*parts, "knn", "simi"}
    assert line["methods"]["given"]["right"] == 80
    assert line["methods"]["labelmend"]["right"] > 85
    assert {"right", "balanced", "broken", "kept", "auroc", "precision"} == set(line["methods"]["labelmend"])
    assert (line["wrong"], line["rate"], line["rate_low"], line["rate_high"]) == (20, 20, 10, 30)
    assert 0 < line["verdict"]["disputed"] < 0.5
    assert line["guessed"] > 85
    assert str(tmp_path) not in (tmp_path / "zoo.json").read_text(encoding="utf-8")


@pytest.mark.usefixtures("votes_only")
def test_a_failed_cell_is_told_and_tried_again(corrections, tmp_path, monkeypatch, capsys):
    out = tmp_path / "zoo.jsonl"

    def fails(X, y, seed=0, assume="auto"):
        raise MemoryError("too little of it")

    with monkeypatch.context() as patch:
        patch.setattr(answers, "correct", fails)
        assert zoo("--only", "iris", "--kinds", "clean", "--out", str(out)) == 1
    printed = capsys.readouterr().out
    assert "iris:clean  failed: MemoryError: too little of it" in printed
    assert "NOT FINISHED: 0 of 1" in printed
    assert zoo("--only", "iris", "--kinds", "clean", "--out", str(out)) == 0
    assert len(lines_of(out)) == 1


@pytest.mark.usefixtures("votes_only")
def test_classes_that_are_apart_are_found_first(corrections, tmp_path, capsys):
    out = str(tmp_path / "zoo.jsonl")
    words = ("--only", "wine,iris", "--kinds", "clean,random20", "--out", out)
    assert zoo(*words, "--assume", "apart") == 0
    told = capsys.readouterr()
    assert "1 sets are apart: wine" in told.err  # the stand-in knows 97 % of wine and 86 % of iris
    assert [assume for _, assume, _ in corrections] == ["auto", "auto", "apart", "apart"]
    assert "best guess of the pool" in told.out
    assert "Every limit" not in told.out
    assert (tmp_path / "zoo-apart.json").is_file()
    assert zoo(*words, "--assume", "apart", "--table") == 0
    assert capsys.readouterr().out == told.out


@pytest.mark.usefixtures("votes_only")
def test_weak_features_have_cells_of_their_own(corrections, tmp_path, capsys):
    out = tmp_path / "zoo.jsonl"
    assert zoo("--only", "breast_cancer,wine", "--weak", "--out", str(out)) == 0
    lines = lines_of(out)
    assert len(lines) == 5  # wine has three classes
    assert all(line["methods"]["given"]["right"] == 100 for line in lines)
    assert "weak-noise8" in capsys.readouterr().out
    assert (tmp_path / "zoo-weak.json").is_file()


@pytest.mark.usefixtures("votes_only")
def test_the_classifier_is_checked_on_a_third_and_added_to_the_line(corrections, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(classifier, "MEMBERS", {name: classifier.MEMBERS[name] for name in ("ridge", "10-NN")})
    out = tmp_path / "zoo.jsonl"
    words = ("--only", "iris", "--kinds", "clean", "--out", str(out))
    assert zoo(*words) == 0
    assert zoo(*words, "--classifier") == 0
    assert [n for n, _, _ in corrections] == [150, 100]
    found = run.read_lines(out)["iris", "clean", "auto", 0]["classifier"]
    true = np.arange(150) // 50
    zeros = 100 * (true[classifier.held_out_third(150)] == 0).mean()  # the stand-in says 0 always
    assert found["labelmend"] == pytest.approx(zeros)
    assert found["best member"] == max(found["ridge"], found["10-NN"]) > 80
    assert "The classifier handed back" in capsys.readouterr().out
    assert zoo(*words, "--classifier") == 0
    assert len(corrections) == 2


def test_all_members_learn(corrections):
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 2
    features = rng.normal(size=(60, 3)) + 3 * labels[:, None]
    told = classifier.members_predict(features, labels, features)
    assert set(told) == set(classifier.MEMBERS)
    assert all((codes == labels).mean() > 0.9 for codes in told.values())


def test_a_torn_last_line_is_passed_over_and_begun_anew(tmp_path):
    path = tmp_path / "zoo.jsonl"
    one, two = ({"version": 1, "name": name, "kind": "clean", "assume": "auto", "seed": 0} for name in "ab")
    path.write_text(json.dumps(one) + "\n" + json.dumps(two)[:20], encoding="utf-8")
    assert list(run.read_lines(path)) == [("a", "clean", "auto", 0)]
    append_line(path, two)
    assert [key[0] for key in run.read_lines(path)] == ["a", "b"]
    append_line(path, {**one, "classifier": {}})
    assert "classifier" in run.read_lines(path)["a", "clean", "auto", 0]  # the last line of a cell counts


@pytest.mark.parametrize("row", ["not JSON\n", '{"version": 0}\n', "[1]\n"])
def test_lines_of_something_else_are_refused(row, tmp_path):
    path = tmp_path / "zoo.jsonl"
    path.write_text(row, encoding="utf-8")
    with pytest.raises(DataError, match="line 1"):
        run.read_lines(path)


@pytest.mark.parametrize(
    "words", [("--jobs", "0"), ("--seeds", "0"), ("--only", "lemurs"), ("--kinds", "mud"), ("--out", "x.json")]
)
def test_wrong_requests_write_nothing(words, tmp_path, monkeypatch, corrections, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["zoo", *words]) == 2
    assert words[0] in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_without_probabilities_of_the_pool_nobody_knows_what_is_apart(tmp_path, monkeypatch, corrections):
    def bare(X, y, seed=0, assume="auto"):
        result = nearest_mean(X, y)
        result.evidence = None
        return result

    monkeypatch.setattr(answers, "correct", bare)
    monkeypatch.setattr(rivals, "RIVALS", {})
    with pytest.raises(ConfigError, match="apart"):
        zoo_command.main(["--only", "iris", "--jobs", "1", "--assume", "apart", "--out", str(tmp_path / "zoo.jsonl")])


@pytest.mark.usefixtures("votes_only")
def test_several_processes_get_cells_and_give_lines(corrections, tmp_path, monkeypatch):
    """Without their start, which imports torch in each: what goes there and back is pickled all the same."""
    asked = []

    class Pool:
        def __init__(self, jobs, context, start):
            asked.append((jobs, context.get_start_method(), start, os.environ["OMP_NUM_THREADS"]))

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def shutdown(self, **_):
            pass

        def submit(self, do, *order):
            future = Future()
            there = pickle.loads(pickle.dumps((do, order)))
            future.set_result(pickle.loads(pickle.dumps(there[0](*there[1]))))
            return future

    monkeypatch.setattr(run, "ProcessPoolExecutor", Pool)
    cells = choose_cells([one for one in find_sets(None) if one.name == "iris"], ["clean", "random10"], [0])
    out = tmp_path / "zoo.jsonl"
    assert run.run_cells(cells, {}, out, 2, lambda text: None) == []
    assert asked == [(2, "spawn", run.begin, "1")]
    assert set(run.read_lines(out)) == {cell.key for cell in cells}
