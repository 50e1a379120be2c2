import json

import numpy as np
import pytest

from bench import annotators
from bench.annotators import Answer, Labelled, calibration_error, human, majority, score, simulated
from bench.command import main


def test_simulated_annotators_are_as_good_as_they_should_be():
    data = simulated(0)
    for place, accuracy in enumerate(annotators.ACCURACIES):
        given = data.annotations[:, place] >= 0
        assert given.mean() == pytest.approx(1 / 3, abs=0.05)
        right = data.annotations[given, place] == data.true_labels[given]
        assert right.mean() == pytest.approx(accuracy, abs=0.06)
        step = (data.annotations[given, place] - data.true_labels[given]) % 10
        assert (set(step[~right]) == {1}) == (place == annotators.SYSTEMATIC)


def test_what_people_said_is_taken_from_all_three_or_follows_from_the_majority(tmp_path):
    np.savez(tmp_path / "cifar10_features.npz", train=np.zeros((4, 2)))
    labels = {"cifar10_train": [0, 1, 2, 0], "cifar10n_random1": [0, 1, 0, 2], "cifar10n_aggregate": [0, 1, 2, 0]}
    np.savez(tmp_path / "labels.npz", **labels)
    data, note = human(tmp_path, 3)
    assert data.annotations.tolist() == [[0, 0, -1], [1, 1, -1], [0, 2, 2]]
    assert "follows from aggregate" in note
    np.savez(tmp_path / "labels.npz", **labels, cifar10n_random2=[0, 1, 2, 0], cifar10n_random3=[0, 1, 2, 1])
    data, note = human(tmp_path, 4)
    assert data.annotations.tolist() == [[0, 0, 0], [1, 1, 1], [0, 2, 2], [2, 0, 1]]


def test_scores_by_hand():
    given = np.array([[0, 0], [1, -1], [0, 1], [-1, -1]])
    data = Labelled(np.zeros((4, 1)), given, np.array([0, 1, 1, 0]))
    assert majority(data, 0).labels[[0, 1, 3]].tolist() == [0, 1, -1]
    # accuracies of the two: 2 of 3 and 2 of 2
    found = score(data, Answer(np.array([0, 1, 0, 0]), np.array([0.5, 0.9]), np.array([1.0, 1.0, 0.5, 0.0])))
    assert found["label_accuracy"] == pytest.approx(2 / 3)
    assert found["calibration_error"] == pytest.approx(0.5 / 3)
    assert found["quality_rank"] == pytest.approx(1)
    assert found["quality_error"] == pytest.approx((1 / 6 + 0.1) / 2)


def test_calibration_error_is_the_gap_of_each_bin():
    right = np.array([True, False, True, True])
    assert calibration_error(np.array([0.55, 0.55, 0.95, 0.95]), right) == pytest.approx((0.1 + 0.1) / 4)


def test_the_command_measures_all_methods(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    fast = ("cleanlab", "majority", "weighted consensus")
    monkeypatch.setattr(annotators, "METHODS", {name: annotators.METHODS[name] for name in fast})
    assert main(["annotators", "--quick"]) == 0
    record = json.loads((tmp_path / "benchmark-annotators.json").read_text())
    assert [row["method"] for row in record["rows"]] == list(fast)
    assert "rank of annotators" in capsys.readouterr().out
