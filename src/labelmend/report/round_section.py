"""The section about the rounds: certainty, label changes, similarity in the graphs."""

from __future__ import annotations

from collections.abc import Sequence

from labelmend.report.blocks import details, section, table
from labelmend.report.contents import Contents, Round, shown_rounds
from labelmend.report.drawings import histogram, line_plot
from labelmend.report.html import Html, element, together


def rounds(contents: Contents) -> Html:
    meaning = "What happened from round to round: whether the votes grew sure and the labels came to rest."
    return section(
        "rounds",
        "Round by round",
        meaning,
        _certainty(shown_rounds(contents.rounds)),
        _curves(contents.rounds),
        details("All rounds in numbers", _round_table(contents.rounds)),
    )


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
            line_plot(changes, f"Label changes per round: {_ends(changes, '{:,.0f}')}"),
        )
    ]
    if similar:
        plot = line_plot(similar, f"Graph similarity per round: {_ends(similar, '{:.3f}')}", from_zero=False)
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
    return table("The rounds in numbers", head, body)
