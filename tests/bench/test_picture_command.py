import json

import pytest

from bench.command import main


@pytest.mark.parametrize(
    ("name", "words", "cases"),
    [
        ("pictures", ["--data", "cifar10.npz", "--labels", "labels.npz", "--sets", "worst"], {"worst"}),
        ("ablation", ["--data", "cifar10.npz", "--rows", "default", "+ soft label"], {"default", "+ soft label"}),
        ("pictures-smoke", [], {"120 pictures of clothes"}),
        ("pictures-smoke", ["--data", "cifar10.npz"], {"70 pictures"}),
        ("gpu-round", ["--data", "cifar10.npz", "--rounds", "1"], None),
        ("embed", ["--pictures", "6"], {"6 pictures of 224 px"}),
    ],
)
def test_every_benchmark_runs_writes_json_and_becomes_a_table(name, words, cases, cifar, monkeypatch, capsys):
    monkeypatch.chdir(cifar)
    assert main([name, *words, "--quick"]) == 0
    printed = capsys.readouterr().out
    record = json.loads((cifar / f"benchmark-{name}.json").read_text(encoding="utf-8"))
    assert "QUICK RUN" in printed
    assert record["command"].startswith(f"python -m bench {name}")
    assert all(row["note"] is None and row["figures"] for row in record["rows"])
    if cases is not None:
        assert {row["case"] for row in record["rows"]} == cases
    for row in record["rows"]:
        assert row["case"] in printed
    if name in ("pictures", "ablation", "pictures-smoke"):
        ours = [row for row in record["rows"] if row["method"] == "labelmend"]
        for figure in ("test_last", "test_best", "label_accuracy", "given_accuracy", "noise_rate"):
            assert all(0 <= row["figures"][figure]["mean"] <= 1 for row in ours)
        assert "test after every round is not counted" in printed
    assert main(["readme-table", f"benchmark-{name}.json"]) == 0
    assert capsys.readouterr().out.startswith(f"| {name} | ")


def test_a_time_limit_ends_a_run_early(cifar, monkeypatch):
    monkeypatch.chdir(cifar)
    words = ["--data", "cifar10.npz", "--sets", "clean", "--time-limit", "0.001s", "--quick"]
    assert main(["pictures", *words]) == 0
    (row,) = json.loads((cifar / "benchmark-pictures.json").read_text(encoding="utf-8"))["rows"]
    assert row["figures"]["rounds"]["mean"] == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["pictures"], "needs --data FILE.npz"),
        (["pictures", "--data", "cifar10.npz"], "needs --labels FILE.npz"),
        (["pictures", "--data", "cifar10.npz", "--sets", "clean", "--rounds", "0"], "--rounds must be at least 1"),
        (["pictures", "--data", "cifar10.npz", "--sets", "clean", "--time-limit", "soon"], "must be a time above 0"),
        (["pictures", "--seeds", "0"], "--seeds must be at least 1"),
        (["ablation"], "needs --data FILE.npz"),
        (["embed", "--pictures", "-1"], "--pictures must be at least 1"),
    ],
)
def test_wrong_requests_are_told_and_write_nothing(words, message, cifar, monkeypatch, capsys):
    monkeypatch.chdir(cifar)
    assert main([*words]) == 2
    assert message in capsys.readouterr().err
    assert not list(cifar.glob("benchmark-*.json"))
