import numpy as np
import pytest
from made import CLASSES, made_result

from labelmend.review.decisions import LABEL, UNSURE, Line, Standing
from labelmend.review.evidence import Neighbor, Share, Witness, _percent
from labelmend.storage.source import ARRAYS

N = 36


@pytest.fixture
def result():
    return made_result(np.arange(N), np.arange(N) % 3, ARRAYS)


@pytest.fixture
def witness(result):
    return Witness(result, Standing(N))


def test_all_that_the_run_knows_is_there(witness):
    found = witness.about(2)
    assert (found.sample, found.id, found.status, found.given, found.suggestion, found.runner_up) == (
        2, "2", "review", 2, 0, 1,
    )  # fmt: skip
    assert found.probability == pytest.approx(0.3 + 1 / 24)
    assert found.votes == [Share(0, 0.5), Share(1, 0.3)]
    assert found.neighbors[0] == Neighbor(3, "3", 0, 0, False)
    assert [neighbor.sample for neighbor in found.neighbors] == [3, 4, 5, 8]
    assert found.stands.number == 0


def test_reasons_are_words(witness):
    assert witness.about(2).reasons == [
        "The given label is probably wrong, but cat has only 34 %; below 85 % a person should look.",
        "The branches are divided: 50 % of their suggestions say cat, 30 % dog.",
        "Of its 4 nearest samples 2 are cat and 2 are fox & <b>hen.",
    ]


def test_a_doubted_label_that_stays_is_told_so(witness):
    assert witness.about(1).reasons[0].startswith("The given label is the best guess, but only at 32 %")


def test_silence_of_the_branches_is_told(witness):
    assert "No branch had a suggestion: no labelled sample is near enough." in witness.about(0).reasons
    assert witness.about(0).votes == []


def test_twins_with_other_labels_are_told(witness):
    assert witness.about(3).reasons[-1] == "An identical sample has another label: 5."


@pytest.mark.parametrize(
    ("sample", "words"),
    [(25, "changed at 97 %"), (30, "kept at 97 %"), (35, "came without a label")],
)
def test_other_statuses_have_reasons_of_their_own(witness, sample, words):
    assert words in witness.about(sample).reasons[0]


def test_a_sample_without_a_label_has_none(witness):
    assert witness.about(35).given is None


def test_a_class_that_is_too_small_is_told():
    few = made_result(np.arange(4), [0, 1, 1, 1], ARRAYS, n_review=4)
    assert Witness(few, Standing(4)).about(0).reasons[0].startswith("Only 1 sample has this label: too few")


def test_an_unreadable_picture_says_why(result):
    result.status[4] = "unreadable"
    result.unreadable["4"] = "it is cut off"
    found = Witness(result, Standing(N)).about(4)
    assert found.reasons[0] == "The picture could not be read: it is cut off."


def test_decisions_show_at_the_sample_and_at_its_neighbours(witness):
    witness.standing.add(Line(1, 1, 3, LABEL, 2, None, "r", "tab", 0.0))
    witness.standing.add(Line(2, 2, 4, UNSURE, None, None, "r", "tab", 0.0))
    stands = witness.about(3).stands
    assert (stands.number, stands.kind, stands.label) == (1, LABEL, 2)
    assert witness.about(2).neighbors[0] == Neighbor(3, "3", 0, 2, True)
    assert witness.about(2).neighbors[1].decided is False


def test_names_are_those_of_the_classes(witness):
    assert witness.names == CLASSES


@pytest.mark.parametrize(("share", "text"), [(0.5, "50 %"), (0.999, ">99 %"), (1.0, "100 %"), (0.0, "0 %")])
def test_nothing_uncertain_is_said_to_be_certain(share, text):
    assert _percent(share) == text
