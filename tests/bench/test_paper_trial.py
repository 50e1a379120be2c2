from types import SimpleNamespace

import numpy as np
import pytest
import torch

from bench.paper import trial
from bench.paper.experiment import Options
from bench.paper.peers import one_graph
from bench.paper.trial import Observer, Truth, codes_of
from bench.paper.vectors import PATCH, RANDOM, noisy_labels, task_of_vectors, vectors_of

CPU = torch.device("cpu")


def test_the_mean_of_the_last_ten_rounds_and_the_best():
    observer = Observer(Truth(), CPU, lambda text: None)
    assert observer.figures() == {}
    observer.seen[:] = [{"test": test} for test in (1.0, *np.linspace(0.1, 0.9, 9), 0.5)]
    figures = observer.figures()
    assert figures["test_last"] == pytest.approx((4.5 + 0.5) / 10)
    assert (figures["test_best"], figures["test_final"]) == (1.0, 0.5)


def test_true_labels_are_counted_as_the_task_counts_them():
    assert codes_of(np.array([3, 7, 5, 9]), np.array([3, 5, 9])).tolist() == [0, -1, 1, 2]


@pytest.fixture
def digits():
    options = Options(quick=True)
    return task_of_vectors("digits", RANDOM, 0, "plus", {"n_rounds": 2}, options)


def test_a_run_is_looked_at_after_every_round(digits):
    task, truth = digits
    seen = []
    found = trial.mend(task, truth, lambda text: None, lambda record, state: seen.append(record.round_index))
    assert seen == [1, 2]
    assert {"test", "labels_right", "certainty", "similarity", "kept", "kept_right", "branch_right"} <= set(
        found.curves
    )
    assert {len(curve) for curve in found.curves.values()} == {2}
    assert found.figures["label_accuracy"] == (found.labels == truth.true_labels).mean()
    assert found.figures["epochs"] == 2
    assert found.figures["test_last"] == pytest.approx(np.mean(found.curves["test"]), abs=1e-6)


def test_a_plain_net_says_the_labels_of_what_it_learned_from(digits):
    task, truth = digits
    found = trial.train_plainly(task, truth, lambda text: None)
    assert len(found.curves["test"]) == 2
    assert found.figures["label_accuracy"] == (found.labels == truth.true_labels).mean()
    assert found.state is None


def test_the_time_of_the_tests_is_left_out(digits, monkeypatch):
    task, truth = digits
    now = [0.0]

    def test_for_three_seconds(observer, net):
        now[0] += 3.0

    monkeypatch.setattr(trial, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    monkeypatch.setattr(Observer, "_test", test_for_three_seconds)
    figures = trial.train_plainly(task, truth, lambda text: None).figures
    assert figures["test_seconds"] == 6.0  # after both passes
    assert figures["seconds"] == 0.0


def test_one_graph_mends_random_errors():
    task, truth = task_of_vectors("digits", RANDOM, 0, "plus", {}, Options())
    assert (task.problem.given_labels.numpy() == truth.true_labels).mean() == pytest.approx(0.8, abs=0.001)
    assert (one_graph(task) == truth.true_labels).mean() > 0.95


def test_planted_labels_are_drawn_anew_with_every_seed_and_said_ones_are_not(human_folder):
    first, again, other = (noisy_labels("digits", PATCH, seed, None, False) for seed in (0, 0, 1))
    assert np.array_equal(first, again)
    wrong = first != vectors_of("digits", 0, None, False).true_labels
    assert wrong.mean() == pytest.approx(0.2, abs=0.001)
    assert not np.array_equal(first, other)
    said = [noisy_labels("features", "human, worst", seed, human_folder, False) for seed in (0, 1)]
    assert np.array_equal(*said)
    rows = vectors_of("features", 0, human_folder, False)
    assert (said[0] != rows.true_labels).sum() == 18
    assert len(rows.test_labels) == 0  # nobody says what the test rows are
