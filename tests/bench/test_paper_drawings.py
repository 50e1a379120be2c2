import dataclasses
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import pytest
from matplotlib.colors import to_hex

from bench.paper import charts, ensemble
from bench.paper.certainty import BINS, histograms_figure, shown_epochs
from bench.paper.experiment import Cell, Measured, Result
from bench.paper.maps import maps_figure
from bench.paper.tables import grouped

SVG = "{http://www.w3.org/2000/svg}"


def result(row, column, seed, last, curve=()):
    cell = Cell(row, column, "digits", seed, 3, {})
    machine = {"cpu": "a CPU", "cores": 2, "threads": 2, "gpu": None}
    return Result("x", cell, Measured({"test_last": last}, {"test": list(curve)}), machine, {}, "2025-01-01")


def words_of(path):
    return [text.text for text in ElementTree.parse(path).getroot().iter(f"{SVG}text")]


def test_files_are_the_same_every_time_and_can_be_read(tmp_path):
    panel = charts.Panel("a < b & c", "rows", [charts.Line("one", [0, 2], [1, 3])], ["x", "y", "z"])
    for folder in ("first", "second"):
        link = charts.save_and_link(charts.panels_figure([panel]), tmp_path / folder / "images", "x", "what it is")
    assert link == "![what it is](images/paper-x.svg)"
    first, second = (tmp_path / folder / "images" / "paper-x.svg" for folder in ("first", "second"))
    assert first.read_bytes() == second.read_bytes()
    assert {"a < b & c", "x", "y", "z", "one", "rows"} <= set(words_of(first))


def test_a_line_has_the_means_and_bars_of_their_spread(tmp_path, monkeypatch):
    drawn, whole = [], charts.panels_figure
    monkeypatch.setattr(charts, "panels_figure", lambda panels: drawn.append(whole(panels)) or drawn[-1])
    found = [result("M = 2", "one", 0, 0.5), result("M = 2", "one", 1, 0.7), result("M = 3", "one", 0, 0.8)]
    link = charts.draw_by_row("branches", "M", "M = ", found, tmp_path / "images")
    assert link == "![branches: digits, 3 epochs](images/paper-branches-digits-3-epochs.svg)"
    (panel,) = drawn[0].axes  # nobody knows which labels are right
    (line,) = panel.containers
    assert line[0].get_ydata() == pytest.approx([60, 80])
    (spread, none) = line[2][0].get_segments()
    assert spread[1][1] - spread[0][1] == pytest.approx(2 * 14.142, abs=0.01)
    assert none[1][1] == none[0][1]
    assert [label.get_text() for label in panel.get_xticklabels()] == ["2", "3"]
    assert (panel.get_title(), panel.get_xlabel()) == ("test accuracy, %", "M")


def test_a_setting_without_results_is_left_out():
    found = [result("a", "one", 0, 0.5), result("b", "two", 0, 0.6), result("c", "one", 0, 0.7)]
    (group,) = grouped(found)
    one, two = charts._lines(group, ["a", "b", "c"], ["one", "two"], "test_last")
    assert (one.places, one.values) == ([0, 2], [50, 70])
    assert (two.places, two.values) == ([1], [60])


def test_drawings_have_the_order_of_the_table_whatever_was_finished_first(tmp_path):
    rows = ("B = 7", "B = 256", "B = 16", "B = 2", "B = 128")  # B = 7 is of another version
    found = [result(row, "human, worst", 0, 0.5) for row in rows] + [result("B = 1", "symmetric 50 %", 0, 0.5)]
    found = [dataclasses.replace(one, cell=dataclasses.replace(one.cell, data="features")) for one in found]
    ensemble.patches.show(found, tmp_path / "images")
    words = words_of(tmp_path / "images" / "paper-patches-features-3-epochs.svg")
    first, last = words.index("1"), words.index("7")
    assert words[first : last + 1] == ["1", "2", "16", "128", "256", "7"]
    assert words.index("symmetric 50 %") < words.index("human, worst")


def test_curves_are_means_over_the_seeds_counted_from_the_first_epoch():
    found = [result("M = 2", "one", 0, 0.5, (0.2, 0.4)), result("M = 2", "one", 1, 0.5, (0.4, 0.8))]
    (group,) = charts.by_column(found)
    lines = charts._mean_curves(group, ["M = 2"], "test")
    (drawn,) = charts.panels_figure([charts.Panel("test", "epoch", lines)]).axes[0].containers
    assert drawn[0].get_ydata() == pytest.approx([30, 60])
    assert list(drawn[0].get_xdata()) == [1, 2]


def test_histograms_share_a_scale_and_stack():
    counts = {
        "1": {"right": [0] * 19 + [50], "wrong": [0] * 19 + [40]},
        "8": {"right": [0] * 19 + [25], "wrong": [0] * 20},
    }
    first, second = histograms_figure(counts).axes
    right, wrong = first.patches[BINS - 1], first.patches[2 * BINS - 1]
    assert (right.get_height(), wrong.get_y(), wrong.get_height()) == (50, 50, 40)
    assert [to_hex(bar.get_facecolor()) for bar in (right, wrong)] == list(charts.COLOURS[:2])
    assert first.get_ylim() == second.get_ylim()


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
    panels = maps_figure(points).axes
    assert len(panels) == 6
    assert panels[5].collections[0].get_offsets().tolist() == points["noisy"]
    colours = [to_hex(colour) for panel in panels[:3] for colour in panel.collections[0].get_facecolor()]
    assert colours == [charts.COLOURS[c] for c in (0, 1, 1, 1, 0, 1)]


def test_matplotlib_is_loaded_only_to_draw():
    code = "import sys, bench.paper.ensemble, bench.paper.maps; assert 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
