import json

import numpy as np
import pytest
from made import decide

import labelmend
from blobs import blobs, plant
from labelmend.cli.main import main
from labelmend.config import as_arguments
from labelmend.errors import DataError
from labelmend.review.apply import merge_decided, read_decided
from labelmend.review.decisions import LABEL, SKIP, UNSURE, Choice

QUICK = [
    "--expert",
    "n_rounds=2",
    "--expert",
    "n_branches=2",
    "--expert",
    "packages_per_branch=2",
    "--expert",
    "hidden=16",
    "--expert",
    "graph_k=5",
]
NAMES = np.array(["ant", "bee", "cow"])


def write(path, features, labels, ids=None):
    head = ["name", *(f"x{i}" for i in range(features.shape[1])), "label"]
    ids = range(len(labels)) if ids is None else ids
    rows = [[f"n{i}", *map(repr, row.tolist()), label] for i, row, label in zip(ids, features, labels, strict=True)]
    path.write_text("\n".join(",".join(map(str, row)) for row in [head, *rows]) + "\n")
    return path


def other(name):
    """The code of a class other than the given one."""
    return (list(NAMES).index(name) + 1) % 3


@pytest.fixture
def reviewed(tmp_path, capsys):
    """A run of a table, with three labels decided, one not told, one put off: (run, table, given)."""
    features, true = blobs(60, seed=3)
    given = NAMES[plant(true, 0.1, seed=3)[0]]
    path = write(tmp_path / "table.csv", features, given)
    run = tmp_path / "run"
    assert main(["correct", str(path), "--labels", "label", "--id", "name", "--out", str(run), "--quiet", *QUICK]) == 0
    capsys.readouterr()
    choices = [Choice(i, LABEL, other(given[i])) for i in range(3)]
    decide(run, *choices, Choice(3, UNSURE), Choice(4, SKIP))
    return run, path, given


def decided_labels(given):
    return [NAMES[other(given[i])] for i in range(3)]


def test_decisions_become_trusted_labels_of_the_next_run(reviewed, tmp_path, capsys):
    run, path, given = reviewed
    out = tmp_path / "run2"
    command = ["correct", str(path), "--labels", "label", "--id", "name", "--trusted-from", str(run), "--out", str(out)]
    assert main([*command, "--quiet", "--json", *QUICK]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert any(note.startswith("3 labels decided in") for note in summary["warnings"])
    result = labelmend.load(out)
    assert result.labels[:3].tolist() == decided_labels(given)
    assert result.given.values(result.given.codes)[:3].tolist() == decided_labels(given)
    assert result.confidence[:3].tolist() == [1, 1, 1]
    assert result.given.values(result.given.codes)[3:].tolist() == given[3:].tolist()


def test_a_dry_run_counts_them(reviewed, capsys):
    run, path, _ = reviewed
    command = ["correct", str(path), "--labels", "label", "--id", "name", "--trusted-from", str(run)]
    assert main([*command, "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["trusted"] == 3


def test_pictures_are_matched_by_their_paths(tmp_path, capsys):
    from coloured import TinyBackbone, coloured, write_folders

    pixels, classes = coloured(30)
    write_folders(tmp_path / "photos", pixels, np.array(["red", "green", "blue"])[classes])
    how = {"mode": "embed", "backbone": TinyBackbone(), "cache": tmp_path / "cache"}
    small = {"n_rounds": 1, "n_branches": 2, "packages_per_branch": 2, "hidden": 8, "graph_k": 4}
    result = labelmend.correct_images(tmp_path / "photos", **as_arguments({**small, **how}))
    run = result.save(tmp_path / "run")
    decide(run, Choice(0, LABEL, 2))
    assert (
        main(
            ["correct", str(tmp_path / "photos"), "--mode", "embed", "--trusted-from", str(run), "--dry-run", "--json"]
        )
        == 0
    )
    assert json.loads(capsys.readouterr().out)["trusted"] == 1


def test_a_run_that_goes_on_takes_the_decisions_it_began_with(reviewed):
    run, _, _ = reviewed
    began = read_decided(run)
    decide(run, Choice(9, LABEL, 0), request="later")
    assert len(read_decided(run).ids) == 4
    assert read_decided(run, began.until) == began


def test_resuming_repeats_the_same_decisions(reviewed, tmp_path, monkeypatch, capsys):
    run, _, given = reviewed
    monkeypatch.chdir(tmp_path)

    def killed(*_, **__):
        raise KeyboardInterrupt

    command = ["correct", "table.csv", "--labels", "label", "--id", "name", "--trusted-from", "run", "--out", "run2"]
    with monkeypatch.context() as patch:
        patch.setattr("labelmend.result.Correction.save", killed)
        assert main([*command, "--quiet", "--checkpoint-every", "0", *QUICK]) == 130
    decide(run, Choice(9, LABEL, other(given[9])), request="later")
    assert main(["correct", "--resume", "run2", "--quiet"]) == 0
    result = labelmend.load("run2")
    assert result.labels[:3].tolist() == decided_labels(given)
    assert result.given.values(result.given.codes)[9] == given[9]


def test_other_data_are_refused(reviewed, tmp_path, capsys):
    run, _, given = reviewed
    features, _ = blobs(60, seed=3)
    shifted = write(tmp_path / "other.csv", features, given, ids=range(1000, 1060))
    command = ["--labels", "label", "--id", "name", "--trusted-from", str(run), "--dry-run"]
    assert main(["correct", str(shifted), *command]) == 2
    assert "They hold none of them" in capsys.readouterr().err
    others = NAMES[(np.searchsorted(NAMES, given) + 2) % 3]
    relabelled = write(tmp_path / "labels.csv", features, others)
    assert main(["correct", str(relabelled), *command]) == 2
    assert "have other given labels here" in capsys.readouterr().err


def test_a_run_without_decisions_is_told(reviewed, tmp_path, capsys):
    run, path, _ = reviewed
    for file in run.glob("review.sqlite*"):
        file.unlink()
    command = ["correct", str(path), "--labels", "label", "--id", "name", "--trusted-from", str(run), "--dry-run"]
    assert main(command) == 2
    assert "labelmend review" in capsys.readouterr().err


def test_missing_samples_and_changed_labels_are_noted(reviewed):
    run, _, given = reviewed
    decided = read_decided(run)
    ids = ["n1", "n2", "x"]
    labels, trusted, notes = merge_decided(decided, ids, [given[1], decided_labels(given)[2], "ant"], None)
    assert trusted.tolist() == [True, True, False]
    assert labels.tolist() == [*decided_labels(given)[1:], "ant"]
    assert any("1 samples decided" in note and "not in these data" in note for note in notes)
    third = next(name for name in NAMES if name not in (given[0], decided_labels(given)[0]))
    _, _, notes = merge_decided(decided, ["n0", "n1"], [third, given[1]], None)
    assert any("had another given label there" in note for note in notes)


def test_marks_that_were_there_stay_and_nothing_given_is_changed(reviewed):
    run, _, given = reviewed
    decided = read_decided(run)
    labels, marks = given[:5].copy(), np.array([False] * 4 + [True])
    found, trusted, _ = merge_decided(decided, [f"n{i}" for i in range(5)], labels, marks)
    assert trusted.tolist() == [True, True, True, False, True]
    assert marks.tolist() == [False] * 4 + [True]
    assert labels.tolist() == given[:5].tolist()
    assert found.dtype.kind == "U"


def test_numbers_are_spelled_as_the_data_spell_them(reviewed):
    run, _, _ = reviewed
    decided = read_decided(run)
    numbers = type(decided)(run, ["0", "1"], [7, 8], [8, 8], 5)
    labels, _, _ = merge_decided(numbers, None, np.array([8, 8, 7, 7], dtype=np.int64), None)
    assert labels.tolist() == [7, 8, 7, 7]
    assert labels.dtype == np.int64


def test_a_label_that_was_missing_then_may_be_anything_now(reviewed):
    run, _, _ = reviewed
    decided = type(read_decided(run))(run, ["0"], ["bee"], [None], 5)
    with_mark, _, notes = merge_decided(decided, None, ["?", "ant"], None)
    assert with_mark.tolist() == ["bee", "ant"]
    assert len(notes) == 1


def test_nothing_in_common_is_an_error():
    from labelmend.review.apply import Decided

    with pytest.raises(DataError, match="hold none"):
        merge_decided(Decided(None, ["a"], ["x"], ["x"], 1), ["b"], ["x"], None)
