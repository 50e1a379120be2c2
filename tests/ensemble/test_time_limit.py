import dataclasses
import math

import numpy as np
import pytest

import labelmend
from blobs import QUICK, blobs, plant
from labelmend.config import as_arguments
from labelmend.ensemble import run as loop
from labelmend.ensemble.records import CorrectionRecord, RoundRecord, TimeLimit, read_limit, read_seconds
from labelmend.errors import ConfigError, LabelmendWarning

CORRECTION = CorrectionRecord(0.0, [], 0.0, [], 0, 0.0, True)
TRAINED = RoundRecord(1, 9, 0, 0, 0.5, [], None, 0.0, None, {"train": 1.0})
CORRECTED = dataclasses.replace(TRAINED, correction=CORRECTION)


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


@pytest.mark.parametrize(
    ("text", "seconds"),
    [(90, 90), (1.5, 1.5), ("90", 90), ("90s", 90), ("10m", 600), ("2h", 7200), (" 1.5 h ", 5400), (np.float32(3), 3)],
)
def test_a_time_is_seconds_or_text_with_a_unit(text, seconds):
    assert read_seconds(text) == seconds


@pytest.mark.parametrize("value", ["", "m", "10x", "1h30m", "-5", 0, -1, math.nan, True, "0", "1e3", [5]])
def test_what_is_no_time_is_refused(value):
    with pytest.raises(ConfigError, match="such as 90, 90s, 10m or 2h"):
        read_seconds(value)


def test_no_limit_leaves_time_for_ever():
    limit = read_limit(None)
    assert all(limit.leaves_time([CORRECTED] * k, True) for k in range(5))


def play(limit, clock, durations):
    """How many rounds are played if round k takes durations[k], a pair (corrects, seconds)."""
    history = []
    for corrects, seconds in durations:
        if not limit.leaves_time(history, corrects):
            break
        clock.now += seconds
        history.append(CORRECTED if corrects else TRAINED)
    return len(history)


def test_the_first_round_is_always_played():
    clock = Clock()
    assert play(TimeLimit(1e-9, clock), clock, [(True, 50)] * 3) == 1


def test_a_round_begins_only_if_it_fits():
    clock = Clock()
    limit = TimeLimit(35, clock)
    assert play(limit, clock, [(True, 10)] * 9) == 3
    assert clock.now <= limit.ends


def test_what_came_before_the_rounds_counts():
    clock = Clock()
    limit = TimeLimit(35, clock)
    clock.now += 20
    assert play(limit, clock, [(True, 10)] * 9) == 1


def test_rounds_that_correct_are_judged_by_those_that_did():
    clock = Clock()
    limit = TimeLimit(60, clock)
    # 20 + 1 + 1 + 20 + 1 + 1 = 44: a round that corrects would end at 64, one that trains at 45.
    assert play(limit, clock, [(True, 20), (False, 1), (False, 1)] * 5) == 6
    clock = Clock()
    limit = TimeLimit(60, clock)
    assert play(limit, clock, [(True, 20), (False, 1), (False, 1), (True, 20), *[(False, 1)] * 99]) == 22


def test_a_slow_first_round_is_forgotten():
    clock = Clock()
    assert play(TimeLimit(50, clock), clock, [(True, 30), *[(True, 2)] * 99]) == 1
    clock = Clock()
    assert play(TimeLimit(100, clock), clock, [(True, 30), *[(True, 2)] * 99]) == 36


def test_after_a_resume_the_history_says_how_long_a_round_takes():
    slow = dataclasses.replace(CORRECTED, seconds={"embed": 8.0, "train": 4.0})
    assert TimeLimit(13, Clock()).leaves_time([slow], True)
    assert not TimeLimit(11, Clock()).leaves_time([slow], True)
    assert not TimeLimit(11, Clock()).leaves_time([slow], False)  # nothing better is known


def test_a_run_ends_in_good_order_and_says_so(monkeypatch):
    clock, play_round = Clock(), loop.play_round

    def slow(*arguments):
        clock.now += 10
        return play_round(*arguments)

    monkeypatch.setattr(loop, "play_round", slow)
    features, true = blobs(60)
    given = plant(true, 0.1)[0]
    settings = {**QUICK, "n_rounds": 8, "correct_every": 3, "lr_schedule": "cosine"}
    with pytest.warns(LabelmendWarning, match="stopped by the time limit after 5 of 8 rounds"):
        result = labelmend.correct(features, given, time_limit=TimeLimit(55, clock), **as_arguments(settings))
    assert [record.round_index for record in result.history] == [1, 2, 3, 4, 5]
    assert result.warnings == ["stopped by the time limit after 5 of 8 rounds"]
    assert (result.labels == true).mean() > 0.95
    assert clock.now == 1050
    with pytest.warns(LabelmendWarning, match="after 1 of 8 rounds"):
        shortest = labelmend.correct(features, given, time_limit=1e-9, **as_arguments(settings))
    assert shortest.history[0].correction is not None


def test_what_was_stopped_by_the_limit_can_go_on_without(tmp_path):
    features, true = blobs(60)
    given = plant(true, 0.1)[0]
    with pytest.warns(LabelmendWarning, match="after 1 of 2 rounds"):
        labelmend.correct(features, given, time_limit=1e-9, checkpoints=tmp_path, checkpoint_every=0, expert=QUICK)
    result = labelmend.correct(features, given, checkpoints=tmp_path, expert=QUICK)
    assert len(result.history) == 2
    np.testing.assert_array_equal(result.confidence, labelmend.correct(features, given, expert=QUICK).confidence)


def test_a_wrong_limit_is_told_before_the_data_are_read():
    for run in (labelmend.correct, labelmend.correct_images):
        with pytest.raises(ConfigError, match="Got 'soon' instead"):
            run("nowhere", [1], time_limit="soon")
