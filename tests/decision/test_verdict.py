"""What the verdict says in words, by its numbers; and that it comes back from JSON."""

import dataclasses
import json

import pytest

from labelmend.decision.verdict import APART, CANNOT_TELL, OVERLAPPING, Verdict, verdict_from

PLAIN = Verdict(
    classes=APART,
    assume="auto",
    n_classes=4,
    labelled=5000,
    overlap=0.12,
    noise_low=0.1,
    noise_high=0.42,
    mixing=0.08,
    disputed=2000,
    linear=0.834,
    trees=0.56,
    adopted=1234,
    waiting=1041,
    members={"ridge": 0.5, "knn": 0.0},
)


def said(**changes):
    return dataclasses.replace(PLAIN, **changes).reason


def test_apart_with_labels_adopted():
    for words in ("apart", "mixing 0.08", "83%", "56%", "1,234 labels"):
        assert words in said()


def test_apart_with_none_adopted():
    assert "nothing was adopted" in said(adopted=0)
    assert "assumed" not in said(adopted=0)
    assert "assumed" in said(adopted=0, assume=APART)
    assert "mixing" not in said(adopted=0, mixing=None)


def test_overlapping():
    text = said(classes=OVERLAPPING, mixing=0.75, adopted=0)
    for words in ("overlapping", "mixing 0.75", "88%", "left alone", "review: 1,041"):
        assert words in text
    assert "changed" not in text
    assert "1,234 labels changed" in said(classes=OVERLAPPING)
    assert "review" not in said(classes=OVERLAPPING, waiting=0)
    text = said(classes=OVERLAPPING, assume=OVERLAPPING)
    assert "assumed" in text
    assert "mixing" not in text


@pytest.mark.parametrize(("n_classes", "number"), [(4, "88%"), (2, "42%")])
def test_cannot_tell(n_classes, number):
    verdict = dataclasses.replace(PLAIN, classes=CANNOT_TELL, n_classes=n_classes)
    assert verdict.cannot_tell
    assert number in verdict.reason
    assert "cannot tell" in verdict.reason
    assert ("assume=apart" in verdict.reason) == (n_classes == 2)
    assert not PLAIN.cannot_tell


def test_a_note_is_said_last():
    assert said(note="And the rest.").endswith("labels. And the rest.")


def test_it_comes_back_from_json():
    plain = json.loads(json.dumps(PLAIN.plain(), allow_nan=False))
    assert plain["reason"] == PLAIN.reason
    assert verdict_from(plain) == PLAIN
    endless = dataclasses.replace(PLAIN, mixing=float("inf"))
    assert verdict_from(json.loads(json.dumps(endless.plain(), allow_nan=False))).mixing is None
