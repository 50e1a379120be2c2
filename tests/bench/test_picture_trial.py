from types import SimpleNamespace

import numpy as np
import pytest
import torch

from bench import picture_trial
from bench.paper.trial import Observer
from bench.picture_data import PictureSet
from bench.picture_trial import truth_of
from labelmend.config import as_arguments

CPU = torch.device("cpu")


class ByMean(torch.nn.Module):
    """Calls bright pictures class 1."""

    def forward(self, x):
        bright = x.mean(dim=(1, 2, 3))
        return x.flatten(1), torch.stack([-bright, bright], dim=1)


def bright_and_dark(test_labels):
    pixels = np.zeros((8, 4, 4, 1), np.uint8)
    pixels[::2] = 200
    test = np.full((4, 4, 4, 1), 5, np.uint8)
    test[:2] = 250
    return PictureSet(pixels, np.arange(8) % 2, test, np.array(test_labels))


def a_round(callback, number):
    record = SimpleNamespace(round_index=number, n_rounds=20, mean_certainty=0.5, correction=None)
    callback(record, SimpleNamespace(deployed_net=ByMean()))


def test_the_deployed_net_answers_for_the_test_pictures():
    said = []
    observer = Observer(truth_of(bright_and_dark([1, 1, 0, 1]), CPU), CPU, said.append)
    a_round(observer.after_round, 1)
    assert observer.curves["test"] == [0.75]
    assert said == []
    a_round(observer.after_round, 10)
    assert said == ["  round 10 of 20, 0.7500 of the test samples right"]


def test_without_test_pictures_there_are_no_figures_of_them():
    pictures = bright_and_dark([1, 1, 0, 0])
    empty = PictureSet(pictures.pixels, pictures.true_labels, pictures.test_pixels[:0], pictures.test_labels[:0])
    observer = Observer(truth_of(empty, CPU), CPU, lambda text: None)
    a_round(observer.after_round, 1)
    assert observer.figures() == {}


def test_the_time_of_the_tests_is_left_out(monkeypatch):
    pictures = bright_and_dark([1, 1, 0, 0])
    result = SimpleNamespace(
        labels=pictures.true_labels, status=np.array(["kept"] * 8), noise_rate=0.1, history=[1, 2], seconds=10.0
    )
    asked = {}

    def correct_images(pixels, given, *, callback, time_limit, **others):
        asked.update(others)
        before = time_limit.clock()
        for number in (1, 2):
            a_round(callback, number)
        callback.__self__.seen[-1]["seconds"] += 4.0
        asked["clock"] = time_limit.clock() - before
        return result

    monkeypatch.setattr(picture_trial, "correct_images", correct_images)
    parameters = {"n_rounds": 2, "device": "cpu"}
    figures, tests = picture_trial.train_on(
        pictures, pictures.true_labels, 3, "paper", parameters, lambda text: None, "1h"
    )
    assert tests == [1.0, 1.0]
    assert figures["seconds"] + figures["test_seconds"] == pytest.approx(10.0)
    assert figures["test_seconds"] > 4.0
    assert asked["clock"] < 0  # four seconds of tests that took no time at all
    for name, value in as_arguments({"mode": "train", "preset": "paper", "seed": 3, **parameters}).items():
        assert asked[name] == value, name
    assert (figures["label_accuracy"], figures["rounds"]) == (1.0, 2.0)
