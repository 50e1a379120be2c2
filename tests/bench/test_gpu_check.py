import math

import pytest
import torch

from bench import gpu_check
from bench.command import main
from bench.gpu_check import Comparison, relative
from labelmend.ensemble.sgd import MomentumSGD

CPU = torch.device("cpu")


def test_a_difference_is_relative_to_the_reference():
    assert relative(torch.tensor([3.0, 4.4]), torch.tensor([3.0, 4.0])) == pytest.approx(0.08)
    assert relative(torch.ones(2), torch.ones(2, dtype=torch.float64)) == 0


def test_nothing_holds_that_is_no_number():
    assert Comparison("x", 0.1, 0.1).holds
    assert not Comparison("x", 0.2, 0.1).holds
    assert not Comparison("x", math.nan, 0.1).holds
    assert "EXCEEDED" in str(Comparison("x", math.nan, 0.1))


def test_the_cpu_computes_what_it_should(tmp_path, capsys):
    assert main(["gpu-round", "--check", "--out", str(tmp_path / "check.json")]) == 0
    printed = capsys.readouterr().out
    assert "comparisons hold" in printed
    if not torch.cuda.is_available():
        assert "There is no GPU" in printed


def test_a_wrong_graph_is_found_and_shows_in_the_exit_code(monkeypatch, tmp_path, capsys):
    whole = gpu_check.exact_neighbors

    def second_best(rows, k):
        found = whole(rows, k + 1)
        return type(found)(found.indices[:, 1:], found.similarities[:, 1:])

    monkeypatch.setattr(gpu_check, "exact_neighbors", second_best)
    monkeypatch.setattr(gpu_check, "check_net", lambda device: iter(()))
    monkeypatch.setattr(gpu_check, "check_steps", lambda device: iter(()))
    monkeypatch.setattr(gpu_check, "can_interpret", lambda: False)
    assert main(["gpu-round", "--check", "--out", str(tmp_path / "check.json")]) == 1
    assert "EXCEEDED: similarities of the nearest neighbours" in capsys.readouterr().out


def test_a_step_that_is_not_taken_is_found(monkeypatch):
    monkeypatch.setattr(MomentumSGD, "step", lambda self: None)
    (weights, _) = gpu_check.check_steps(CPU)
    assert not weights.holds  # nothing moved: no number


def test_the_small_problem_can_be_solved(monkeypatch):
    monkeypatch.setattr(gpu_check, "N_PICTURES", 90)
    monkeypatch.setattr(gpu_check, "SIDE", 8)
    monkeypatch.setattr(gpu_check, "SMALL_RUN", {**gpu_check.SMALL_RUN, "n_rounds": 2})
    differ, wrong = gpu_check.check_whole(CPU)
    assert differ.difference == 0  # the same device twice
    assert wrong.holds
