"""`labelmend correct --resume`: after kill -9, Ctrl-C, a full disk; and what it refuses."""

import csv
import dataclasses
import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

import labelmend
from blobs import as_options as options_of
from blobs import blobs, plant
from coloured import COLOURS, TINY, coloured, write_folders
from labelmend.cli import correct as correct_command
from labelmend.cli.main import main
from labelmend.files.writing import locked
from labelmend.storage import job
from labelmend.storage.job import read_job

SMALL = {"device": "cpu", "n_rounds": 4, "n_branches": 2, "packages_per_branch": 2, "hidden": 8, "graph_k": 5}
FAST = options_of(SMALL)
WORKING = Path(".run.labelmend-running")
ALWAYS = ["--checkpoint-every", "0"]


@pytest.fixture
def table():
    features, true = blobs(60)
    with open("table.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["a", "b", "c", "d", "kind"])
        writer.writerows([*row, "xyz"[label]] for row, label in zip(features, plant(true, 0.1)[0], strict=True))
    return ["correct", "table.csv", "--labels", "kind", "--out", "run", *FAST]


def interrupt(command, monkeypatch, at=2, error=KeyboardInterrupt):
    """The command, ended by `error` after round `at`; its exit code."""

    class Ending(correct_command.ProgressLine):
        def round(self, record, state=None):
            super().round(record, state)
            if record.round_index == at:
                raise error

    with monkeypatch.context() as patch:
        patch.setattr(correct_command, "ProgressLine", Ending)
        return main([*command, *ALWAYS])


def assert_same_runs(one, other):
    mine, theirs = labelmend.load(one), labelmend.load(other)
    assert Path(one, "labels.csv").read_bytes() == Path(other, "labels.csv").read_bytes()
    assert (mine.votes != theirs.votes).nnz == 0
    np.testing.assert_array_equal(mine.neighbors, theirs.neighbors)
    np.testing.assert_array_equal(mine.transition, theirs.transition)
    for name, value in mine.model.net.state_dict().items():
        assert torch.equal(value, theirs.model.net.state_dict()[name]), name
    histories = [[dataclasses.replace(record, seconds={}) for record in run.history] for run in (mine, theirs)]
    assert histories[0] == histories[1]
    assert mine.config == theirs.config


def kill_after(round_index, command):
    """Run the command and kill it as soon as that round is kept."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}  # as in this process: rounding follows the threads
    run = subprocess.Popen([sys.executable, "-m", "labelmend", *command], env=environment, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    try:
        while time.monotonic() < deadline and run.poll() is None:
            newest = max((path.name for path in WORKING.glob("checkpoints/round-*")), default="round-000000")
            if int(newest[6:12]) >= round_index:
                break
            time.sleep(0.005)
    finally:
        run.kill()
    assert run.wait() == -signal.SIGKILL, "it was over before it could be killed"


@pytest.mark.slow
def test_killed_and_killed_again_a_run_ends_as_if_it_was_not(table):
    many = [*table, "--expert", "n_rounds=80"]
    kill_after(3, [*many, *ALWAYS])
    assert not os.path.exists("run")
    kill_after(12, ["correct", "--resume", "run"])
    assert main(["correct", "--resume", "run", "--quiet"]) == 0
    many[many.index("run")] = "other"
    assert main([*many, "--quiet"]) == 0
    assert_same_runs("run", "other")
    assert sorted(os.listdir()) == ["other", "run", "table.csv"]


def test_control_c_says_how_to_go_on_and_that_works_from_anywhere(table, monkeypatch, capsys):
    assert interrupt(table, monkeypatch) == 130
    err = capsys.readouterr().err
    assert err.endswith(
        "labelmend: interrupted; nothing half-written was left behind\n"
        "labelmend: resume with: labelmend correct --resume run\n"
    )
    assert sorted(os.listdir()) == [WORKING.name, "table.csv"]
    os.mkdir("elsewhere")
    monkeypatch.chdir("elsewhere")
    assert main(["correct", "--resume", "../run"]) == 0
    assert os.getcwd().endswith("elsewhere")
    out, err = capsys.readouterr()
    assert err.startswith("resuming after round 2 of 4\nround 3/4  ")
    assert "../run/labels.csv" in out
    monkeypatch.chdir("..")
    table[table.index("run")] = "other"
    assert main([*table, "--quiet"]) == 0
    assert_same_runs("run", "other")
    assert sorted(os.listdir()) == ["elsewhere", "other", "run", "table.csv"]


def test_without_a_checkpoint_nothing_is_left_to_go_on_with(table, monkeypatch, capsys):
    class Ending(correct_command.ProgressLine):
        def stage(self, name):
            raise KeyboardInterrupt

    monkeypatch.setattr(correct_command, "ProgressLine", Ending)
    assert main([*table, *ALWAYS]) == 130
    assert "resume with" not in capsys.readouterr().err
    assert os.listdir() == ["table.csv"]


def test_pictures_and_names_go_on_too(monkeypatch, capsys):
    pytest.importorskip("PIL")
    pixels, true = coloured(n=45)
    given = np.array(COLOURS)[plant(true, 0.1)[0]]
    write_folders(Path("photos"), pixels, given)
    settings = options_of(TINY)
    command = [
        "correct",
        "photos",
        "--out",
        "run",
        "--mode",
        "train",
        "--cache",
        "cache",
        "--expert",
        "lr_milestones=0.5",
    ]
    assert interrupt([*command, *settings], monkeypatch) == 130
    assert main(["correct", "--resume", "run"]) == 0
    assert "resuming after round 2 of 3" in capsys.readouterr().err
    command[command.index("run")] = "other"
    assert main([*command, *settings, "--quiet"]) == 0
    assert_same_runs("run", "other")
    assert labelmend.load("run").config.lr_milestones == (0.5,)


def test_what_the_command_said_is_said_again(monkeypatch, capsys):
    features, true = blobs(60)
    np.save("X.npy", features)
    np.save("y.npy", np.where(np.arange(60) < 5, -1, true))
    command = ["correct", "X.npy", "--labels", "y.npy", "--missing", "-1", "--out", "run", *FAST]
    assert interrupt(command, monkeypatch) == 130
    os.mkdir("elsewhere")
    monkeypatch.chdir("elsewhere")
    capsys.readouterr()
    assert main(["correct", "--resume", "../run", "--json", "--quiet"]) == 0
    out, err = capsys.readouterr()
    summary = json.loads(out)
    assert (summary["filled"], summary["out"]) == (5, "../run")
    assert err == ""


def test_a_full_disk_at_the_end_costs_only_the_end(table, monkeypatch, capsys):
    def full(*args):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("labelmend.storage.run_files.write_json", full)
        assert main([*table, *ALWAYS]) == 2
    assert "labelmend: resume with: labelmend correct --resume run\n" in capsys.readouterr().err
    assert main(["correct", "--resume", "run"]) == 0
    assert capsys.readouterr().err == "resuming after round 4 of 4\n"


def test_killed_while_it_cleared_up_a_run_is_finished(table, monkeypatch, capsys):
    with monkeypatch.context() as patch:
        patch.setattr(job, "_remove", lambda working: None)
        assert main([*table, *ALWAYS]) == 0
    before, lines = os.stat("run/labels.csv").st_ino, capsys.readouterr().out
    assert WORKING.exists()
    assert main(["correct", "--resume", "run"]) == 0
    assert capsys.readouterr().out == lines
    assert os.stat("run/labels.csv").st_ino == before
    assert not WORKING.exists()


# Refusing


def test_an_unfinished_run_is_begun_anew_only_with_force(table, monkeypatch, capsys):
    assert interrupt(table, monkeypatch) == 130
    before = sorted(os.listdir(WORKING / "checkpoints"))
    capsys.readouterr()
    assert main(table) == 2
    err = capsys.readouterr().err
    assert "labelmend correct --resume run" in err
    assert "--force" in err
    assert sorted(os.listdir(WORKING / "checkpoints")) == before
    assert main([*table, "--force", "--seed", "7"]) == 0
    assert "round 1/4" in capsys.readouterr().err
    assert labelmend.load("run").config.seed == 7
    assert sorted(os.listdir()) == ["run", "table.csv"]


def test_an_unfinished_run_with_force_replaces_the_old_one_when_it_goes_on(table, monkeypatch):
    assert main([*table, "--quiet"]) == 0
    assert interrupt([*table, "--force", "--seed", "7"], monkeypatch) == 130
    assert labelmend.load("run").config.seed == 0
    assert main(["correct", "--resume", "run", "--quiet"]) == 0
    assert labelmend.load("run").config.seed == 7


@pytest.mark.parametrize("again", [False, True], ids=["resumed", "the same command"])
def test_what_was_killed_before_its_first_checkpoint_begins_at_the_beginning(table, monkeypatch, again):
    class Killed(correct_command.ProgressLine):
        def stage(self, name):
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(correct_command, "ProgressLine", Killed)
        patch.setattr(job, "_remove", lambda working: None)  # kill -9 does not clear up
        assert main([*table, *ALWAYS]) == 130
    assert (WORKING / "job.json").exists()
    assert main([*(table if again else ["correct", "--resume", "run"]), "--quiet"]) == 0
    assert len(labelmend.load("run").history) == 4
    assert not WORKING.exists()


def test_two_processes_cannot_make_the_same_run(table, monkeypatch, capsys):
    assert interrupt(table, monkeypatch) == 130
    capsys.readouterr()
    with locked(WORKING):
        for command in (table, [*table, "--force"], ["correct", "--resume", "run"]):
            assert main(command) == 2
            assert f"one run at a time can use run. Process {os.getpid()} does so now" in capsys.readouterr().err
    assert main(["correct", "--resume", "run", "--quiet"]) == 0


def test_other_data_are_refused_and_the_run_can_still_go_on(table, monkeypatch, capsys):
    assert interrupt(table, monkeypatch) == 130
    whole = Path("table.csv").read_text()
    lines = whole.splitlines(keepends=True)
    capsys.readouterr()
    for text, words in [
        ("".join(lines[:-1]), "these have changed: rows (59, were 60)."),
        (whole.replace(",x", ",w", 1), "these have changed: classes (4, were 3)."),
        (whole.replace(lines[3], lines[3].replace(".", ".1", 1)), "these have changed: features, pictures"),
    ]:
        Path("table.csv").write_text(text)
        assert main(["correct", "--resume", "run"]) == 2
        err = capsys.readouterr().err
        assert words in err
        assert "resume with" not in err
    Path("table.csv").unlink()
    assert main(["correct", "--resume", "run"]) == 2
    assert "no such file or folder: table.csv" in capsys.readouterr().err
    Path("table.csv").write_text(whole)
    assert main(["correct", "--resume", "run", "--quiet"]) == 0


def test_only_damaged_checkpoints_are_told_with_the_way_out(table, monkeypatch, capsys):
    assert interrupt(table, monkeypatch) == 130
    for path in WORKING.glob("checkpoints/round-*"):
        path.write_bytes(b"")
    assert main(["correct", "--resume", "run"]) == 2
    assert "labelmend correct: --force" in capsys.readouterr().err
    assert main([*table, "--force"]) == 0


def test_the_rest_of_the_command_is_refused(table, monkeypatch, capsys):
    assert interrupt(table, monkeypatch) == 130
    capsys.readouterr()
    for more in (["table.csv"], ["--labels", "kind"], ["--seed", "0"], ["--out", "b"], ["--ignore", "a"], ["--force"]):
        assert main(["correct", "--resume", "run", *more]) == 2
        assert "--resume reuses the original settings" in capsys.readouterr().err
    with pytest.raises(SystemExit) as end:
        main(["correct", "--out", "b"])
    assert end.value.code == 2
    assert "required: DATA" in capsys.readouterr().err


def test_there_must_be_something_to_go_on_with(table, monkeypatch, capsys):
    assert main(["correct", "--resume", "run"]) == 2
    assert "--resume needs an interrupted run. run was never started." in capsys.readouterr().err
    assert main([*table, "--quiet"]) == 0
    assert main(["correct", "--resume", "run"]) == 2
    assert "run is finished." in capsys.readouterr().err
    WORKING.mkdir()
    for text in ("", "[]", '{"format": "labelmend job"}', '{"format": "labelmend job", "format_version": 9}'):
        (WORKING / "job.json").write_text(text)
        assert main(["correct", "--resume", "run"]) == 2
        assert "job.json must be whole" in capsys.readouterr().err


def test_a_folder_that_took_the_place_of_the_run_is_not_replaced(table, monkeypatch, capsys):
    assert interrupt(table, monkeypatch) == 130
    os.mkdir("run")
    Path("run/thesis.txt").touch()
    assert main(["correct", "--resume", "run"]) == 2
    assert "the output folder must not exist" in capsys.readouterr().err
    assert os.listdir("run") == ["thesis.txt"]


# The time limit


def test_a_time_limit_ends_a_run_in_good_order(table, monkeypatch, capsys):
    assert main([*table, "--expert", "n_rounds=100000", "--time-limit", "0.5s"]) == 0
    out, err = capsys.readouterr()
    n_rounds = err.count("round ")
    assert f"note: stopped by the time limit after {n_rounds} of 100000 rounds\n" in out
    assert len(labelmend.load("run").history) == n_rounds


def test_a_resumed_run_may_have_a_limit_of_its_own(table, monkeypatch, capsys):
    assert interrupt([*table, "--time-limit", "2h"], monkeypatch) == 130
    assert read_job(Path("run")).options["time_limit"] == "2h"
    assert main(["correct", "--resume", "run", "--time-limit", "0.000001"]) == 0
    assert "stopped by the time limit after 2 of 4 rounds" in capsys.readouterr().out


def test_a_wrong_limit_is_told_before_the_data_are_read(capsys):
    assert main(["correct", "nowhere.csv", "--labels", "kind", "--out", "run", "--time-limit", "soon"]) == 2
    assert "the time limit must be a time above 0" in capsys.readouterr().err
