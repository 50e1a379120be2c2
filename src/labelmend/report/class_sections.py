"""The sections about classes: which labels became which, and how wrong the labels of each class are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from labelmend.report.blocks import details, section, table
from labelmend.report.classes import ClassNoise, Flow, Pair
from labelmend.report.contents import Contents
from labelmend.report.drawings import bar
from labelmend.report.html import Html, element, together
from labelmend.report.sample_cards import show_pair
from labelmend.report.wording import class_name, shortened

NOISE_ROWS, MOST_NOISE_ROWS = 15, 1_000  # of classes that are shown at once, and at all
SHADES, DARKEST = 8, 0.2  # steps of the matrix; share of a row that is darkest, or the largest if that is more
NOTHING_CHANGED = "No label was changed."


def flow(contents: Contents) -> Html:
    about = contents.flow
    meaning = (
        "Each row is a class as it was given, each column what its labels became. Off the diagonal are changed labels; "
        "the stronger the colour, the larger the share of the row."
    )
    if not about.changes:
        return section("flow", "Given to corrected", "", element("p", NOTHING_CHANGED))
    return section("flow", "Given to corrected", meaning, _matrix(about), _left_out(about), _pairs(contents.pairs))


def noise(contents: Contents) -> Html:
    meaning = (
        "Wrong: of the labels given as this class, the estimated share that is wrong. Astray: of the samples that "
        "belong to this class, the estimated share that carries another label."
    )
    how = (
        "Astray comes straight from the run's estimate of P(given label | true class), found by expectation "
        "maximisation from what the graphs and nets say about each sample and the labels it carries; wrong follows "
        "from it by Bayes' rule with the sizes the classes have after correction. No true label was known. Over all "
        f"classes the run estimates {contents.noise_rate:.1%} wrong labels."
    )
    shown, rest = contents.noise[:NOISE_ROWS], contents.noise[NOISE_ROWS:MOST_NOISE_ROWS]
    more = [f"The {len(rest):,} classes after these"]
    if len(contents.noise) > MOST_NOISE_ROWS:
        more.append(f" ({len(contents.noise) - MOST_NOISE_ROWS:,} more are left out)")
    return section(
        "noise",
        "How wrong the labels of each class are",
        meaning,
        _noise_table(shown, "Estimated noise per class, most wrong labels first"),
        details("".join(more), _noise_table(rest, "Estimated noise of the other classes")) if rest else None,
        element("p", how, class_="small quiet"),
    )


def _matrix(flow: Flow) -> Html:
    names = [element("th", _short_name(name), scope="col", title=name) for name in flow.names]
    totals = np.maximum(flow.counts.sum(axis=1), 1)
    moved = flow.counts - np.diag(flow.counts.diagonal())
    darkest = max(float((moved / totals[:, None]).max()), DARKEST)
    rows = []
    for at, name in enumerate(flow.names):
        cells = [
            element("td", f"{count:,}" if count else "", class_=_shade(at == to, count / totals[at] / darkest, count))
            for to, count in enumerate(flow.counts[at].tolist())
        ]
        rows.append(element("tr", element("th", _short_name(name), scope="row", title=name), *cells))
    corner = element("th", "given ↓ corrected →", scope="col", class_="corner")
    return table("Labels by given and corrected class", [corner, *names], rows, "matrix")


def _shade(diagonal: bool, share: float, count: int) -> str | None:
    if diagonal:
        return "diagonal"
    return f"shade-{max(1, round(SHADES * share**0.5))}" if count else None


def _left_out(flow: Flow) -> Html | None:
    if len(flow.names) == flow.n_classes:
        return None
    return element(
        "p",
        f"The {len(flow.names)} of {flow.n_classes:,} classes with most changes; {flow.changes_shown:,} of the "
        f"{flow.changes:,} changed labels are among them. All are in labels.csv.",
        class_="small quiet",
    )


def _pairs(pairs: Sequence[Pair]) -> Html:
    blocks = [element("h3", "Most frequent changes")]
    line = "The surest changes of each pair; in front, a sample of either class that kept its label, to compare."
    blocks.append(element("p", line, class_="meaning"))
    for pair in pairs:
        title = together(
            element("span", class_name(pair.given)), " → ", class_name(pair.corrected), " ",
            element("span", f"{pair.count:,} label{'' if pair.count == 1 else 's'}", class_="quiet"),
        )  # fmt: skip
        typical = [sample for sample in (pair.typical_given, pair.typical_corrected) if sample]
        caption = f"{class_name(pair.given)} corrected to {class_name(pair.corrected)}"
        blocks += [element("h4", title), show_pair(typical, pair.samples, caption)]
    return together(*blocks)


def _noise_table(rows: Sequence[ClassNoise], caption: str) -> Html:
    head = [
        element("th", "class", scope="col"),
        element("th", "labels", scope="col", class_="number"),
        element("th", "wrong, estimated", scope="col", colspan=2),
        element("th", "astray, estimated", scope="col", class_="number"),
        element("th", "changed from", scope="col", class_="number"),
        element("th", "changed to", scope="col", class_="number"),
    ]
    body = [
        element(
            "tr",
            element("th", class_name(row.name), scope="row", title=row.name),
            element("td", f"{row.labels:,}", class_="number"),
            element("td", _percent(row.wrong), class_="number"),
            element("td", bar(row.wrong or 0), class_="bar-cell"),
            element("td", _percent(row.astray), class_="number"),
            element("td", f"{row.changed:,}", class_="number"),
            element("td", f"{row.arrived:,}", class_="number"),
        )
        for row in rows
    ]
    return table(caption, head, body, "noise")


def _short_name(name: str) -> str:
    return shortened(class_name(name), 18)


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"
