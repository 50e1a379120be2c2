"""The section about those who gave the labels: how good each is estimated to be, and what they confuse."""

from __future__ import annotations

from collections.abc import Sequence

from labelmend.diagnosis.annotators import Annotators, Confusion
from labelmend.report.blocks import details, section, table
from labelmend.report.contents import Contents
from labelmend.report.drawings import bar
from labelmend.report.html import Html, element
from labelmend.report.wording import class_name, shortened

ROWS, MOST_ROWS = 20, 1_000  # annotators that are shown at once, and at all
CONFUSIONS = 10
MEANING = (
    "Right: the share of someone's labels that is estimated to be right, and the range that holds it with 90 % "
    "probability. Agreement: the share that is what all annotators say together, without a look at the samples."
)
HOW = (
    "P(said | true) of everyone comes from expectation maximisation over all labels and what the graphs and nets say "
    "about each sample. No true label was known. Who gave few labels is taken to be like the others: ten labels of the "
    "common quality are counted with the own ones."
)


def annotators(contents: Contents) -> Html | None:
    about = contents.annotators
    if about is None:
        return None
    order = about.worst_first().tolist()
    shown, rest = order[:ROWS], order[ROWS:MOST_ROWS]
    more = f"The {len(rest):,} annotators after these"
    if len(order) > MOST_ROWS:
        more += f" ({len(order) - MOST_ROWS:,} more are left out)"
    return section(
        "annotators",
        "How good the annotators are",
        MEANING,
        _table(about, shown, contents.classes, "Annotators, the least accurate first"),
        details(more, _table(about, rest, contents.classes, "The other annotators")) if rest else None,
        _confusions(about.worst_confusions(CONFUSIONS), contents.classes),
        element("p", HOW, class_="small quiet"),
    )


def _table(about: Annotators, places: Sequence[int], classes: Sequence[str], caption: str) -> Html:
    head = [
        element("th", "annotator", scope="col"),
        element("th", "labels", scope="col", class_="number"),
        element("th", "right, estimated", scope="col", colspan=2),
        element("th", "from", scope="col", class_="number"),
        element("th", "to", scope="col", class_="number"),
        element("th", "agreement", scope="col", class_="number"),
        element("th", "confuses most", scope="col"),
    ]
    body = []
    for place in places:
        name, worst = str(about.names[place]), about.worst_of(place)
        body.append(
            element(
                "tr",
                element("th", shortened(class_name(name)), scope="row", title=name),
                element("td", f"{about.n_labels[place]:,}", class_="number"),
                element("td", f"{about.accuracy[place]:.1%}", class_="number"),
                element("td", bar(float(about.accuracy[place])), class_="bar-cell"),
                element("td", f"{about.low[place]:.1%}", class_="number"),
                element("td", f"{about.high[place]:.1%}", class_="number"),
                element("td", f"{about.agreement[place]:.1%}" if about.n_labels[place] else "-", class_="number"),
                element("td", _in_words(worst, classes) if worst else "-"),
            )
        )
    return table(caption, head, body, "noise")


def _confusions(found: Sequence[Confusion], classes: Sequence[str]) -> Html | None:
    if not found:
        return None
    head = [
        element("th", "annotator", scope="col"),
        element("th", "confusion", scope="col"),
        element("th", "labels, estimated", scope="col", class_="number"),
    ]
    body = [
        element(
            "tr",
            element("th", shortened(class_name(one.annotator)), scope="row", title=one.annotator),
            element("td", _in_words(one, classes)),
            element("td", f"{one.count:,.0f}", class_="number"),
        )
        for one in found
    ]
    return element(
        "div", element("h3", "Confusions that make most wrong labels"), table("Worst confusions", head, body, "noise")
    )


def _in_words(one: Confusion, classes: Sequence[str]) -> str:
    true, said = (shortened(class_name(classes[code]), 30) for code in (one.true, one.said))
    return f"says {said} for {one.share:.0%} of {true}"
