"""Pieces that sections are made of: a heading with its line, tables, what can be unfolded.

Tables can be walked through by a screen reader, and scroll in themselves where they are wider than a phone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from labelmend.report.html import Html, element


def section(id: str, title: str, meaning: str, *inside: Any) -> Html:
    """A heading, one line that says what is to be seen, and what is to be seen."""
    head = element("h2", title, id=f"{id}-title")
    line = element("p", meaning, class_="meaning") if meaning else None
    return element("section", head, line, *inside, id=id, aria_labelledby=f"{id}-title")


def table(caption: str, head: Sequence[Html], body: Sequence[Html], class_: str | None = None) -> Html:
    inside = (
        element("caption", caption, class_="unseen"),
        element("thead", element("tr", *head)),
        element("tbody", *body),
    )
    return element(
        "div",
        element("table", *inside, class_=class_),
        class_="scroll",
        role="region",
        tabindex=0,
        aria_label=caption,
    )


def details(summary: str, inside: Html) -> Html:
    return element("details", element("summary", summary), inside)
