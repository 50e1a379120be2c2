import argparse
from pathlib import Path

import pytest

from bench import picture_suite
from bench.command import BENCHMARKS
from bench.paper.rows import batch_changes
from bench.picture_suite import ABLATION, PICTURE_BENCHMARKS
from bench.record import command_line
from labelmend.config import make_config


def test_the_rows_of_the_ablation_add_up():
    configs = [make_config("paper", "pictures", **changes) for changes, _ in ABLATION.values()]
    assert [config.noisy_branch for config in configs] == [True, False, False, False]
    assert [config.branch_loss for config in configs] == ["smoothness", *["cross-entropy-mae"] * 3]
    assert [config.mixup for config in configs] == [False, False, True, True]
    assert [config.soft_labels for config in configs] == [False, False, False, True]
    assert {(c.ce_factor, c.mae_factor, c.soft_ce_factor, c.soft_mse_factor) for c in configs} == {(1, 0, 1, 1)}
    assert [theirs["test_last"] for _, theirs in ABLATION.values()] == [0.816, 0.908, 0.912, 0.937]


@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_command_can_be_run_again_from_its_record(name):
    parser = argparse.ArgumentParser()
    BENCHMARKS[name].add_options(parser)
    assert command_line(name, parser, parser.parse_args([])) == f"python -m bench {name}"


def test_what_was_asked_for_is_in_the_command_but_not_where_files_are():
    parser = argparse.ArgumentParser()
    PICTURE_BENCHMARKS["pictures"].add_options(parser)
    words = ["--data", "secret/x.npz", "--sets", "worst", "clean", "--rounds", "9"]
    command = command_line("pictures", parser, parser.parse_args(words))
    assert command == "python -m bench pictures --data FILE.npz --sets worst clean --rounds 9"
    parser = argparse.ArgumentParser()
    PICTURE_BENCHMARKS["ablation"].add_options(parser)
    options = parser.parse_args(["--rows", "+ mixup"])
    assert command_line("ablation", parser, options) == 'python -m bench ablation --rows "+ mixup"'
    assert options.data is None
    assert isinstance(parser.parse_args(["--data", "x"]).data, Path)


def test_a_run_that_fails_is_noted_and_the_others_go_on(monkeypatch, cifar):
    from bench import picture_trial

    def train_on(data, given, *others):
        if (given == data.true_labels).all():
            raise RuntimeError("CUDA out of memory.\nTried to allocate")
        return {"label_accuracy": 0.9, "seconds": 1.0}, [0.5]

    monkeypatch.setattr(picture_trial, "train_on", train_on)
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    PICTURE_BENCHMARKS["pictures"].add_options(parser)
    options = parser.parse_args(["--data", str(cifar / "cifar10.npz"), "--sets", "clean", "symmetric50"])
    found = picture_suite.pictures(options, 1, lambda text: None)
    assert [trial.note for trial in found.trials] == ["failed: CUDA out of memory.", None]
    assert found.facts["curves"][1] == {"case": "symmetric50", "method": "labelmend", "test_by_round": [0.5]}


def test_another_batch_takes_a_learning_rate_in_proportion():
    assert batch_changes(None, "paper") == {}
    assert batch_changes(256, "paper") == {"batch_size": 256, "lr": 0.04}
    assert batch_changes(512, "default") == {"batch_size": 512, "lr": 0.1}  # its own batch is 256
