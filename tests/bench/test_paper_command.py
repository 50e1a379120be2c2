import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bench.command import main
from bench.paper import command, play
from bench.paper.experiment import Options
from bench.paper.page import read_sections
from bench.paper.registry import MODULES
from bench.paper.rows import TITLES

OURS = {"cifar10", "cifar100", "branches", "patches", "combinations", "losses", "resplit", "certainty", "similarity"}
OURS |= {"maps", "architecture", "peers", "readings", "miniature", "miniature-readings"}
SOME = {  # of each experiment, enough to run every way a cell can go
    "cifar10": ["--columns", "asymmetric 40 %"],
    "cifar100": ["--columns", "symmetric 50 %", "--rows", "mixup", "+ mixup + soft label", "plus"],
    "readings": ["--columns", "symmetric 50 %"],
    "miniature": ["--seeds", "1", "--columns", "confusing 30 %"],
    "miniature-readings": ["--seeds", "1", "--columns", "symmetric 80 %", "--rows", "+ mixup: kept"],
    "branches": ["--rows", "M = 2", "M = 3"],
    "patches": ["--rows", "B = 1", "B = 2048", "--columns", "symmetric 50 %"],
    "combinations": ["--rows", "M = 2, B = 10", "M = 2, B = 20", "--columns", "symmetric 50 %"],
    "losses": ["--columns", "human, worst"],
    "resplit": ["--on", "cifar10"],
    "certainty": [],
    "similarity": ["--rows", "M = 2", "--columns", "confusing 20 %", "human, worst"],
    "maps": ["--columns", "symmetric 40 %"],
    "architecture": ["--columns", "human, worst"],
    "peers": ["--columns", "patch 20 %", "both, 20 % each", "human, worst"],
}

DRAWN = {"branches", "patches", "combinations", "certainty", "similarity", "maps", "miniature"}


@pytest.fixture
def folder(paper_data, monkeypatch):
    monkeypatch.chdir(paper_data)
    return paper_data


def paper(*words):
    return main(["paper", *words])


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_every_experiment_is_tried_below():
    assert set(SOME) == OURS <= set(MODULES)


@pytest.mark.slow
@pytest.mark.parametrize("name", SOME)
def test_every_experiment_runs_keeps_its_results_and_writes_its_section(name, folder, capsys):
    words = [name, "--data", ".", "--quick", *SOME[name]]
    assert paper(*words) == 0
    printed = capsys.readouterr().out
    results = lines(folder / "paper-quick.jsonl")
    assert results
    for result in results:
        assert result["experiment"] == name
        assert 0 <= result["figures"]["label_accuracy"] <= 1
        assert result["figures"]["seconds"] > 0
        assert result["machine"]["cpu"]
        assert result["versions"]["torch"]
        assert result["quick"]
        assert TITLES.get(result["row"], result["row"]) in printed
    page = (folder / "paper-quick.md").read_text(encoding="utf-8")
    assert printed.partition("\nresults in")[0] in page
    assert "QUICK RUN" in page
    assert all(f"## {other}\n" in page for other in MODULES)
    drawings = [part.split(")")[0] for part in printed.split("](")[1:]]
    assert bool(drawings) == (name in DRAWN)
    for drawing in drawings:
        assert "<svg " in (folder / drawing).read_text(encoding="utf-8")[:1000]
    size = (folder / "paper-quick.jsonl").stat().st_size
    assert paper(*words) == 0  # all is there: nothing runs again
    assert f"{len(results)} of {len(results)} cells are in paper-quick.jsonl already" in capsys.readouterr().err
    assert (folder / "paper-quick.jsonl").stat().st_size == size


def test_another_setting_is_another_cell(folder):
    words = [
        "resplit",
        "--data",
        ".",
        "--quick",
        "--on",
        "cifar10",
        "--rows",
        "split once",
        "--columns",
        "human, worst",
    ]
    paper(*words)
    paper(*words, "--batch-size", "16")
    paper(*words, "--epochs", "1")
    found = lines(folder / "paper-quick.jsonl")
    assert [(r["epochs"], r["settings"]["common"]["batch_size"]) for r in found] == [(2, None), (2, 16), (1, None)]
    page = (folder / "paper-quick.md").read_text(encoding="utf-8")
    for title in ("**cifar10, 2 epochs**", "**cifar10, 2 epochs, batch size 16**", "**cifar10, 1 epochs**"):
        assert title in page


@pytest.mark.slow
def test_a_killed_run_goes_on_and_a_torn_line_runs_again(folder):
    words = ["losses", "--quick"]
    out = folder / "paper-quick.jsonl"
    process = subprocess.Popen([sys.executable, "-m", "bench", "paper", *words], stderr=subprocess.PIPE)
    until = time.monotonic() + 60
    while not (out.exists() and out.read_bytes().count(b"\n") >= 2) and time.monotonic() < until:
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    before = out.read_bytes()
    assert 2 <= before.count(b"\n") < 12
    whole = before[: before.rfind(b"\n") + 1]
    torn = whole[: whole[:-1].rfind(b"\n") + 40]  # and the power went out while the last line was written
    out.write_bytes(torn)
    assert paper(*words) == 0
    after = lines(out)
    assert len(after) == 12
    assert len({(r["row"], r["column"]) for r in after}) == 12
    assert out.read_bytes().startswith(torn[: torn.rfind(b"\n") + 1])


def test_cells_run_in_several_processes_with_the_same_result(folder):
    words = ["resplit", "--quick", "--columns", "symmetric 50 %"]
    assert paper(*words, "--jobs", "2", "--out", "two.jsonl") == 0
    assert paper(*words, "--out", "one.jsonl") == 0
    one, two = ({(r["row"], r["column"], r["data"]): r for r in lines(folder / f"{n}.jsonl")} for n in ("one", "two"))
    assert len(one) == len(lines(folder / "two.jsonl")) == 2
    for key, result in one.items():
        assert two[key]["curves"] == result["curves"]
        assert two[key]["machine"]["jobs"] == 2
        assert two[key]["machine"]["threads"] == 1


def die(pipe):
    pipe.recv()
    os._exit(3)


def test_a_process_that_dies_is_a_cell_that_failed(folder, monkeypatch, capsys):
    monkeypatch.setattr(play, "answer_orders", die)
    words = ["resplit", "--quick", "--on", "digits", "--columns", "symmetric 50 %", "--jobs", "2"]
    assert paper(*words) == 1
    assert capsys.readouterr().out.count("its process ended with code 3") == 2
    assert not (folder / "paper-quick.jsonl").exists()


def test_a_cell_that_fails_is_told_and_the_others_run(folder, monkeypatch, capsys):
    from bench.paper import sweep

    whole = sweep.mend

    def mend(task, truth, say, **more):
        if task.config.resplit:
            raise RuntimeError("CUDA out of memory.\nTried to allocate")
        return whole(task, truth, say, **more)

    monkeypatch.setattr(sweep, "mend", mend)
    assert paper("resplit", "--quick", "--columns", "symmetric 50 %") == 1
    assert "failed: CUDA out of memory." in capsys.readouterr().out
    assert [r["row"] for r in lines(folder / "paper-quick.jsonl")] == ["split once"]


def test_what_is_not_installed_is_skipped_and_not_a_failure(folder, monkeypatch, capsys):
    from bench.paper import peers
    from labelmend.errors import MissingExtraError

    def prepare(method):
        raise MissingExtraError("cleanlab is not installed", "compare")

    monkeypatch.setattr(peers, "prepare", prepare)
    assert paper("peers", "--quick", "--rows", "cleanlab", "one graph", "--columns", "random 20 %") == 0
    assert "skipped: cleanlab is not installed" in capsys.readouterr().err
    assert [r["row"] for r in lines(folder / "paper-quick.jsonl")] == ["one graph"]
    assert re.search(r"\| cleanlab +\| not run", (folder / "paper-quick.md").read_text(encoding="utf-8"))


def test_the_list_says_what_is_here(folder, capsys):
    (folder / "cifar100.npz").unlink()
    assert paper("--list", "--data", ".") == 0
    told = capsys.readouterr().out.splitlines()
    assert told[told.index(next(line for line in told if line.startswith("  cifar10 "))) + 1].endswith("; here")
    assert told[told.index(next(line for line in told if line.startswith("  cifar100 "))) + 1].endswith(
        "not here: cifar100.npz is not in --data"
    )
    assert main([]) == 0
    assert "every table and figure of the paper; --list" in capsys.readouterr().out


def test_the_page_is_written_anew_from_several_files(folder, capsys):
    words = ["resplit", "--quick", "--columns", "symmetric 50 %"]
    paper(*words, "--rows", "split once", "--out", "a.jsonl", "--docs", "page.md")
    paper(*words, "--rows", "re-splitting", "--out", "b.jsonl", "--docs", "page.md")
    page = folder / "page.md"
    assert "| split once   | not run" in page.read_text(encoding="utf-8")  # its results are in the other file
    assert paper("--write-docs", "a.jsonl", "b.jsonl", "--docs", "page.md", "--quick") == 0
    whole = page.read_text(encoding="utf-8").partition("**features**")[0]
    resplit = whole.partition("## resplit")[2]
    assert "not run" not in "".join(line.split("|")[2] for line in resplit.splitlines() if line.startswith("| "))
    assert paper("--write-docs", "a.jsonl", "--docs", "page.md") == 0  # a quick run is no result of the page
    assert "Nothing of it has been run" in page.read_text(encoding="utf-8").partition("## resplit")[2]
    assert "QUICK RUN" not in page.read_text(encoding="utf-8")


def test_a_section_leaves_the_others_alone(folder):
    paper("resplit", "--quick", "--columns", "symmetric 50 %", "--rows", "split once", "--docs", "page.md")
    before = (folder / "page.md").read_text(encoding="utf-8").partition("## resplit")[2].partition("## certainty")[0]
    paper("certainty", "--quick", "--on", "digits", "--out", "other.jsonl", "--docs", "page.md")
    after = (folder / "page.md").read_text(encoding="utf-8").partition("## resplit")[2].partition("## certainty")[0]
    assert after == before
    assert "split once" in before


def test_the_page_of_the_repository_has_every_section():
    page = Path(__file__).parents[2] / "docs" / "paper.md"
    assert list(read_sections(page)) == list(MODULES)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nonsense"], "NAME must be one of cifar10, "),
        (["cifar10"], "cifar10 needs cifar10.npz"),
        (["resplit", "--rows", "never"], "--rows must be among 're-splitting', 'split once'. Got 'never' instead"),
        (["resplit", "--columns", "never"], "--columns must be among 'symmetric 50 %'"),
        (["resplit", "--on", "mars"], "--on must be among digits, features, cifar10. Got mars instead"),
        (["resplit", "--on", "features"], "cifar10_features.npz and labels.npz not in --data"),
        (["resplit", "--on", "cifar10"], "cifar10.npz not in --data"),
        (["peers", "--on", "cifar10"], "--on must be among digits, features. Got cifar10 instead"),
        (["resplit", "--data", "nowhere"], "--data must be a folder. nowhere is none"),
        (["resplit", "--epochs", "0"], "--epochs must be at least 1"),
        (["resplit", "--seeds", "0"], "--seeds must be at least 1"),
        (["resplit", "--jobs", "0"], "--jobs must be at least 1"),
        (["resplit", "--batch-size", "1"], "--batch-size must be at least 2"),
        (["--write-docs", "nowhere.jsonl"], "nowhere.jsonl is not there"),
    ],
)
def test_wrong_requests_are_told_and_write_nothing(words, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert paper(*words) != 0
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["default", "all nets (the paper's default)"])
def test_the_row_of_the_papers_default_answers_to_its_stored_name_and_its_title(name):
    arguments = command.parser().parse_args(["certainty", "--rows", name])
    orders = command._orders("certainty", Options(quick=True), arguments)
    assert {order.cell.row for order in orders} == {"default"}


def test_the_miniature_has_an_option_of_its_own(folder, capsys):
    words = ["--quick", "--seeds", "1", "--columns", "symmetric 80 %", "--rows", "mixup"]
    assert paper("--miniature", *words) == 0
    (result,) = lines(folder / "paper-quick.jsonl")
    assert (result["experiment"], result["data"], result["row"]) == ("miniature", "clothes", "mixup")
