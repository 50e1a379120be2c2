import dataclasses
import shlex

import pytest

import labelmend
from blobs import QUICK, blobs
from labelmend.decision.posterior import STATUS_NAMES
from labelmend.result import UNREADABLE, Source
from labelmend.storage.run_files import STATUSES, run_readme


@pytest.fixture(scope="module")
def result():
    return labelmend.correct(*blobs(), expert=QUICK)


def rows(text):
    return [line.split("`")[1] for line in text.splitlines() if line.startswith("| `")]


def test_every_file_of_a_run_is_explained_and_no_other_is_said_to_be_there(result, tmp_path):
    folder = dataclasses.replace(result, unreadable={"a": "damaged"}).save(tmp_path / "run")
    there, _, absent = (folder / "README.md").read_text().partition("Not in every run, or made later:")
    assert sorted(rows(there)) == sorted(path.name for path in folder.iterdir())
    assert not set(rows(absent)) & {path.name for path in folder.iterdir()}
    assert "unreadable.csv" in rows(there)
    assert "unreadable.csv" not in rows((result.save(tmp_path / "other") / "README.md").read_text().split("Not in")[0])


def test_every_status_has_its_meaning(result):
    text = run_readme(result, "run", ())
    assert {*STATUS_NAMES, UNREADABLE, "reviewed"} == set(STATUSES)
    for status, about in STATUSES.items():
        assert f"- `{status}`: {about}" in text


@pytest.mark.parametrize("name", ["run", "my run; rm -rf x", "-x"])
def test_the_commands_can_be_typed(result, name):
    text = run_readme(dataclasses.replace(result, source=Source("pictures")), name, ())
    export = next(line for line in text.splitlines() if line.startswith("labelmend export") and "--to" in line)
    words = shlex.split(export)
    assert words[2].removeprefix("./") == name
    assert not words[2].startswith("-")
    assert words[3:5] == ["--to", "folders"]


def test_a_pipe_does_not_end_a_cell(result):
    text = run_readme(result, "run", ())
    assert "P(given \\| true)" in text
