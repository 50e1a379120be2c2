import numpy as np
import pytest
from made import array_run, made_result

from labelmend.review.decisions import LABEL, SKIP, UNSURE, Line, Standing
from labelmend.review.samples import PRIOR, Filter, Queue
from labelmend.storage.run_folder import read_run
from labelmend.storage.source import ARRAYS

N = 36


@pytest.fixture
def queue():
    result = made_result(np.arange(N), np.arange(N) % 3, ARRAYS)
    return Queue(result, Standing(N))


def decide(queue, sample, kind=LABEL, code=None):
    number = queue.standing.last + 1
    queue.standing.add(Line(number, number, sample, kind, code, None, str(number), "tab", 0.0))


def test_the_most_probably_wrong_come_first(queue):
    assert queue.upcoming(Filter(), None, 5) == [0, 1, 2, 3, 4]
    assert queue.progress(Filter()).total == 24


def test_what_is_decided_does_not_come_again_and_what_is_put_off_comes_last(queue):
    decide(queue, 0, code=1)
    decide(queue, 1, UNSURE)
    decide(queue, 2, SKIP)
    found = queue.upcoming(Filter(), None, 100)
    assert found[0] == 3
    assert found[-1] == 2
    assert len(found) == 22


def test_after_a_sample_the_queue_goes_on_and_then_begins_again(queue):
    assert queue.upcoming(Filter(), 20, 6) == [21, 22, 23, 0, 1, 2]
    assert 20 not in queue.upcoming(Filter(), 20, 100)


def test_after_a_sample_outside_of_the_filter_its_place_counts(queue):
    assert queue.upcoming(Filter(given=0), 10, 2) == [12, 15]


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        (Filter(given=1), [1, 4, 7, 10, 13, 16, 19, 22]),
        (Filter(given=0, suggested=1), [0, 6, 12, 18]),
        (Filter(label=2, suggested=0), [2, 8, 14, 20]),
        (Filter(statuses=frozenset({"corrected"})), [24, 25, 26, 27]),
        (Filter(statuses=frozenset({"filled"})), [35]),
        (Filter(statuses=frozenset({"filled"}), given=-1), [35]),
        (Filter(probability=(0.0, 0.35)), [0, 1, 2]),
        (Filter(certainty=(0.66, 1.0)), [0, 1]),
        (Filter(statuses=frozenset({"unreadable"})), []),
    ],
)
def test_filters_choose_what_they_say(queue, chosen, expected):
    assert queue.upcoming(chosen, None, 100) == expected


def test_decided_ones_can_be_looked_at_again(queue):
    decide(queue, 5, code=1)
    decide(queue, 7, UNSURE)
    decide(queue, 9, SKIP)
    assert queue.upcoming(Filter(state="decided"), None, 9) == [5]
    assert queue.upcoming(Filter(state="unsure"), None, 9) == [7]
    assert queue.upcoming(Filter(state="skipped"), None, 9) == [9]
    assert len(queue.upcoming(Filter(state="all"), None, 99)) == 24


def test_what_is_left_to_gain_is_the_expected_number_of_wrong_labels(queue):
    progress = queue.progress(Filter())
    assert progress.gain_left == pytest.approx(float((1 - queue.confidence[:24]).sum()))
    decide(queue, 23, code=int(queue.suggested[23]))
    rest, found = float((1 - queue.confidence[:23]).sum()), 1 - float(queue.confidence[23])
    assert queue.progress(Filter()).gain_left == pytest.approx(rest * PRIOR / (PRIOR + found))


def test_the_estimate_learns_from_what_a_person_finds(queue):
    for sample in range(8):
        decide(queue, sample, code=(int(queue.suggested[sample]) + 1) % 3)
    assert queue.correction_factor() > 1
    assert queue.progress(Filter()).gained == 8
    for sample in range(8, 20):
        decide(queue, sample, code=int(queue.suggested[sample]))
    assert queue.correction_factor() < 1


def test_nothing_is_left_when_all_is_decided(queue):
    for sample in range(24):
        decide(queue, sample, UNSURE)
    progress = queue.progress(Filter())
    assert (progress.open, progress.unsure, progress.gain_left) == (0, 24, 0)
    assert queue.upcoming(Filter(), 3, 5) == []


def test_pairs_come_by_gain_and_count_what_is_open(queue):
    pairs = queue.pairs(Filter())
    assert {(pair.given, pair.suggested): pair.total for pair in pairs} == {
        (0, 1): 4, (1, 2): 4, (2, 0): 4, (0, 0): 4, (1, 1): 4, (2, 2): 4,
    }  # fmt: skip
    assert [pair.gain_left for pair in pairs] == sorted((pair.gain_left for pair in pairs), reverse=True)
    assert (pairs[0].given, pairs[0].suggested) == (0, 1)
    decide(queue, 0, code=0)
    assert {(pair.given, pair.suggested): pair.open for pair in queue.pairs(Filter())}[(0, 1)] == 3
    assert queue.pairs(Filter(statuses=frozenset({"filled"})))[0].given == -1


def test_unreadable_pictures_promise_nothing():
    result = made_result(np.arange(N), np.arange(N) % 3, ARRAYS)
    result.status[3], result.confidence[3] = "unreadable", 0.0
    queue = Queue(result, Standing(N))
    assert queue.benefit[3] == 0
    assert 3 not in queue.upcoming(Filter(), None, 100)


def test_the_samples_of_a_filter_are_sorted_once(queue, monkeypatch):
    """At 100,000 samples the sorting is most of the work: it must not be done for every page."""
    sorted_for = []
    mask = queue._mask
    monkeypatch.setattr(queue, "_mask", lambda chosen: sorted_for.append(chosen) or mask(chosen))
    for after in range(20):
        decide(queue, after, code=1)
        for state in ("open", "decided", "all"):
            queue.upcoming(Filter(given=1, state=state), after, 8)
        queue.progress(Filter(given=1))
    assert sorted_for == [Filter(given=1, state="all")]


def test_the_queue_of_a_saved_run_is_the_same(tmp_path, queue):
    result = read_run(array_run(tmp_path))
    assert Queue(result, Standing(N)).upcoming(Filter(), None, 100) == queue.upcoming(Filter(), None, 100)
