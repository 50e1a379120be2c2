"""One sample as a card: its picture or its row, what was given, what became of it, and on what evidence."""

from __future__ import annotations

from collections.abc import Sequence

from labelmend.page.html import Html, data_uri, element, together
from labelmend.report.samples import Sample
from labelmend.report.wording import class_name, shortened


def cards(samples: Sequence[Sample]) -> Html:
    rows = any(sample.cells for sample in samples)
    return element("div", *(card(sample) for sample in samples), class_="cards rows" if rows else "cards")


def card(sample: Sample, within: str = "gallery") -> Html:
    """`within` "kept" is a sample to compare with, "pair" one of a pair whose labels stand above."""
    lines = {
        "kept": [element("span", f"kept as {class_name(sample.corrected)}", class_="small quiet")],
        "pair": [element("span", f"{sample.confidence:.0%}"), _evidence(sample)],
        "gallery": [_labels(sample), _evidence(sample)],
    }[within]
    name = element("span", shortened(sample.id, 28), class_="name", title=sample.id)
    shown = _picture(sample) or _row(sample)
    return element("figure", shown, element("figcaption", *lines, name), class_=f"card {within}")


def _labels(sample: Sample) -> Html:
    given = "no label" if sample.given is None else class_name(sample.given)
    changed = sample.given != sample.corrected
    to = together(" → ", element("b", class_name(sample.corrected))) if changed else None
    return element("span", given, to, " ", element("span", f"{sample.confidence:.0%}", class_="quiet"))


def _evidence(sample: Sample) -> Html:
    votes = ", ".join(f"{class_name(name)} {share:.0%}" for name, share in sample.votes) or "nobody voted"
    near = ""
    if sample.neighbors is not None:
        name, count, of = sample.neighbors
        near = f"; {count} of {of} neighbours {class_name(name)}"
    return element("span", f"votes: {votes}{near}", class_="small quiet")


def _picture(sample: Sample) -> Html | None:
    if sample.picture is None:
        return None
    crisp = "crisp" if sample.picture.startswith(b"\x89PNG") else None  # tiny pictures are not smoothed when enlarged
    return element("img", src=data_uri(sample.picture), alt=f"sample {shortened(sample.id, 28)}", class_=crisp)


def _row(sample: Sample) -> Html | None:
    if not sample.cells:
        return None
    cells = [element("div", element("dt", name), element("dd", shortened(value, 40))) for name, value in sample.cells]
    more = element("p", f"and {sample.more_cells:,} more columns", class_="small quiet") if sample.more_cells else None
    return element("div", element("dl", *cells), more, class_="row")
