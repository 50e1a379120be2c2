"""Labels left alone for want of evidence: first in line, said why, and no figure that the page contradicts."""

import dataclasses

import numpy as np
import pytest
from made import array_run, corrected, made_result

from labelmend.decision.verdict import CANNOT_TELL
from labelmend.review.decisions import Standing
from labelmend.review.desk import Desk
from labelmend.review.samples import Evidence, Filter, Queue
from labelmend.storage.source import ARRAYS

N = 36


@pytest.fixture
def result():
    made = made_result(np.arange(N), np.arange(N) % 3, ARRAYS)
    alone = np.zeros(N, dtype=bool)
    alone[[9, 5]] = True  # for review, with their given label
    verdict = dataclasses.replace(corrected().verdict, classes=CANNOT_TELL, waiting=2)
    return dataclasses.replace(made, left_alone=alone, verdict=verdict)


def test_they_come_first_the_most_doubtful_of_them_before_the_others(result):
    assert Queue(result, Standing(N)).upcoming(Filter(), None, 4) == [5, 9, 0, 1]


def test_what_is_said_of_them_names_no_figure(result):
    first = Evidence(result, Standing(N)).about(5)["reasons"][0]
    assert "%" not in first
    assert Evidence(result, Standing(N)).about(1)["reasons"][0] != first


def test_votes_that_contradict_a_label_are_answered_for(result):
    kept = int(np.flatnonzero(result.status == "kept")[0])
    votes = result.votes.tolil()
    votes[kept] = 0
    votes[kept, (result.corrected_codes[kept] + 1) % 3] = 1.0
    against = dataclasses.replace(result, votes=votes.tocsr())
    said = Evidence(against, Standing(N)).about(kept)["reasons"]
    assert any("votes" in reason for reason in said)


def test_the_page_is_told_once(result, tmp_path):
    run = array_run(tmp_path / "plain")
    desk = Desk(run)
    assert desk.about()["note"] == ""
    desk.result = result
    assert "2" in desk.about()["note"]
    desk.close()
