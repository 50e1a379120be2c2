import json
import sys

import pytest

from bench import command, trial
from bench.command import BENCHMARKS, COMMANDS, main
from bench.suite import VECTOR_BENCHMARKS


@pytest.fixture
def in_process(monkeypatch):
    """No fresh process per trial: each would import torch again."""

    def measure(case, method, seed):
        return {**trial.measure(case, method, seed), "peak_bytes": 4e8, "used_bytes": 1e8}

    monkeypatch.setattr(trial, "measure_alone", measure)


def test_without_a_name_every_benchmark_is_listed(capsys):
    assert main([]) == 0
    text = capsys.readouterr().out
    for name, benchmark in BENCHMARKS.items():
        assert f"  {name}" in text
        assert benchmark.about in text
    assert all(f"  {name}" in text for name in COMMANDS)


@pytest.mark.slow
@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("name", VECTOR_BENCHMARKS)
def test_every_benchmark_runs_writes_json_and_becomes_a_table(name, human_folder, tmp_path, capsys):
    out = tmp_path / f"{name}.json"
    assert main([name, "--quick", "--data", str(human_folder), "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    record = json.loads(out.read_text(encoding="utf-8"))
    assert {row["method"] for row in record["rows"]} == {"labelmend", "cleanlab", "k-NN vote"}
    for row in record["rows"]:
        assert row["note"] is None
        assert 0 <= row["figures"]["label_accuracy"]["mean"] <= 1
        assert row["case"] in printed
    assert f"written to {out}" in printed
    assert str(human_folder) not in out.read_text(encoding="utf-8")
    assert main(["readme-table", str(out)]) == 0
    assert f"| {name} | labelmend | cleanlab | k-NN vote |" in capsys.readouterr().out


def test_without_cleanlab_the_table_says_so(monkeypatch, human_folder, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, "cleanlab.filter", None)
    monkeypatch.chdir(tmp_path)
    assert (
        command.main(["human", "--data", str(human_folder), "--seeds", "2", "--methods", "k-NN vote", "cleanlab"]) == 0
    )
    assert "not installed" in capsys.readouterr().out
    record = json.loads((tmp_path / "benchmark-human.json").read_text(encoding="utf-8"))
    assert {row["note"] for row in record["rows"] if row["method"] == "cleanlab"} == {"not installed"}
    assert {row["note"] for row in record["rows"] if row["method"] == "k-NN vote"} == {None}


def test_a_failure_of_labelmend_shows_in_the_exit_code(monkeypatch, human_folder, tmp_path):
    def fail(case, method, seed):
        raise trial.TrialFailedError("MemoryError")

    monkeypatch.setattr(trial, "measure_alone", fail)
    options = ["--data", str(human_folder), "--out", str(tmp_path / "x.json"), "--seeds", "1"]
    assert command.main(["speed", *options, "--methods", "labelmend"]) == 1
    assert command.main(["speed", *options, "--methods", "k-NN vote"]) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["digit"], "must be one of digits, human"),
        (["human"], "needs --data DIR"),
        (["digits", "--seeds", "0"], "--seeds must be at least 1"),
        (["readme-table", "absent.json"], "must be a JSON file"),
    ],
)
def test_wrong_requests_are_told_and_write_nothing(arguments, message, monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
