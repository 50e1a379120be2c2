"""The section about the noise as a whole: how much of it, what kind of errors, why samples are in doubt.

What it says comes from the profile and the reasons of the run (`trust/`); numbers per class and pair carry intervals.
"""

from __future__ import annotations

from collections.abc import Sequence

from labelmend.diagnosis.profile import ClassRate, NoiseProfile, PairCount, rate_text, sentences
from labelmend.diagnosis.reliability import Interval
from labelmend.report.blocks import details, section, table
from labelmend.report.contents import Contents
from labelmend.report.drawings import bar
from labelmend.report.html import Html, element, together
from labelmend.report.wording import class_name

COVERED = (
    "Intervals are meant to hold the true figure in 90 of 100 data sets. That of the share of wrong labels covers "
    "scattered errors, whatever of them cannot be told from classes that overlap. It does not cover errors that sit "
    "together, unless the classes are apart, nor errors that nothing in the data contradicts. Kinds are found by "
    "comparing suspects with errors of each kind planted into these data. No true label was known."
)
KIND_MEANINGS = {
    "random": "anywhere, to any class",
    "confusing": "at the border between two classes",
    "patch": "whole neighbourhoods with one wrong label",
}
REASON_MEANINGS = {
    "fits another class": "the given label is held wrong",
    "fits two classes": "the evidence divides it between the given label and another: ambiguous, or both are true",
    "fits no class": "an outlier: it was not relabelled; look for damaged data and missing classes",
}


def profile(contents: Contents) -> Html:
    found = contents.profile
    if found is None:
        return section("profile", "What the noise is", "", element("p", "This run has no noise profile."))
    untold = contents.verdict is not None and contents.verdict.cannot_tell
    lead = "" if untold else f"About {rate_text(found.rate)} are estimated to be wrong."
    return section(
        "profile",
        "What the noise is",
        lead,
        element("p", " ".join(sentences(found, contents.verdict))),
        _kinds(found),
        _reasons(contents.reasons),
        details("Wrong labels of each class, with intervals", _class_table(found.classes)) if found.classes else None,
        details("Most frequent errors, with intervals", _pair_table(found.pairs)) if found.pairs else None,
        element("p", COVERED, class_="small quiet"),
    )


def _kinds(found: NoiseProfile) -> Html | None:
    if found.kinds is None or found.seen is None:
        return None
    head = [_head("kind of error"), _head("share", 2), _head("seen"), _head("where")]
    body = [
        element(
            "tr",
            element("th", name, scope="row"),
            _number(f"{share:.0%}"),
            element("td", bar(share), class_="bar-cell"),
            _number(f"{found.seen[name]:.0%}"),
            element("td", KIND_MEANINGS[name], class_="quiet"),
        )
        for name, share in found.kinds.items()
    ]
    line = "Seen: of errors of that kind planted into these data, the share that a run like this finds."
    return together(table("Kinds of errors", head, body), element("p", line, class_="small quiet"))


def _reasons(reasons: Sequence[tuple[str, int]]) -> Html | None:
    if not reasons:
        return None
    head = [_head("why a sample is in doubt"), _head("samples"), _head("what that means")]
    body = [
        element(
            "tr",
            element("th", name, scope="row"),
            _number(f"{count:,}"),
            element("td", REASON_MEANINGS[name], class_="quiet"),
        )
        for name, count in reasons
    ]
    return table("Samples in doubt, by reason", head, body)


def _class_table(rows: Sequence[ClassRate]) -> Html:
    head = [_head("class"), _head("labels"), _head("wrong"), _head("from"), _head("to")]
    return table("Wrong labels by class", head, [_line([class_name(str(r.name))], r.labels, r.wrong) for r in rows])


def _pair_table(rows: Sequence[PairCount]) -> Html:
    head = [_head("given"), _head("belongs to"), _head("labels"), _head("from"), _head("to")]
    body = [
        element(
            "tr",
            element("th", class_name(str(row.given)), scope="row"),
            element("td", class_name(str(row.true))),
            *(_number(f"{value:,.0f}") for value in (row.count.value, row.count.low, row.count.high)),
        )
        for row in rows
    ]
    return table("Most frequent errors", head, body)


def _line(names: Sequence[str], labels: int, wrong: Interval) -> Html:
    ends = (_number(f"{value:.1%}") for value in (wrong.value, wrong.low, wrong.high))
    return element("tr", element("th", *names, scope="row"), _number(f"{labels:,}"), *ends)


def _head(name: str, span: int | None = None) -> Html:
    return element("th", name, scope="col", colspan=span)


def _number(text: str) -> Html:
    return element("td", text, class_="number")
