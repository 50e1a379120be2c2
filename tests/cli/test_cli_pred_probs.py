"""`labelmend correct --pred-probs`: beside a table, and with labels alone."""

import json

import numpy as np
import pytest

import labelmend
from blobs import blobs
from labelmend.cli.main import BAD_INPUT, OK, main

N = 60
X, TRUE = blobs(N)
NAMES = np.array(["cat", "dog", "eel"])
P = np.where(np.arange(3) == TRUE[:, None], 0.9, 0.05)
QUICK = [
    "--expert",
    "n_rounds=2",
    "--expert",
    "n_branches=2",
    "--expert",
    "hidden=16",
    "--expert",
    "graph_k=5",
    "--device",
    "cpu",
    "--quiet",
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    y = NAMES[np.where(np.arange(N) < 4, (TRUE + 1) % 3, TRUE)]
    rows = [f"r{i},{label}" for i, label in enumerate(y)]
    (tmp_path / "labels.csv").write_text("\n".join(["id,species", *rows]) + "\n")
    features = [",".join(map(str, x)) for x in X]
    wide = [f"{row},{more}" for row, more in zip(rows, features, strict=True)]
    (tmp_path / "table.csv").write_text("\n".join(["id,species,a,b,c,d", *wide]) + "\n")
    np.save(tmp_path / "P.npy", P)
    np.save(tmp_path / "y.npy", y)
    np.savez(tmp_path / "y.npz", y=y)
    return tmp_path


def facts(capsys, *arguments):
    assert main(["correct", *arguments, "--dry-run", "--json"]) == OK
    return json.loads(capsys.readouterr().out)


def test_labels_alone_are_enough(folder, capsys):
    named = ["labels.csv", "--labels", "species", "--id", "id", "--pred-probs", "P.npy"]
    assert main(["correct", *named, "--out", "run", *QUICK]) == OK
    assert "P.npy" in labelmend.load("run").repeat
    result = labelmend.load("run")
    assert (result.labels == NAMES[TRUE]).all()
    assert result.config.assume == "apart"
    found = facts(capsys, *named) if capsys.readouterr() else None
    assert found["pred_probs"] == ["P"]
    assert not found["features"]
    assert found["parameters"]["assume"] == "apart"


@pytest.mark.parametrize("given", [["y.npy"], ["y.npz", "--labels", "y"]])
def test_arrays_of_labels_are_enough(folder, capsys, given):
    assert facts(capsys, *given, "--pred-probs", "P.npy")["rows"] == N


def test_beside_a_table_nothing_is_assumed(folder, capsys):
    np.save("Q.npy", P)
    named = ["table.csv", "--labels", "species", "--id", "id", "--pred-probs", "P.npy", "--pred-probs", "Q.npy"]
    found = facts(capsys, *named)
    assert found["pred_probs"] == ["P", "Q"]
    assert found["features"]
    assert found["parameters"]["assume"] == "auto"
    assert facts(capsys, *named, "--assume", "overlapping")["parameters"]["assume"] == "overlapping"


def test_the_dry_run_says_so_in_words(folder, capsys):
    assert main(["correct", "y.npy", "--pred-probs", "P.npy", "--dry-run"]) == OK
    said = capsys.readouterr().out
    assert "P" in said
    assert "assume=apart" in said


def test_what_does_not_go_together_is_refused(folder, capsys):
    table = ["table.csv", "--labels", "species", "--id", "id", "--pred-probs", "P.npy", "--dry-run"]
    assert main(["correct", *table, "--drop-bad-rows"]) == BAD_INPUT
    assert main(["correct", "labels.csv", "--labels", "species", "--id", "id", "--dry-run"]) == BAD_INPUT
    np.save("short.npy", P[:5])
    assert main(["correct", *table, "--pred-probs", "short.npy"]) == BAD_INPUT
    assert "short" in capsys.readouterr().err
