"""Long runs of the paper's tables: kept, stopped, continued, queued and merged."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from bench.command import main
from bench.paper import keeping, play

CELL = ["cifar10", "--columns", "symmetric 50 %", "--rows", "+ mixup + soft label", "--readings", "semi-supervised"]

EPOCHS = 20  # of a run that is killed after its third


@pytest.fixture
def folder(paper_data, monkeypatch):
    monkeypatch.chdir(paper_data)
    return paper_data


def paper(*words):
    return main(["paper", *words, "--data", ".", "--device", "cpu"])


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def without_time(result):
    timed = {"seconds", "test_seconds"}
    figures = {name: value for name, value in result["figures"].items() if name not in timed}
    return {**result, "figures": figures, "date": None}


# A run of the command that keeps every round.
EAGER = """
import sys
from bench.paper import keeping
from bench.command import main
keeping.EVERY = keeping.PAUSE_PER_WRITE = 0
sys.exit(main(sys.argv[1:]))
"""


def kill_after(round_index, folder, *words):
    """Run the command and kill it as soon as that round is kept."""
    command = [sys.executable, "-c", EAGER, "paper", *words, "--data", ".", "--device", "cpu"]
    run = subprocess.Popen(command, env={**os.environ, "OMP_NUM_THREADS": "1"})  # rounding follows the threads
    until = time.monotonic() + 60
    while time.monotonic() < until and run.poll() is None:
        newest = max((path.name for path in folder.glob("*/round-*")), default="round-000000")
        if int(newest[6:12]) >= round_index:
            break
        time.sleep(0.005)
    run.kill()
    assert run.wait() == -signal.SIGKILL, "it was over before it could be killed"


@pytest.mark.slow
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_killed_cell_goes_on_and_ends_like_one_that_was_not(folder, jobs):
    words = [*CELL, "--quick", "--epochs", str(EPOCHS)]
    kill_after(3, folder / "kept", *words, "--checkpoints", "kept")
    out = folder / "paper-quick.jsonl"
    assert not out.exists()
    assert paper(*words, "--checkpoints", "kept", "--jobs", jobs) == 0
    assert paper(*words, "--jobs", jobs, "--out", "other.jsonl") == 0
    (one,), (other,) = lines(out), lines(folder / "other.jsonl")
    assert without_time(one) == without_time(other)
    assert len(one["curves"]["kept_right"]) == EPOCHS
    assert list((folder / "kept").iterdir()) == []


def test_a_cell_whose_time_is_over_is_no_result_and_goes_on_later(folder, capsys, monkeypatch):
    words = [*CELL, "--quick", "--epochs", "6", "--checkpoints", "kept"]
    rounds, leaves_time = [], keeping.TimeLimit.leaves_time

    def leaves_time_for_four(limit, history, corrects):
        rounds.append(len(history))
        return len(history) < 4 and leaves_time(limit, history, corrects)

    with monkeypatch.context() as patch:
        patch.setattr(keeping.TimeLimit, "leaves_time", leaves_time_for_four)
        assert paper(*words, "--time-limit", "1h") == 0
    assert "stopped: the time is over" in capsys.readouterr().err
    assert not (folder / "paper-quick.jsonl").exists()
    assert [path.name for path in (folder / "kept").glob("*/round-*")] == ["round-000004.safetensors"]
    assert paper(*words) == 0
    assert paper(*words, "--out", "other.jsonl") == 0
    (one,), (other,) = lines(folder / "paper-quick.jsonl"), lines(folder / "other.jsonl")
    assert without_time(one) == without_time(other)


@pytest.mark.parametrize("jobs", [1, 2])
def test_after_the_end_no_cell_begins(folder, capsys, jobs):
    assert paper(*CELL, "--quick", "--time-limit", "0.000001s", "--jobs", str(jobs)) == 0
    assert "1 cells are not begun" in capsys.readouterr().err
    assert not (folder / "paper-quick.jsonl").exists()


def sleep(pipe):
    time.sleep(60)


def test_what_does_not_stop_in_time_is_killed_and_no_failure(folder, monkeypatch, capsys):
    monkeypatch.setattr(play, "answer_orders", sleep)
    monkeypatch.setattr(play, "GRACE", 0.1)
    assert paper(*CELL, "--quick", "--time-limit", "0.5s", "--jobs", "2") == 0
    assert not (folder / "paper-quick.jsonl").exists()
    assert "failed" not in capsys.readouterr().out


def test_a_queue_runs_the_open_cells_of_many_in_its_order(folder, capsys):
    queue = folder / "queue.txt"
    queue.write_text(
        """
# the longest first
cifar10 --columns "asymmetric 40 %" --rows "+ mixup + soft label" --readings semi-supervised --epochs 1
cifar100 --columns "symmetric 50 %" --rows mixup "w/o noisy branch" --readings kept --epochs 1
"""
    )
    assert paper("--queue", str(queue), "--quick", "--out", "all.jsonl") == 0
    found = lines(folder / "all.jsonl")
    assert [(r["experiment"], r["row"]) for r in found] == [
        ("cifar10", "+ mixup + soft label"),
        ("cifar100", "mixup"),
        ("cifar100", "w/o noisy branch"),
    ]
    assert found[0]["settings"]["changes"]["warmup_penalty"] == 1.0
    assert found[2]["settings"]["changes"]["corrected_loss"] == "split"
    capsys.readouterr()
    assert paper("--queue", str(queue), "--quick", "--out", "all.jsonl") == 0
    assert "3 of 3 cells are in all.jsonl already" in capsys.readouterr().err
    assert not (folder / "all.md").exists()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--rows mixup", "must begin with the NAME of an experiment"),
        ("nonsense", "NAME must be one of"),
        ("cifar10 --rows never", "--rows must be among"),
    ],
)
def test_a_wrong_line_is_told_before_anything_runs(folder, line, message, capsys):
    (folder / "queue.txt").write_text(f"cifar10 --columns 'asymmetric 40 %' --rows mixup\n{line}\n")
    assert paper("--queue", "queue.txt", "--quick") != 0
    assert message in capsys.readouterr().err
    assert not (folder / "paper-quick.jsonl").exists()


def test_results_of_several_files_become_one(folder, capsys):
    words = ["cifar10", "--columns", "symmetric 50 %", "--quick", "--epochs", "1"]
    paper(*words, "--rows", "mixup", "--out", "a.jsonl")
    paper(*words, "--rows", "mixup", "cross entropy", "--out", "b.jsonl")
    capsys.readouterr()
    assert paper("--merge", "a.jsonl", "b.jsonl", "--out", "whole.jsonl") == 0
    assert "2 results added to whole.jsonl, which has 2" in capsys.readouterr().out
    assert [r["row"] for r in lines(folder / "whole.jsonl")] == ["mixup", "cross entropy"]
    assert paper("--merge", "b.jsonl", "--out", "whole.jsonl") == 0
    assert "0 results added" in capsys.readouterr().out
    assert paper("--merge", "nowhere.jsonl") != 0
