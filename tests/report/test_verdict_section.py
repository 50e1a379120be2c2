import dataclasses
import re

import pytest

from labelmend.decision.verdict import APART, CANNOT_TELL, OVERLAPPING, Verdict
from labelmend.report.verdict_section import TITLES, verdict_section

FOUND = Verdict(APART, "auto", 3, 200, 0.05, 0.1, 0.2, 0.08, 12, 0.83, 0.71, 11, 1, {"ridge": 0.7, "<b>net": 0.3})


@pytest.mark.parametrize("classes", [APART, OVERLAPPING, CANNOT_TELL])
def test_it_says_what_the_classes_are_and_shows_every_figure(classes):
    said = str(verdict_section(dataclasses.replace(FOUND, classes=classes)))
    assert TITLES[classes] in said
    for figure in ("95%", "0.08", "83%", "71%", "10 to 20%", ">12<", ">11<"):
        assert figure in said
    assert "<b>net" not in said


def test_members_come_with_their_weights_the_largest_first():
    said = str(verdict_section(FOUND))
    assert re.search("ridge.*0.70.*net.*0.30", said, re.DOTALL)


def test_without_votes_there_is_no_mixing_and_without_a_verdict_nothing():
    assert verdict_section(None) is None
    for mixing in (None, float("inf")):
        assert verdict_section(dataclasses.replace(FOUND, mixing=mixing)) is not None
    assert "83%" not in str(verdict_section(dataclasses.replace(FOUND, classes=OVERLAPPING, disputed=0)))
