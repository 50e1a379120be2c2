"""The sections at the top and the end: the summary, samples worth a look, how it was made."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from labelmend.report.blocks import details, section, table
from labelmend.report.contents import Contents
from labelmend.report.drawings import parts
from labelmend.report.html import Html, element, together
from labelmend.report.making import Making
from labelmend.report.sample_cards import show
from labelmend.report.wording import printable, seconds_text, shortened

LISTED = 50  # pictures that could not be read


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


def galleries(contents: Contents) -> Html:
    blocks = []
    for gallery in contents.galleries:
        count = f"{len(gallery.samples):,} of {gallery.total:,}" if gallery.samples else "There are none."
        blocks += [
            element("h3", gallery.title),
            element("p", f"{gallery.rule} {count}{' shown.' if gallery.samples else ''}", class_="meaning"),
            show(gallery.samples, gallery.title) if gallery.samples else None,
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
        details("All parameters", _parameters(made)),
    )


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
    return together(facts, element("h3", "Where the time went"), table("Seconds per stage", head, [*body, total]))


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
    return table("Parameters of the run", head, body)


def _unreadable(unreadable: Sequence[tuple[str, str]]) -> Html | None:
    if not unreadable:
        return None
    rows = [element("tr", element("th", shortened(name), scope="row"), element("td", why)) for name, why in unreadable]
    head = [element("th", "picture", scope="col"), element("th", "why it could not be read", scope="col")]
    more = f", the first {LISTED} here" if len(unreadable) > LISTED else ""
    listed = table("Pictures that could not be read", head, rows[:LISTED])
    return details(f"{len(unreadable):,} could not be read{more}; all are in unreadable.csv", listed)


def _terms(pairs: Iterable[tuple[str, str]]) -> list[Html]:
    return [element("div", element("dt", name), element("dd", value)) for name, value in pairs]
