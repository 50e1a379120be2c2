import re

import pytest

from labelmend.report.drawings import bar, few_of, histogram, line_plot, nice_ticks, parts, scatter


def numbers(svg, name):
    return [float(value) for value in re.findall(rf'{name}="([\d.-]+)"', svg)]


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0, 290, [0, 100, 200, 300]),
        (0, 3, [0, 1, 2, 3]),
        (0.9057, 0.9205, [0.905, 0.91, 0.915, 0.92, 0.925]),
        (0, 0, [0, 0.5, 1]),
        (5, 5, [4, 6, 8, 10]),
        (-2, 2, [-2, -1, 0, 1, 2]),
    ],
)
def test_ticks_are_round_and_reach_around_the_values(low, high, ticks):
    assert nice_ticks(low, high) == pytest.approx(ticks)


def test_few_of_many():
    assert few_of([1, 2, 3]) == [1, 2, 3]
    chosen = few_of(list(range(1, 73)))
    assert (len(chosen), chosen[0], chosen[-1]) == (8, 1, 72)


def test_a_histogram_has_a_bar_for_each_bin_as_high_as_its_count():
    heights = numbers(histogram([0, 5, 10], 20, "about"), "height")
    assert heights[0] == 0
    assert heights[2] == pytest.approx(2 * heights[1])
    assert 'aria-label="about"' in histogram([1], 1, "about")


def test_a_line_rises_where_values_do():
    svg = line_plot([(1, 0.0), (2, 10.0), (3, 5.0)], "about")
    heights = numbers(svg, "cy")
    assert heights[1] < heights[2] < heights[0]
    across = numbers(svg, "cx")
    assert across[1] - across[0] == pytest.approx(across[2] - across[1], abs=0.2)


def test_tick_labels_have_as_many_decimals_as_they_need():
    svg = line_plot([(1, 0.906), (2, 0.92)], "about", from_zero=False)
    texts = re.findall(r">([\d.]+)</text>", svg)
    assert texts[:4] == ["0.905", "0.910", "0.915", "0.920"]


def test_one_round_is_a_dot_and_a_hundred_are_a_curve():
    assert line_plot([(1, 3.0)], "about").count("<circle") == 1
    many = line_plot([(i, float(i)) for i in range(1, 101)], "about")
    assert many.count("<circle") == 0
    assert many.count(",") > 99


def test_parts_follow_one_another():
    svg = parts([("a", 0.25), ("b", 0.75)])
    assert numbers(svg, " x") == [0, 250]
    assert numbers(svg, " width") == [250, 750]


def test_a_bar_stays_within_its_line():
    assert numbers(bar(1.5), "width") == [100]
    assert numbers(bar(-1), "width") == [0]


def test_a_map_has_one_point_for_each_sample_inside_its_frame():
    svg = scatter([("a", [(0, 0), (1, 1)]), ("b", [(0.5, 0.25)])], "about")
    assert numbers(svg, "cx") == [12, 988, 500]
    assert numbers(svg, "cy") == [12, 988, 256]
    assert svg.index('class="a"') < svg.index('class="b"')
