import dataclasses
import re

import pytest
import result_by_hand as by_hand

from labelmend.decision.verdict import APART, CANNOT_TELL, OVERLAPPING, Verdict

FOUND = Verdict(APART, "auto", 3, 200, 0.05, 0.1, 0.2, 0.08, 12, 0.83, 0.71, 11, 1, {"ridge": 0.7, "<b>net": 0.3})


def section(verdict):
    """The section of a report; None: it has none."""
    found = re.search('<section id="verdict".*?</section>', by_hand.report(verdict=verdict), re.DOTALL)
    return found and found.group()


@pytest.mark.parametrize("classes", [APART, OVERLAPPING, CANNOT_TELL])
def test_it_says_what_the_classes_are_and_shows_every_figure(classes):
    shown = section(dataclasses.replace(FOUND, classes=classes))
    assert f">Classes: {classes}</h2>" in shown
    for figure in ("95%", "0.08", "83%", "71%", "10 to 20%", ">12<", ">11<"):
        assert figure in shown
    assert "<b>net" not in shown


def test_members_come_with_their_weights_the_largest_first():
    assert re.search("ridge.*0.70.*net.*0.30", section(FOUND), re.DOTALL)


def test_without_votes_there_is_no_mixing_and_without_a_verdict_nothing():
    assert section(None) is None
    assert "not measured" in section(dataclasses.replace(FOUND, mixing=None))
    assert "inconclusive" in section(dataclasses.replace(FOUND, mixing=float("inf")))
    assert "83%" not in section(dataclasses.replace(FOUND, classes=OVERLAPPING, disputed=0))
