import json
import os
import shutil
from pathlib import Path

import pytest

import labelmend
from handed_over import NEW, read_table
from labelmend.cli.main import main
from labelmend.export.formats import FORMATS
from labelmend.review.apply import apply
from labelmend.review.decisions import Choice, Decisions, Subject
from labelmend.storage.run_files import run_readme


@pytest.fixture
def run(table):
    table.save("run")
    return "run"


def test_the_list_names_every_format(capsys):
    assert main(["export", "--list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(FORMATS)


def test_without_a_name_the_export_lies_beside_the_run(run, capsys):
    for to in ("csv", "patch", "huggingface"):
        assert main(["export", run, "--to", to]) == 0
    assert {"run.csv", "run.patch.json", "run-huggingface"} < set(os.listdir("."))
    assert "run.csv: 8 samples, 4 " in capsys.readouterr().out
    assert main(["export", run, "--to", "csv"]) == 2
    assert "choose another name or use --force" in capsys.readouterr().err
    assert main(["export", run, "--to", "csv", "--force", "--json"]) == 0
    told = {"out": "run.csv", "to": "csv", "samples": 8, "changed": 4, "notes": []}
    assert json.loads(capsys.readouterr().out) == told


def test_a_run_is_handed_over_as_the_result_was(run, table):
    main(["export", run, "--to", "csv", "--with-data", "--out", "a.csv"])
    table.export("csv", "b.csv", with_data=True)
    assert Path("a.csv").read_bytes() == Path("b.csv").read_bytes()


def test_what_the_readme_says_can_be_typed(run, table, capsys):
    text = Path("run/README.md").read_text()
    line = next(line for line in text.splitlines() if line.startswith("labelmend export run --to"))
    assert main(line.split()[1:]) == 0
    assert [row["kind"] for row in read_table("run.csv")] == NEW
    assert line in run_readme(table, "run", ())


def test_a_run_without_a_classifier_of_ours_is_exported_all_the_same(run):
    about = json.loads(Path("run/model.json").read_text())
    Path("run/model.json").write_text(json.dumps({**about, "net": "of somebody"}))
    assert main(["export", run, "--to", "csv"]) == 0


def test_what_a_person_decided_is_handed_over(run):
    decisions = Decisions(Path("run/review.sqlite"), Subject.of(labelmend.load(run)))
    decisions.decide([Choice(0, "label", 2), Choice(1, "unsure", None)], "tab", "request")
    decisions.close()
    apply(run)
    assert main(["export", run, "--to", "csv"]) == 0
    rows = read_table("run.csv")
    assert (rows[0]["label"], rows[0]["status"], rows[0]["confidence"]) == ("cat", "reviewed", "1.0")
    assert rows[1]["status"] == "review"


def test_data_that_moved_are_named(run, capsys):
    os.mkdir("elsewhere")
    shutil.copy("t.csv", "elsewhere/t.csv")
    os.rename("run", "elsewhere/../moved_run")
    os.mkdir("deep")
    os.rename("moved_run", "deep/run")
    os.rename("t.csv", "u.csv")
    words = ["export", "deep/run", "--to", "csv", "--with-data", "--out", "out.csv"]
    assert main(words) == 2
    assert "say where they are with --data" in capsys.readouterr().err
    assert main([*words, "--data", "elsewhere"]) == 0
    assert main([*words[:-1], "elsewhere/t.csv", "--data", "elsewhere", "--force"]) == 2
    assert "must not be a run or the data" in capsys.readouterr().err
    os.rename("u.csv", "t.csv")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "export needs RUN and --to FORMAT"),
        (["run"], "export needs RUN and --to FORMAT"),
        (["run", "--to", "xlsx"], "the format must be one of csv, parquet"),
        (["nowhere", "--to", "csv"], "no run folder at nowhere"),
        (["run", "--to", "csv", "--link"], "--link can be used with folders, huggingface, fiftyone only"),
        (["run", "--to", "csv", "--out", "run/labels.csv", "--force"], "must not be a run or the data"),
        (["run", "--to", "csv", "--out", "plain/x.csv"], "must be writable"),
    ],
)
def test_wrong_input_is_told_and_nothing_is_written(run, capsys, words, said):
    Path("plain").write_text("a file, where a folder is needed")
    before = sorted(os.listdir("."))
    assert main(["export", *words]) == 2
    assert said in capsys.readouterr().err
    assert sorted(os.listdir(".")) == before
    assert len(labelmend.load("run")) == 8
