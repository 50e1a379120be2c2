"""The map: points as SVG that can be seen without scripts, and data for the script that tells about each point."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelmend.report.blocks import section
from labelmend.report.contents import STATUSES, Contents, MapContents
from labelmend.report.drawings import scatter
from labelmend.report.html import Html, data_uri, element, embed_json, together
from labelmend.report.wording import class_name, shortened

NO_MAP = "This run has no map: it was made by a version that drew none, or the map could not be drawn (see the notes)."
MEANING = (
    "Samples that look alike to the classifier of this run lie near each other. A label that is wrong often sits among "
    "samples of another class. Only nearness means something, not directions or distances between groups."
)


def map_section(contents: Contents) -> Html:
    title = "Map of the samples"
    if contents.map is None:
        return section("map", title, "", element("p", NO_MAP))
    beside = element("div", _controls(), _words(contents.map, bool(contents.unreadable)), class_="beside")
    return section("map", title, MEANING, element("div", _figure(contents.map), beside, class_="map"))


def map_data(contents: Contents) -> Html | None:
    """What the script needs, as an element that nothing executes."""
    if contents.map is None:
        return None
    data = contents.map
    facts: dict[str, Any] = {
        "classes": [shortened(class_name(name)) for name in contents.classes],
        "statuses": list(STATUSES),
        "ids": [shortened(name) for name in data.ids],
        "given": data.given.tolist(),
        "corrected": data.corrected.tolist(),
        "status": data.status.tolist(),
        "confidence": np.round(100 * data.confidence).astype(int).tolist(),
        "rows": list(data.rows),
    }
    if data.atlas is not None:
        facts |= {"side": data.atlas.side, "columns": data.atlas.columns, "cells": list(data.atlas.cells)}
    return element("script", embed_json(facts), type="application/json", id="map-data")


def _figure(data: MapContents) -> Html:
    groups = []
    for code, name in enumerate(STATUSES):
        here = data.status == code
        if here.any():
            groups.append((f"status-{name}", list(zip(data.x[here].tolist(), data.y[here].tolist(), strict=True))))
    drawing = scatter(groups, "Map of the samples; the table below says how many of each kind are on it")
    sheet = data.atlas and element("img", src=data_uri(data.atlas.sheet), alt="", id="sheet", hidden=True)
    told = element(
        "div",
        element("canvas", id="thumbnail", role="img", aria_label="the sample", hidden=True),
        element("div", id="told"),
        id="card",
        role="status",
        hidden=True,
    )
    return element("div", drawing, sheet, told, id="plane")


def _controls() -> Html:
    """Only of use with the script, which shows them."""
    choices = [
        element("label", element("input", type="radio", name="colour", value=value, checked=value == "status"), name)
        for value, name in (("status", "what became of it"), ("given", "given label"), ("corrected", "corrected label"))
    ]
    chosen = element("label", "only class ", element("select", element("option", "all", value="-1"), id="only"))
    return element(
        "div",
        element("fieldset", element("legend", "Colour"), *choices),
        chosen,
        element("ul", id="legend", aria_label="Colours"),
        id="map-controls",
        hidden=True,
    )


def _words(data: MapContents, some_unreadable: bool) -> Html:
    counts = np.bincount(data.status, minlength=len(STATUSES))
    kinds = [
        element("li", element("span", class_=f"dot dot-{name}"), f" {count:,} {name}")
        for name, count in zip(STATUSES, counts.tolist(), strict=True)
        if count
    ]
    n = len(data.ids)
    if n == data.n_samples:
        said = f"All {n:,} samples{' that could be read' if some_unreadable else ''}."
    else:
        said = (
            f"{n:,} of {data.n_samples:,} samples, drawn by lot from every class; those that were corrected or are "
            "doubtful have a larger share here than in the data, so that they can be seen."
        )
    pictured = sum(cell >= 0 for cell in data.atlas.cells) if data.atlas is not None else n
    if pictured < n:
        said += f" {pictured:,} of them have a picture here."
    keys = element("span", " Point at a sample, or walk through them with the arrow keys.", id="map-keys", hidden=True)
    return together(
        element("ul", *kinds, class_="key", aria_label="Points on the map"),
        element("p", said, keys, class_="small quiet"),
    )
