from pathlib import Path

import numpy as np

from labelmend.storage.source import call_text, command_text


def test_a_command_names_what_was_named():
    options = {
        "data": "my table.csv",
        "labels": "species",
        "id": None,
        "ignore": ["a", "b c"],
        "drop_bad_rows": True,
        "force": True,
        "features": None,
    }
    parameters = {"seed": 3, "mixup": True, "resplit": False, "lr_milestones": (0.5, 0.75)}
    assert command_text(options, parameters, Path("run")) == (
        "labelmend correct 'my table.csv' --labels species --ignore a --ignore 'b c' --drop-bad-rows --seed 3 "
        "--expert mixup=true --expert resplit=false --expert lr_milestones=0.5,0.75 --out run"
    )


def test_an_option_that_was_not_asked_for_is_not_there():
    assert command_text({"data": "t.csv", "drop_bad_rows": False, "ignore": []}, {}, "r") == (
        "labelmend correct t.csv --out r"
    )


def test_a_call_writes_values_and_names_arrays():
    named = {"trusted": np.ones(3), "ids": None, "missing": -1, "preset": "default", "expert": {"lr": 0.1}}
    assert call_text("correct", {"X": np.zeros((3, 2)), "y": [1, 2, 3]}, named) == (
        "labelmend.correct(X, y, trusted=trusted, missing=-1, preset='default', expert={'lr': 0.1})"
    )
    assert call_text("correct_images", {"source": Path("a b")}, {}) == "labelmend.correct_images('a b')"
