"""A sheet of simple shapes that becomes an SVG, and a PNG where Pillow is installed. Knows no data.

The colours are inside the file, on white: it is shown by pages that know nothing of our style.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from markupsafe import Markup as Html

from labelmend.report.drawings import element

INK, PALE, WHITE = "#222222", "#d8d8d8", "#ffffff"
# Told apart by people who see few colours too; the first eight are those of Okabe and Ito, in another order.
COLOURS = (
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#6b6b6b", "#7a4f9a", "#8c2d04", "#a6a600",
)  # fmt: skip
SCALE, FINER = 2, 2  # pixels of the PNG per unit; drawn finer than that, so that edges are smooth
Anchor = Literal["start", "middle", "end"]
Point = tuple[float, float]


@dataclass
class Sheet:
    """Shapes in the order they are drawn; coordinates grow to the right and down."""

    width: float
    height: float
    shapes: list[tuple[str, tuple[Any, ...]]] = field(default_factory=list)

    def box(self, x: float, y: float, width: float, height: float, colour: str) -> None:
        self.shapes.append(("box", (x, y, width, height, colour)))

    def line(self, points: Sequence[Point], colour: str = INK, width: float = 1.0) -> None:
        self.shapes.append(("line", (list(points), colour, width)))

    def dot(self, x: float, y: float, radius: float, colour: str) -> None:
        self.shapes.append(("dot", (x, y, radius, colour)))

    def text(self, x: float, y: float, text: str, anchor: Anchor = "start", size: float = 12) -> None:
        self.shapes.append(("text", (x, y, text, anchor, size, INK)))

    def save(self, path: Path, about: str) -> None:
        """PATH.svg, and PATH.png where Pillow is installed."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_suffix(".svg").write_text(self.svg(about), encoding="utf-8")
        self._save_png(path.with_suffix(".png"))

    def svg(self, about: str) -> str:
        drawn = [getattr(self, f"_{kind}_svg")(*values) for kind, values in self.shapes]
        ground = element("rect", width=_short(self.width), height=_short(self.height), fill=WHITE)
        size = {"width": _short(self.width), "height": _short(self.height)}
        view = f"0 0 {size['width']} {size['height']}"
        inside = [element("title", about), ground, *drawn]
        return (
            element("svg", *inside, xmlns="http://www.w3.org/2000/svg", viewBox=view, font_family="sans-serif", **size)
            + "\n"
        )

    def _box_svg(self, x: float, y: float, width: float, height: float, colour: str) -> Html:
        place = {"x": _short(x), "y": _short(y), "width": _short(width), "height": _short(height)}
        return element("rect", **place, fill=colour)

    def _line_svg(self, points: Sequence[Point], colour: str, width: float) -> Html:
        path = " ".join(f"{_short(x)},{_short(y)}" for x, y in points)
        return element("polyline", points=path, fill="none", stroke=colour, stroke_width=_short(width))

    def _dot_svg(self, x: float, y: float, radius: float, colour: str) -> Html:
        return element("circle", cx=_short(x), cy=_short(y), r=_short(radius), fill=colour)

    def _text_svg(self, x: float, y: float, text: str, anchor: Anchor, size: float, colour: str) -> Html:
        place = {"x": _short(x), "y": _short(y), "font_size": _short(size)}
        return element("text", text, **place, text_anchor=anchor, fill=colour)

    def _save_png(self, path: Path) -> None:
        try:
            from PIL import Image, ImageDraw, ImageFont
        except ImportError:  # the SVG is the drawing
            return
        scale = SCALE * FINER
        image = Image.new("RGB", (round(scale * self.width), round(scale * self.height)), WHITE)
        pen = ImageDraw.Draw(image)
        for kind, values in self.shapes:
            if kind == "box":
                x, y, width, height, colour = values
                if width > 0 and height > 0:
                    pen.rectangle([scale * x, scale * y, scale * (x + width), scale * (y + height)], fill=colour)
            elif kind == "line":
                points, colour, width = values
                pen.line([(scale * x, scale * y) for x, y in points], colour, round(scale * width), "curve")
            elif kind == "dot":
                x, y, radius, colour = values
                ends = [scale * (x - radius), scale * (y - radius), scale * (x + radius), scale * (y + radius)]
                pen.ellipse(ends, fill=colour)
            else:
                x, y, text, anchor, size, colour = values
                side = {"start": "ls", "middle": "ms", "end": "rs"}[anchor]
                pen.text((scale * x, scale * y), text, colour, ImageFont.load_default(scale * size), side)
        image.reduce(FINER).quantize(64).save(path, optimize=True)


def _short(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")
