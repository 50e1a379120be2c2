"""Tables that a screen reader can walk through, and that scroll in themselves where they are wider than a phone."""

from __future__ import annotations

from collections.abc import Sequence

from labelmend.page.html import Html, element


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
