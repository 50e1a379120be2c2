"""The sections of the page, each from its part of the contents. All text goes through `element`, which escapes it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from labelmend.page.html import Html, element, together
from labelmend.report.contents import ClassNoise, Contents, Flow, Pair, Round, shown_rounds
from labelmend.report.drawings import bar, histogram, line_plot, parts
from labelmend.report.making import Making
from labelmend.report.sample_cards import card, cards
from labelmend.report.wording import class_name, seconds_text, shortened
from labelmend.terminal import printable

NOISE_ROWS, MOST_NOISE_ROWS = 15, 1_000  # of classes that are shown at once, and at all
SHADES = 8
LISTED = 50  # pictures that could not be read
NOTHING_CHANGED = "No label was changed."


def section(id: str, title: str, meaning: str, *inside: Any) -> Html:
    """A heading, one line that says what is to be seen, and what is to be seen."""
    head = element("h2", title, id=f"{id}-title")
    line = element("p", meaning, class_="meaning") if meaning else None
    return element("section", head, line, *inside, id=id, aria_labelledby=f"{id}-title")


def summary(contents: Contents) -> Html:
    tiles = [
        element(
            "div",
            element("dt", number.name, class_=f"status status-{number.status}" if number.status else None),
            element("dd", f"{number.value:,}", class_="value"),
            element("dd", number.about, class_="small quiet"),
        )
        for number in contents.numbers
    ]
    counted = [(number.status, number.value) for number in contents.numbers if number.status]
    whole = max(sum(value for _, value in counted), 1)
    shares = parts([(f"part-{status}", value / whole) for status, value in counted])
    notes = [element("li", printable(note)) for note in contents.notes]
    return together(
        element("p", contents.sentence, class_="lead"),
        shares,
        element("dl", *tiles, class_="tiles"),
        element("ul", *notes, class_="notes small") if notes else None,
        _unreadable(contents.unreadable),
    )


def flow(contents: Contents) -> Html:
    about = contents.flow
    meaning = (
        "Each row is a class as it was given, each column what its labels became. Off the diagonal are changed labels; "
        "darker is a larger share of its row."
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
        _details("".join(more), _noise_table(rest, "Estimated noise of the other classes")) if rest else None,
        element("p", how, class_="small quiet"),
    )


def rounds(contents: Contents) -> Html:
    meaning = "What happened from round to round: whether the votes grew sure and the labels came to rest."
    return section(
        "rounds",
        "Round by round",
        meaning,
        _certainty(shown_rounds(contents.rounds)),
        _curves(contents.rounds),
        _details("All rounds in numbers", _round_table(contents.rounds)),
    )


def galleries(contents: Contents) -> Html:
    blocks = []
    for gallery in contents.galleries:
        count = f"{len(gallery.samples):,} of {gallery.total:,}" if gallery.samples else "There are none."
        blocks += [
            element("h3", gallery.title),
            element("p", f"{gallery.rule} {count}{' shown.' if gallery.samples else ''}", class_="meaning"),
            cards(gallery.samples) if gallery.samples else None,
        ]
    missing = f"Samples cannot be shown: {contents.without}." if contents.kind == "none" else contents.without
    note = element("p", missing, class_="small quiet") if missing else None
    return section("samples", "Samples worth a look", "", note, *blocks)


def making(contents: Contents) -> Html:
    made = contents.making
    again = made.repeat or "The command or call that made this result is not recorded."
    return section(
        "making",
        "How it was made",
        "All that is needed to make it again: on a CPU the same seed, data and versions give the same result.",
        element("pre", element("code", again), tabindex=0) if made.repeat else element("p", again),
        _facts(made),
        _details("All parameters", _parameters(made)),
    )


def _matrix(flow: Flow) -> Html:
    names = [element("th", _short_name(name), scope="col", title=name) for name in flow.names]
    totals = np.maximum(flow.counts.sum(axis=1), 1)
    moved = flow.counts - np.diag(flow.counts.diagonal())
    largest = max(float((moved / totals[:, None]).max()), 1e-9)
    rows = []
    for at, name in enumerate(flow.names):
        cells = [
            element("td", f"{count:,}" if count else "", class_=_shade(at == to, count / totals[at] / largest, count))
            for to, count in enumerate(flow.counts[at].tolist())
        ]
        rows.append(element("tr", element("th", _short_name(name), scope="row", title=name), *cells))
    corner = element("th", "given ↓ corrected →", scope="col", class_="corner")
    head = element("thead", element("tr", corner, *names))
    caption = element("caption", "Labels by given and corrected class", class_="unseen")
    table = element("table", caption, head, element("tbody", *rows), class_="matrix")
    return _scroll("Matrix of given and corrected classes", table)


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
        typical = [card(sample, "kept") for sample in (pair.typical_given, pair.typical_corrected) if sample]
        changed = [card(sample, "pair") for sample in pair.samples]
        blocks.append(element("h4", title))
        blocks.append(element("div", *typical, *changed, class_="cards pair"))
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
    return _table(caption, head, body, "noise")


def _certainty(rounds: Sequence[Round]) -> Html:
    highest = max((max(one.histogram) for one in rounds if one.histogram), default=1)
    figures = [
        element(
            "figure",
            histogram(one.histogram, highest, f"Certainty in round {one.index}: {one.mean_certainty:.2f} on average"),
            element("figcaption", f"round {one.index}, mean {one.mean_certainty:.2f}", class_="small"),
        )
        for one in rounds
    ]
    line = (
        "How certain the votes were: samples counted by the certainty of their vote, from 0 (the least agreement) to 1 "
        "(the most). When the branches come to agree, the samples move to the right."
    )
    return together(
        element("h3", "Certainty of the votes"),
        element("p", line, class_="meaning"),
        element("div", *figures, class_="histograms"),
    )


def _curves(rounds: Sequence[Round]) -> Html:
    changes = [(one.index, float(one.changes)) for one in rounds]
    similar = [(one.index, one.graph_similarity) for one in rounds if one.graph_similarity is not None]
    figures = [
        _figure(
            "Label changes",
            "Labels that differ from the previous vote; they should die down.",
            line_plot(changes, f"Label changes per round: {_ends(changes, '{:,.0f}')}", lambda y: f"{y:,.0f}"),
        )
    ]
    if similar:
        plot = line_plot(similar, f"Graph similarity per round: {_ends(similar, '{:.3f}')}", "{:.2g}".format, False)
        about = "Mean cosine between neighbours, over all branches; it grows as the classes draw together."
        figures.append(_figure("Average similarity in the graphs", about, plot))
    return element("div", *figures, class_="plots")


def _figure(title: str, meaning: str, plot: Html) -> Html:
    return element("figure", element("h3", title), element("p", meaning, class_="meaning"), plot)


def _ends(points: Sequence[tuple[int, float]], form: str) -> str:
    (first, begin), (last, end) = points[0], points[-1]
    return f"{form.format(begin)} in round {first}, {form.format(end)} in round {last}"


def _round_table(rounds: Sequence[Round]) -> Html:
    names = ("round", "label changes", "differ from given", "mean certainty", "graph similarity", "seconds")
    body = [
        element(
            "tr",
            element("th", one.index, scope="row"),
            *(
                element("td", text, class_="number")
                for text in (
                    f"{one.changes:,}",
                    f"{one.differ_from_given:,}",
                    f"{one.mean_certainty:.3f}",
                    "only trained" if one.graph_similarity is None else f"{one.graph_similarity:.3f}",
                    f"{one.seconds:.1f}",
                )
            ),
        )
        for one in rounds
    ]
    head = [element("th", name, scope="col", class_="number" if at else None) for at, name in enumerate(names)]
    return _table("The rounds in numbers", head, body)


def _facts(made: Making) -> Html:
    versions = ", ".join(f"{name} {version}" for name, version in made.versions) or "not recorded"
    facts = element(
        "dl",
        *_terms([("seed", str(made.seed)), ("versions", versions), ("fingerprint of the data", made.fingerprint)]),
        class_="facts",
    )
    head = [element("th", "stage", scope="col"), element("th", "seconds", scope="col", class_="number")]
    body = [
        element("tr", element("th", stage.name, scope="row"), element("td", f"{stage.seconds:.1f}", class_="number"))
        for stage in made.stages
    ]
    total = element("tr", element("th", "all", scope="row"), element("td", seconds_text(made.seconds), class_="number"))
    return together(facts, element("h3", "Where the time went"), _table("Seconds per stage", head, [*body, total]))


def _parameters(made: Making) -> Html:
    head = [element("th", name, scope="col") for name in ("parameter", "value", "what it is")]
    body = [
        element(
            "tr",
            element("th", element("code", parameter.name), scope="row"),
            element("td", parameter.value),
            element("td", parameter.about, class_="quiet"),
        )
        for parameter in made.parameters
    ]
    return _table("Parameters of the run", head, body)


def _unreadable(unreadable: Sequence[tuple[str, str]]) -> Html | None:
    if not unreadable:
        return None
    rows = [element("tr", element("th", shortened(name), scope="row"), element("td", why)) for name, why in unreadable]
    head = [element("th", "picture", scope="col"), element("th", "why it could not be read", scope="col")]
    more = f", the first {LISTED} here" if len(unreadable) > LISTED else ""
    table = _table("Pictures that could not be read", head, rows[:LISTED])
    return _details(f"{len(unreadable):,} could not be read{more}; all are in unreadable.csv", table)


def _terms(pairs: Iterable[tuple[str, str]]) -> list[Html]:
    return [element("div", element("dt", name), element("dd", value)) for name, value in pairs]


def _table(caption: str, head: Sequence[Html], body: Sequence[Html], class_: str | None = None) -> Html:
    inside = (
        element("caption", caption, class_="unseen"),
        element("thead", element("tr", *head)),
        element("tbody", *body),
    )
    return _scroll(caption, element("table", *inside, class_=class_))


def _scroll(name: str, inside: Html) -> Html:
    """What may be wider than a phone scrolls in itself, by keyboard too."""
    return element("div", inside, class_="scroll", role="region", tabindex=0, aria_label=name)


def _details(summary: str, inside: Html) -> Html:
    return element("details", element("summary", summary), inside)


def _short_name(name: str) -> str:
    return shortened(class_name(name), 18)


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"
