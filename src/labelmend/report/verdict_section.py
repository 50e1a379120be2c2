"""The section about the classes: are they apart, who supports the changes, and what follows from that.

Knows the verdict of a run; does not know how it came about: `decision/joining.py` does.
"""

from __future__ import annotations

import math

from labelmend.decision.verdict import APART, CANNOT_TELL, OVERLAPPING, Verdict
from labelmend.report.blocks import details, section, table
from labelmend.report.drawings import bar
from labelmend.report.html import Html, element, together
from labelmend.report.wording import shortened

TITLES = {
    APART: "Classes: apart",
    OVERLAPPING: "Classes: overlapping",
    CANNOT_TELL: "Classes: cannot tell",
}
FOLLOWS = {
    APART: "Where classes are apart, a label that contradicts its surroundings is an error. So errors that sit "
    "together, whole neighbourhoods with one wrong label, can be seen and corrected too.",
    OVERLAPPING: "Where classes overlap, good labels near a border look like errors. So labels change only where they "
    "stand out, and errors that sit together could not be seen. If you know that a careful person could tell nearly "
    "every row's class from these data, say assume=apart.",
    CANNOT_TELL: "Two explanations fit equally well: many wrong labels, or data that say little about the classes. A "
    "review of a few dozen samples tells them apart; so do trusted labels, better features, or assume=apart if you "
    "know that the classes can be told.",
}


def verdict_section(verdict: Verdict | None) -> Html | None:
    if verdict is None:
        return None
    return section(
        "verdict",
        TITLES[verdict.classes],
        _first_upper(verdict.reason),
        element("p", FOLLOWS[verdict.classes]),
        _facts(verdict),
        details("Members of the pool, and their weights", _members(verdict)) if verdict.members else None,
    )


def _facts(verdict: Verdict) -> Html:
    rows = [
        ("assumed", verdict.assume, "auto: found from the data"),
        ("best guess right", f"{1 - verdict.overlap:.0%}", "expected, once scattered errors are explained away"),
        (
            "scattered errors",
            f"{100 * verdict.noise_low:.0f} to {100 * verdict.noise_high:.0f}%",
            "90 % interval of the pool; errors that sit together are not in it",
        ),
        ("mixing", _mixing(verdict.mixing), "of the ensemble's votes: 0 neighbours agree, 1 they agree as by chance"),
        ("disputed", f"{verdict.disputed:,}", "labels that the pool keeps and the ensemble would change"),
    ]
    if verdict.disputed:
        about = "of the disputed labels for which they name one of the two, how often the ensemble's"
        rows += [("support of linear models", f"{verdict.linear:.0%}", about)]
        rows += [("support of trees", f"{verdict.trees:.0%}", "likewise")]
    rows += [
        ("adopted", f"{verdict.adopted:,}", "labels changed on the ensemble's proposal"),
        ("left alone", f"{verdict.waiting:,}", "pool or ensemble would change them; first in line for review"),
    ]
    body = [
        element(
            "tr",
            element("th", name, scope="row"),
            element("td", value, class_="number"),
            element("td", about, class_="quiet"),
        )
        for name, value, about in rows
    ]
    head = [
        element("th", "figure", scope="col"),
        element("th", "value", scope="col", class_="number"),
        element("th", "what it is", scope="col"),
    ]
    return table("Are the classes apart?", head, body)


def _members(verdict: Verdict) -> Html:
    total = sum(verdict.members.values()) or 1.0
    ordered = sorted(verdict.members.items(), key=lambda item: -item[1])
    body = [
        element(
            "tr",
            element("th", shortened(name), scope="row"),
            element("td", f"{weight:.2f}", class_="number"),
            element("td", bar(weight / total), class_="bar-cell"),
        )
        for name, weight in ordered
    ]
    head = [element("th", "member", scope="col"), element("th", "weight", scope="col", colspan=2)]
    line = (
        "Each judges a row without that row's own label. The weight is how much it helps to explain the given labels, "
        "beside the others; 0: it adds nothing."
    )
    return together(table("Weights of the members", head, body), element("p", line, class_="small quiet"))


def _mixing(value: float | None) -> str:
    return "not measured" if value is None else f"{value:.2f}" if math.isfinite(value) else "proves nothing"


def _first_upper(text: str) -> str:
    return text[:1].upper() + text[1:]
