"""Drawings as SVG: numbers in, a picture out. Colours and strokes are in report.css, by class names.

Knows nothing of runs. Everything drawn here stands in words or in a table beside it, so screen readers get one line
for each drawing, or none.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import numpy as np
from markupsafe import Markup

from labelmend.report.html import escape

T = TypeVar("T")
MAP_SIDE = 1000
WIDTH, HEIGHT = 340, 190  # of a plot with axes: at its real size on a phone
LEFT, RIGHT, TOP, BOTTOM = 46, 12, 12, 28
SMALL_WIDTH, SMALL_HEIGHT = 160, 84  # of one of several histograms


def element(name: str, /, *children: Any, **attributes: Any) -> Markup:
    """<name attributes>children</name>, escaped. In names of attributes _ stands for -, and class_ for class."""
    written = "".join(f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"' for key, value in attributes.items())
    return Markup(f"<{name}{written}>{''.join(map(escape, children))}</{name}>")


def bar(share: float) -> Markup:
    """A share of a line."""
    inside = element("rect", width=_short(100 * min(max(share, 0), 1)), height=10, class_="mark")
    return element("svg", inside, class_="bar", viewBox="0 0 100 10", preserveAspectRatio="none", aria_hidden="true")


def parts(sizes: Sequence[tuple[str, float]]) -> Markup:
    """One bar cut into parts: (class name, size)."""
    whole = sum(size for _, size in sizes) or 1
    shares = [(name, size / whole) for name, size in sizes]
    begins = np.cumsum([0.0, *(share for _, share in shares)])
    rects = [
        element("rect", x=_short(1000 * begin), width=_short(1000 * share), height=10, class_=name)
        for begin, (name, share) in zip(begins, shares, strict=False)
    ]
    return element("svg", *rects, class_="parts", viewBox="0 0 1000 10", preserveAspectRatio="none", aria_hidden="true")


def histogram(counts: Sequence[int], highest: int, about: str) -> Markup:
    """Bars over [0, 1]. `highest` is the count that reaches the top, shared by histograms that are compared."""
    step, floor = SMALL_WIDTH / max(len(counts), 1), SMALL_HEIGHT - 16
    heights = [(floor - 2) * count / max(highest, 1) for count in counts]
    bars = [
        element("rect", x=_short(i * step + 0.5), y=_short(floor - h), width=_short(step - 1), height=_short(h))
        for i, h in enumerate(heights)
    ]
    ends = [
        element("text", text, x=x, y=SMALL_HEIGHT - 2, text_anchor=anchor)
        for text, x, anchor in (("0", 0, "start"), ("1", SMALL_WIDTH, "end"))
    ]
    base = element("line", x1=0, y1=floor, x2=SMALL_WIDTH, y2=floor, class_="axis")
    return _svg(SMALL_WIDTH, SMALL_HEIGHT, about, element("g", *bars, class_="mark"), base, *ends)


def line_plot(points: Sequence[tuple[int, float]], about: str, from_zero: bool = True) -> Markup:
    """Values over whole numbers such as rounds, with a dot at each while there are few."""
    xs, ys = [x for x, _ in points], [y for _, y in points]
    ticks = nice_ticks(0.0 if from_zero else min(ys), max(ys))

    def at(x: float, y: float) -> tuple[float, float]:
        across = (x - xs[0]) / max(xs[-1] - xs[0], 1) if len(xs) > 1 else 0.5
        up = (y - ticks[0]) / (ticks[-1] - ticks[0])
        return LEFT + 6 + across * (WIDTH - LEFT - RIGHT - 12), HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM)

    decimals = max(0, -math.floor(math.log10(ticks[1] - ticks[0]) + 1e-9))
    grid = [_grid_line(at(xs[0], tick)[1], f"{tick:,.{decimals}f}") for tick in ticks]
    numbers = [
        element("text", x, x=_short(at(x, 0)[0]), y=HEIGHT - 8, text_anchor="middle") for x in few_of(sorted(set(xs)))
    ]
    places = [at(x, y) for x, y in points]
    path = " ".join(f"{_short(x)},{_short(y)}" for x, y in places)
    dots = [element("circle", cx=_short(x), cy=_short(y), r=3) for x, y in places] if len(places) <= 40 else []
    marks = (element("polyline", points=path, class_="curve"), element("g", *dots, class_="mark"))
    return _svg(WIDTH, HEIGHT, about, *grid, *numbers, *marks)


def scatter(groups: Iterable[tuple[str, Sequence[tuple[float, float]]]], about: str) -> Markup:
    """Points in a square from 0 to 1: (class name, positions) of each group, drawn in this order."""
    margin = 12
    span = MAP_SIDE - 2 * margin
    drawn = [
        element(
            "g",
            Markup(
                "".join(f'<circle cx="{margin + span * x:.0f}" cy="{margin + span * y:.0f}" r="4"/>' for x, y in at)
            ),
            class_=name,
        )
        for name, at in groups
    ]
    return _svg(MAP_SIDE, MAP_SIDE, about, *drawn)


def nice_ticks(low: float, high: float, most: int = 4) -> list[float]:
    """Round numbers, 1, 2 or 5 times a power of ten apart, from at most `low` to at least `high`."""
    span = (high - low) or max(abs(high), 1.0)
    if not np.isfinite(span):  # of a run before those were refused
        return [0.0, 1.0]
    exponent = np.floor(np.log10(span / most))
    step = next(s for s in (10.0**exponent * m for m in (1, 2, 5, 10, 20)) if span / s <= most)
    first, last = np.floor(low / step + 1e-9), np.ceil((low + span) / step - 1e-9)
    return [float(step * i) for i in np.arange(first, last + 1)]


def few_of(values: Sequence[T], most: int = 8) -> list[T]:
    """The first, the last and some between."""
    places = np.linspace(0, len(values) - 1, min(most, len(values))).round().astype(int)
    return [values[place] for place in np.unique(places)]


def _grid_line(y: float, text: str) -> Markup:
    line = element("line", x1=LEFT, y1=_short(y), x2=WIDTH - RIGHT, y2=_short(y), class_="axis")
    return line + element("text", text, x=LEFT - 6, y=_short(y + 4), text_anchor="end")


def _svg(width: float, height: float, about: str, *inside: Markup) -> Markup:
    return element("svg", *inside, viewBox=f"0 0 {width} {height}", role="img", aria_label=about)


def _short(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")
