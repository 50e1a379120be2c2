import dataclasses
import xml.etree.ElementTree as ElementTree

import pytest
from PIL import Image

from bench.paper import charts, ensemble
from bench.paper.certainty import histogram_sheet, shown_epochs
from bench.paper.drawing import COLOURS, Sheet
from bench.paper.experiment import Cell, Measured, Result
from bench.paper.maps import map_sheet

SVG = "{http://www.w3.org/2000/svg}"


def colour_at(path, x, y):
    with Image.open(path) as image:
        return "#{:02x}{:02x}{:02x}".format(*image.convert("RGB").getpixel((2 * x, 2 * y)))


def near(one, other):
    return all(abs(int(one[i : i + 2], 16) - int(other[i : i + 2], 16)) < 12 for i in (1, 3, 5))


def test_svg_and_png_show_the_same_shapes(tmp_path):
    sheet = Sheet(100, 60)
    sheet.box(10, 10, 30, 20, COLOURS[0])
    sheet.dot(70, 30, 8, COLOURS[1])
    sheet.line([(5, 50), (95, 50)], COLOURS[2], 4)
    sheet.text(50, 45, "a < b & c", "middle")
    sheet.save(tmp_path / "deep" / "x", "what it is")
    tree = ElementTree.parse(tmp_path / "deep" / "x.svg").getroot()
    assert [child.tag.removeprefix(SVG) for child in tree] == ["title", "rect", "rect", "circle", "polyline", "text"]
    assert tree.find(f"{SVG}title").text == "what it is"
    assert tree.find(f"{SVG}text").text == "a < b & c"
    png = tmp_path / "deep" / "x.png"
    with Image.open(png) as image:
        assert image.size == (200, 120)
    for x, y, colour in ((25, 20, COLOURS[0]), (70, 30, COLOURS[1]), (30, 50, COLOURS[2]), (90, 5, "#ffffff")):
        assert near(colour_at(png, x, y), colour)


def test_values_stand_at_their_height():
    panel = charts.Panel(Sheet(500, 300), 0, 0, "title", 4, 0, 100)
    low, high = panel.at(0, 0), panel.at(3, 100)
    assert low[1] == charts.HEIGHT - charts.BOTTOM
    assert high[1] == charts.TOP
    assert low[0] < high[0] < charts.WIDTH
    assert panel.at(1, 50)[1] == pytest.approx((low[1] + high[1]) / 2)


def result(row, column, seed, last, curve=()):
    cell = Cell(row, column, "digits", seed, 3, {})
    machine = {"cpu": "a CPU", "cores": 2, "threads": 2, "gpu": None}
    return Result("x", cell, Measured({"test_last": last}, {"test": list(curve)}), machine, {}, "2025-01-01")


def test_a_line_has_the_means_and_bars_of_their_spread(tmp_path):
    found = [result("M = 2", "one", 0, 0.5), result("M = 2", "one", 1, 0.7), result("M = 3", "one", 0, 0.8)]
    link = charts.draw_by_row("branches", "M", "M = ", found, tmp_path / "images")
    assert link == "![branches: digits, 3 epochs](images/paper-branches-digits-3-epochs.svg)"
    tree = ElementTree.parse(tmp_path / "images" / "paper-branches-digits-3-epochs.svg").getroot()
    dots = [float(dot.get("cy")) for dot in tree.findall(f"{SVG}circle")]
    lines = [line.get("points") for line in tree.findall(f"{SVG}polyline") if line.get("stroke") == COLOURS[0]]
    assert len(dots) == 2
    assert dots[0] > dots[1]  # 60 % is below 80 %
    assert len(lines) == 2  # the curve, and the spread of the one with two seeds
    words = [text.text for text in tree.findall(f"{SVG}text")]
    assert {"2", "3", "M", "one", "test accuracy, %"} <= set(words)


def test_drawings_have_the_order_of_the_table_whatever_was_finished_first(tmp_path):
    rows = ("B = 7", "B = 256", "B = 16", "B = 2", "B = 128")  # B = 7 is of another version
    found = [result(row, "human, worst", 0, 0.5) for row in rows] + [result("B = 1", "symmetric 50 %", 0, 0.5)]
    found = [dataclasses.replace(one, cell=dataclasses.replace(one.cell, data="features")) for one in found]
    ensemble.patches.show(found, tmp_path / "images")
    tree = ElementTree.parse(tmp_path / "images" / "paper-patches-features-3-epochs.svg").getroot()
    words = [text.text for text in tree.findall(f"{SVG}text")]
    assert [word for word in words if word in {"1", "2", "7", "16", "128", "256"}] == [
        "1",
        "2",
        "16",
        "128",
        "256",
        "7",
    ]
    assert words.index("symmetric 50 %") < words.index("human, worst")


def test_curves_are_means_over_the_seeds():
    found = [result("M = 2", "one", 0, 0.5, (0.2, 0.4)), result("M = 2", "one", 1, 0.5, (0.4, 0.8))]
    series = charts._mean_curve(found, "M = 2", "test")
    assert series.values == pytest.approx([30, 60])


def test_histograms_share_a_scale_and_stack():
    counts = {
        "1": {"right": [0] * 19 + [50], "wrong": [0] * 19 + [50]},
        "8": {"right": [0] * 19 + [25], "wrong": [0] * 20},
    }
    boxes = [v for kind, v in histogram_sheet(counts).shapes if kind == "box" and v[3] > 12]
    (x0, y0, _, tall, blue), (x1, y1, _, also, orange), (_, _, _, half, _) = boxes
    assert (blue, orange) == COLOURS[:2]
    assert x0 == x1
    assert y1 + also == pytest.approx(y0)  # one upon the other
    assert tall == pytest.approx(2 * half)


@pytest.mark.parametrize(("epochs", "shown"), [(200, [10, 100, 200]), (15, [1, 8, 15]), (2, [1, 2]), (1, [1])])
def test_epochs_of_the_histograms(epochs, shown):
    assert shown_epochs(epochs) == shown


def test_a_map_has_six_panels_with_a_dot_for_every_sample():
    points = {
        "clean": [[0, 0], [1, 1]],
        "noisy": [[0, 1], [1, 0]],
        "true": [0, 1],
        "given": [1, 1],
        "corrected": [0, 1],
    }
    dots = [v for kind, v in map_sheet(points).shapes if kind == "dot"]
    assert len(dots) == 12
    assert [colour for *_, colour in dots[:6]] == [COLOURS[c] for c in (0, 1, 1, 1, 0, 1)]
