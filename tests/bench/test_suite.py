from dataclasses import replace

import pytest

from bench import suite
from bench.suite import Options, Record
from bench.trial import Case
from labelmend.errors import ConfigError


def sized(n, seconds, method="labelmend", seed=0, **figures):
    return Record(Case(f"{n:,} rows", "clusters", {"n_rows": n}), method, seed, {"seconds": seconds, **figures})


def test_growth_is_the_slope_on_logarithms():
    sizes = (100, 1000, 10_000, 20_000)
    records = [sized(n, 2.0 * n**1.5, used_bytes=7.0 * n) for n in reversed(sizes)]
    growth = suite.exponents(records)["growth"]["labelmend"]
    assert growth == pytest.approx(
        {
            "seconds_exponent": 1.5,
            "seconds_exponent_of_largest_three": 1.5,
            "used_bytes_exponent": 1.0,
            "used_bytes_exponent_of_largest_three": 1.0,
        }
    )


def test_the_three_largest_sizes_are_looked_at_by_themselves():
    records = [sized(n, 1.0 if n == 10 else float(n)) for n in (10, 100, 1000, 10_000)]
    growth = suite.exponents(records)["growth"]["labelmend"]
    assert growth["seconds_exponent_of_largest_three"] == pytest.approx(1.0)
    assert growth["seconds_exponent"] == pytest.approx(1.3)


def test_growth_is_not_defined_without_two_sizes():
    failed = replace(sized(200, 0.0), figures={}, note="failed: out of memory")
    growth = suite.exponents([sized(100, 1.0), failed])["growth"]["labelmend"]
    assert set(growth.values()) == {None}


def test_ratios_compare_within_a_repetition():
    records = [
        sized(10, 6.0, seed=0),
        sized(10, 2.0, "cleanlab", seed=0),
        sized(10, 5.0, seed=1),
        sized(10, 4.0, "cleanlab", seed=1),
        sized(20, 4.0, seed=1),
    ]
    suite.add_ratios(records)
    assert [r.figures.get("times_cleanlab") for r in records] == [3.0, 1.0, 1.25, 1.0, None]


def test_sizes_are_those_of_the_specification():
    growth = suite.growth_cases(Options())
    assert [case.arguments["n_rows"] for case in growth] == [10_000, 20_000, 50_000, 100_000, 200_000]
    assert {(case.arguments["n_columns"], case.arguments["n_classes"]) for case in growth} == {(128, 10)}
    (classes,) = suite.classes_cases(Options())
    assert (classes.arguments["n_rows"], classes.arguments["n_classes"]) == (20_000, 1_000)
    assert [case.name for case in suite.digits_cases(Options())] == [
        "random 20 %",
        "confusing 20 %",
        "both, 20 % each",
        "patch 20 %",
        "clean",
    ]
    assert suite.digits_cases(Options())[0].arguments["n_rows"] is None


def test_human_cases_cover_every_set_in_the_folder(human_folder):
    cases = suite.human_cases(Options(human_folder))
    assert [case.name for case in cases] == ["aggregate", "random1", "worst", "zebra", "clean"]
    assert {case.neighbours for case in cases} == {50}
    assert [case.name for case in suite.speed_cases(Options(human_folder))] == ["random1"]


@pytest.mark.parametrize("cases", [suite.human_cases, suite.speed_cases])
def test_human_cases_need_a_folder(cases):
    with pytest.raises(ConfigError, match="needs --data DIR"):
        cases(Options())
