import numpy as np
import pytest
from made import CLASSES, made_result

from labelmend.review.decisions import LABEL, UNSURE, Line, Standing
from labelmend.review.samples import Evidence, _percent
from labelmend.storage.source import ARRAYS

N = 36


@pytest.fixture
def result():
    return made_result(np.arange(N), np.arange(N) % 3, ARRAYS)


@pytest.fixture
def evidence(result):
    return Evidence(result, Standing(N))


def test_all_that_the_run_knows_is_there(evidence):
    found = evidence.about(2)
    expected = {"sample": 2, "id": "2", "status": "review", "given": 2, "suggestion": 0, "runner_up": 1}
    assert expected.items() <= found.items()
    assert found["probability"] == pytest.approx(0.3 + 1 / 24)
    assert found["votes"] == [{"label": 0, "share": 0.5}, {"label": 1, "share": 0.3}]
    assert found["neighbors"][0] == {"sample": 3, "id": "3", "given": 0, "label": 0, "decided": False}
    assert [neighbor["sample"] for neighbor in found["neighbors"]] == [3, 4, 5, 8]
    assert found["stands"]["number"] == 0


def test_reasons_are_words(evidence):
    why, divided, near = evidence.about(2)["reasons"]
    assert all(fact in why for fact in ("probably wrong", "cat", "34 %", "85 %"))
    assert all(fact in divided for fact in ("50 %", "cat", "30 %", "dog"))
    assert all(fact in near for fact in ("4 nearest", "2 are cat", "2 are fox & <b>hen"))


def test_a_doubted_label_that_stays_is_told_so(evidence):
    assert "best guess" in evidence.about(1)["reasons"][0]
    assert "32 %" in evidence.about(1)["reasons"][0]


def test_silence_of_the_branches_is_told(evidence):
    assert any("No branch had a suggestion" in reason for reason in evidence.about(0)["reasons"])
    assert evidence.about(0)["votes"] == []


def test_twins_with_other_labels_are_told(evidence):
    assert "identical sample" in evidence.about(3)["reasons"][-1]
    assert "5" in evidence.about(3)["reasons"][-1]


@pytest.mark.parametrize(
    ("sample", "words"),
    [(25, "changed at 97 %"), (30, "kept at 97 %"), (35, "came without a label")],
)
def test_other_statuses_have_reasons_of_their_own(evidence, sample, words):
    assert words in evidence.about(sample)["reasons"][0]


def test_a_sample_without_a_label_has_none(evidence):
    assert evidence.about(35)["given"] is None


def test_a_class_that_is_too_small_is_told():
    few = made_result(np.arange(4), [0, 1, 1, 1], ARRAYS, n_review=4)
    assert Evidence(few, Standing(4)).about(0)["reasons"][0].startswith("Only 1 sample has this label")


def test_an_unreadable_picture_says_why(result):
    result.status[4] = "unreadable"
    result.unreadable["4"] = "it is cut off"
    found = Evidence(result, Standing(N)).about(4)
    assert "could not be read: it is cut off" in found["reasons"][0]


def test_decisions_show_at_the_sample_and_at_its_neighbours(evidence):
    evidence.standing.add(Line(1, 1, 3, LABEL, 2, None, "r", "tab", 0.0))
    evidence.standing.add(Line(2, 2, 4, UNSURE, None, None, "r", "tab", 0.0))
    stands = evidence.about(3)["stands"]
    assert stands == {"number": 1, "step": 1, "kind": LABEL, "label": 2}
    first, second = evidence.about(2)["neighbors"][:2]
    assert (first["sample"], first["label"], first["decided"]) == (3, 2, True)
    assert second["decided"] is False


def test_names_are_those_of_the_classes(evidence):
    assert evidence.names == CLASSES


@pytest.mark.parametrize(("share", "text"), [(0.5, "50 %"), (0.999, ">99 %"), (1.0, "100 %"), (0.0, "0 %")])
def test_nothing_uncertain_is_said_to_be_certain(share, text):
    assert _percent(share) == text
