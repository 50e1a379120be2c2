import csv
import dataclasses
import json
import os

import numpy as np
import pytest
from made import decide as decide_once
from made import made_result

import labelmend
from labelmend.cli.main import main
from labelmend.errors import RunFolderError
from labelmend.review import apply as apply_module
from labelmend.review.apply import apply, read_decisions
from labelmend.review.decisions import FILE, LABEL, SKIP, UNSURE, Choice, Decisions, Subject
from labelmend.storage.run_folder import read_run
from labelmend.storage.source import ARRAYS
from labelmend.storage.target import refuse_existing


@pytest.fixture
def decide(run):
    """Write choices into the log of the run; each replaces what stood."""
    log = Decisions(run / FILE, Subject.of(read_run(run)))
    numbers = iter(range(1000))

    def write(*choices):
        for sample, kind, code in choices:
            seen = int(log.standing.number[sample])
            log.decide([Choice(sample, kind, code, seen)], "tab", str(next(numbers)))

    write.log = log
    yield write
    log.close()


def table(run):
    with (run / "labels.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def files(run):
    return {path.name: path.read_bytes() for path in run.iterdir() if not path.name.startswith("review.sqlite")}


def test_decided_labels_are_in_the_tables_and_in_the_loaded_run(run, decide):
    before = labelmend.load(run)
    decide((0, LABEL, 2), (1, LABEL, int(before.corrected_codes[1])), (2, UNSURE, None), (3, SKIP, None))
    merge = apply(run)
    assert dataclasses.replace(merge, changes=[]) == apply_module.Merge(2, 1, 1, 1, [])
    assert [(change.id, change.new) for change in merge.changes] == [(before.ids[0], before.classes[2])]
    after = labelmend.load(run)
    assert after.status[:4].tolist() == ["reviewed", "reviewed", "review", "review"]
    assert after.confidence[:2].tolist() == [1, 1]
    np.testing.assert_array_equal(after.confidence[2:], before.confidence[2:])
    assert after.labels[0] == before.classes[2]
    np.testing.assert_array_equal(after.labels[1:], before.labels[1:])
    rows = table(run)
    assert [row["status"] for row in rows] == after.status.tolist()
    assert [row["corrected"] for row in rows] == after.labels.tolist()
    assert after.summary()["reviewed"] == 2
    assert json.loads((run / "summary.json").read_text())["reviewed"] == 2


def test_the_parquet_says_the_same(run, decide):
    import pyarrow.parquet

    decide((0, LABEL, 2))
    apply(run)
    found = pyarrow.parquet.read_table(run / "labels.parquet").to_pydict()
    assert found["corrected"] == [row["corrected"] for row in table(run)]
    assert found["status"][0] == "reviewed"


def test_a_stale_parquet_does_not_stay(run, decide, monkeypatch):
    decide((0, LABEL, 2))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    apply(run)
    assert not (run / "labels.parquet").exists()


def test_what_the_run_had_said_stays(run, decide):
    said = (run / "labels.csv").read_bytes()
    before = read_run(run)
    decide((0, LABEL, 2))
    apply(run)
    assert (run / "labels_before_review.csv").read_bytes() == said
    after = read_run(run)
    np.testing.assert_array_equal(after.corrected_codes, before.corrected_codes)
    np.testing.assert_array_equal(after.status, before.status)
    np.testing.assert_array_equal(after.confidence, before.confidence)


def test_applying_twice_is_applying_once(run, decide):
    decide((0, LABEL, 2), (5, UNSURE, None))
    apply(run)
    first = {name: contents for name, contents in files(run).items() if not name.endswith(".npz")}
    merge = apply(run)
    assert merge.changes == []
    assert merge.decided == 1
    assert {name: contents for name, contents in files(run).items() if not name.endswith(".npz")} == first


def test_later_decisions_and_undo_are_merged_as_well(run, decide):
    before = labelmend.load(run)
    decide((0, LABEL, 2))
    apply(run)
    decide((0, LABEL, 0), (4, LABEL, 2))
    assert len(apply(run).changes) == 2
    assert labelmend.load(run).corrected_codes[[0, 4]].tolist() == [0, 2]
    for step in (3, 2, 1):
        decide.log.undo(step, "tab", f"undo {step}")
    apply(run)
    after = labelmend.load(run)
    np.testing.assert_array_equal(after.corrected_codes, before.corrected_codes)
    np.testing.assert_array_equal(after.status, before.status)


def test_what_could_not_be_told_is_for_review_whatever_it_was(run, decide):
    corrected = int(np.flatnonzero(read_run(run).status == "corrected")[0])
    decide((corrected, UNSURE, None))
    apply(run)
    assert labelmend.load(run).status[corrected] == "review"


def test_the_runner_up_is_never_the_label(run, decide):
    before = read_run(run)
    second = before.classes.tolist().index(before.runner_up[0])
    decide((0, LABEL, second))
    apply(run)
    after = labelmend.load(run)
    assert after.labels[0] == before.runner_up[0]
    assert after.runner_up[0] == before.labels[0]


def test_a_dry_run_writes_nothing_and_says_what_would_change(run, decide, capsys):
    decide((0, LABEL, 2))
    before = files(run)
    assert main(["apply", str(run), "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert "1 label would change" in out
    assert "-> fox & <b>hen" in out
    assert "nothing was written" in out
    assert files(run) == before


def test_the_command_says_what_it_did(run, decide, capsys):
    decide((0, LABEL, 2), (1, UNSURE, None))
    assert main(["apply", str(run)]) == 0
    out = capsys.readouterr().out
    assert "1 decided by a person, 1 of them against" in out
    assert out.splitlines()[-1].endswith(f"labelmend report {run}")
    assert main(["apply", str(run), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["unsure"] == 1


def test_without_decisions_nothing_is_written(run, capsys):
    before = files(run)
    assert main(["apply", str(run)]) == 0
    assert f"labelmend review {run}" in capsys.readouterr().out
    assert files(run) == before


def test_a_kill_between_two_files_is_mended_by_applying_again(run, decide, monkeypatch):
    decide((0, LABEL, 2))
    real, done = os.replace, []

    def replace(source, target):
        if len(done) == 2:  # labels_before_review.csv and reviewed.npz are in place
            raise KeyboardInterrupt
        done.append(target)
        real(source, target)

    monkeypatch.setattr(apply_module.os, "replace", replace)
    with pytest.raises(KeyboardInterrupt):
        apply(run)
    monkeypatch.undo()
    assert labelmend.load(run).status[0] == "reviewed"
    assert not list(run.glob(".apply*"))
    apply(run)
    assert table(run)[0]["status"] == "reviewed"


def test_a_folder_that_cannot_be_written_to_is_told(run, decide, monkeypatch, capsys):
    decide((0, LABEL, 2))
    before = files(run)

    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(apply_module.os, "replace", refuse)
    assert main(["apply", str(run)]) == 2
    assert f"{run} must be writable. Got: Permission denied." in capsys.readouterr().err
    assert files(run) == before


def test_a_review_whose_beginning_is_lost_is_damaged(run, decide):
    decide((0, LABEL, 2))
    apply(run)
    (run / "labels_before_review.csv").unlink()
    with pytest.raises(RunFolderError, match=r"labels_before_review\.csv is missing"):
        labelmend.load(run)


@pytest.mark.parametrize("column", [0, 1, 2, 4])
def test_a_merged_table_that_somebody_edited_is_told(run, decide, column):
    decide((0, LABEL, 2))
    apply(run)
    whole = (run / "labels.csv").read_bytes()
    with (run / "labels.csv").open(newline="") as file:
        header, *rows = list(csv.reader(file))
    rows[7][column] = rows[8][column] + "0"
    with (run / "labels.csv").open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    with pytest.raises(RunFolderError, match=header[column]):
        labelmend.load(run)
    (run / "labels.csv").unlink()
    apply(run)
    assert (run / "labels.csv").read_bytes() == whole


@pytest.mark.parametrize(
    "changes", [{"samples": [-1]}, {"samples": [36]}, {"codes": [3]}, {"unsure": [-1]}, {"samples": [0, 1]}]
)
def test_merged_decisions_about_no_sample_or_class_are_refused(run, decide, changes):
    decide((0, LABEL, 2))
    apply(run)
    with np.load(run / "reviewed.npz") as arrays:
        found = {**arrays, **{name: np.array(values) for name, values in changes.items()}}
    np.savez(run / "reviewed.npz", **found)
    for read in (labelmend.load, apply):
        with pytest.raises(RunFolderError, match=r"reviewed\.npz"):
            read(run)


def test_decisions_in_python(run, decide):
    decide((0, LABEL, 2), (1, UNSURE, None), (2, SKIP, None), (3, LABEL, 0))
    ids, labels = read_decisions(run)
    result = read_run(run)
    assert ids.tolist() == [result.ids[0], result.ids[3]]
    assert labels.tolist() == [result.classes[2], result.classes[0]]
    assert labelmend.read_decisions(run)[0].tolist() == ids.tolist()


def test_a_run_that_holds_decisions_is_not_replaced(run, decide):
    refuse_existing(run, force=True)
    decide((0, LABEL, 2))
    with pytest.raises(RunFolderError, match="--force does not delete what a person decided"):
        refuse_existing(run, force=True)


def test_no_run_no_review(tmp_path, capsys):
    for verb in ("apply", "review"):
        assert main([verb, str(tmp_path / "none")]) == 2
        assert "no run folder" in capsys.readouterr().err


def test_what_moves_the_cursor_is_spelled_out(tmp_path, capsys):
    folder = made_result(
        [f"\x1b[2J{i}" for i in range(36)], np.arange(36) % 3, ARRAYS, classes=["a\x1b]0;x\x07", "b\r", "c"]
    ).save(tmp_path / "run")
    decide_once(folder, Choice(0, LABEL, 2))
    assert main(["apply", str(folder), "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert "\\x1b[2J0" in out
    assert not set(out) & {"\x1b", "\r", "\x07"}
    assert main(["export", str(folder), "--to", "patch", "--out", str(tmp_path / "p.json")]) == 0
    (tmp_path / "t.csv").write_text("id,label\n1,x\n")
    assert main(["undo", str(tmp_path / "p.json"), "--in", str(tmp_path / "t.csv"), "--out", str(tmp_path / "o")]) == 2
    assert "\x1b" not in capsys.readouterr().err
