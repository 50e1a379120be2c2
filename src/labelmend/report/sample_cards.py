"""Samples to look at: pictures as cards, rows as a table, each with what became of it and on what evidence."""

from __future__ import annotations

from collections.abc import Sequence

from labelmend.report.blocks import table
from labelmend.report.html import Html, data_uri, element, together
from labelmend.report.samples import Sample
from labelmend.report.wording import class_name, shortened


def show(samples: Sequence[Sample], caption: str) -> Html:
    """Cards where there are pictures, else a table."""
    if any(sample.picture for sample in samples):
        cards = [_card(sample, [_labels(sample), *_evidence(sample)]) for sample in samples]
        return element("div", *cards, class_="cards")
    more = next((sample.more_cells for sample in samples if sample.cells), 0)
    rest = element("p", f"{more:,} more columns are not shown.", class_="small quiet") if more else None
    return together(_rows(samples, caption), rest)


def show_pair(typical: Sequence[Sample], changed: Sequence[Sample], caption: str) -> Html:
    """Samples that kept their label, to compare with, and those that changed from one class to another."""
    if not any(sample.picture for sample in (*typical, *changed)):
        return _rows([*typical, *changed], caption)
    kept = [_card(sample, [_small(f"kept as {class_name(sample.corrected)}")], "kept") for sample in typical]
    moved = [_card(sample, [element("span", f"{sample.confidence:.0%}"), _support(sample)]) for sample in changed]
    return element("div", *kept, *moved, class_="cards pair")


def _card(sample: Sample, lines: Sequence[Html], kind: str = "") -> Html:
    name = element("span", shortened(sample.id, 28), class_="name", title=sample.id)
    return element("figure", _picture(sample), element("figcaption", *lines, name), class_=f"card {kind}".strip())


def _picture(sample: Sample) -> Html:
    if sample.picture is None:
        return element("div", "cannot be read any more", class_="gone small quiet")
    crisp = "crisp" if sample.picture.startswith(b"\x89PNG") else None  # tiny pictures are not smoothed when enlarged
    return element("img", src=data_uri(sample.picture), alt=f"sample {shortened(sample.id, 28)}", class_=crisp)


def _labels(sample: Sample) -> Html:
    share = element("span", f"{sample.confidence:.0%}{_or(sample)}", class_="quiet")
    return element("span", _change(sample), " ", share)


def _change(sample: Sample) -> Html:
    given = "no label" if sample.given is None else class_name(sample.given)
    changed = sample.given != sample.corrected
    return together(given, " → " if changed else None, element("b", class_name(sample.corrected)) if changed else None)


def _or(sample: Sample) -> str:
    """The second class where it was hard to decide, unless it is named anyhow."""
    hard = sample.status == "review" and sample.runner_up not in (None, sample.given)
    return f", or {class_name(str(sample.runner_up))}" if hard else ""


def _support(sample: Sample) -> Html:
    return _small(f"{dict(sample.votes).get(sample.corrected, 0.0):.0%} of votes")


def _evidence(sample: Sample) -> list[Html]:
    near = _neighbors(sample)
    return [_small(f"votes: {_votes(sample)}"), *([_small(f"neighbours: {near}")] if near else [])]


def _votes(sample: Sample) -> str:
    return ", ".join(f"{class_name(name)}: {share:.0%}" for name, share in sample.votes) or "none"


def _neighbors(sample: Sample) -> str:
    if sample.neighbors is None:
        return ""
    name, count, of = sample.neighbors
    return f"{count} of {of} are {class_name(name)}"


def _small(text: str) -> Html:
    return element("span", text, class_="small quiet")


def _rows(samples: Sequence[Sample], caption: str) -> Html:
    columns = next((sample.cells for sample in samples if sample.cells), ())
    names = ["sample", "label", "posterior", "votes", "neighbours", *(shortened(name, 24) for name, _ in columns)]
    head = [element("th", name, scope="col") for name in names]
    body = []
    for sample in samples:
        known = dict(sample.cells)
        values = (shortened(known.get(name, ""), 40) for name, _ in columns)
        body.append(
            element(
                "tr",
                element("th", shortened(sample.id, 40), scope="row", class_="name", title=sample.id),
                element("td", _change(sample), _or(sample)),
                element("td", f"{sample.confidence:.0%}", class_="number"),
                *(element("td", text, class_="quiet") for text in (_votes(sample), _neighbors(sample))),
                *(element("td", value, class_="number") for value in values),
            )
        )
    return table(caption, head, body, "samples")
