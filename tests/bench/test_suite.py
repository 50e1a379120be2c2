from argparse import Namespace
from dataclasses import replace
from functools import partial

import pytest

from bench import suite, trial
from bench.record import Trial
from bench.trial import Case
from labelmend.errors import ConfigError

CASES = {
    f"{n:,} rows": Case(f"{n:,} rows", "clusters", {"n_rows": n}) for n in (10, 20, 100, 200, 1000, 10_000, 20_000)
}
DRAWN, FIXED = Case("drawn", "clusters", {}), Case("fixed", "human", {}, seeded=False)


def sized(n, seconds, method="labelmend", seed=0, **figures):
    return Trial(f"{n:,} rows", method, {"seconds": seconds, **figures}, seed=seed)


@pytest.fixture
def asked(monkeypatch):
    """Stands in for the measurement and notes what was asked for, in order."""
    found = []

    def measure(case, method, seed):
        found.append((case.name, method, seed))
        return {"label_accuracy": 0.9 + 0.01 * seed, "seconds": 1.0, "noise_rate": None}

    monkeypatch.setattr(trial, "measure", measure)
    monkeypatch.setattr(trial, "measure_alone", measure)
    monkeypatch.setattr(suite, "prepare", lambda method: None)
    return found


def run(cases, methods, n_seeds, alone=False, say=lambda text: None):
    options = Namespace(data=None, quick=False, methods=methods)
    return suite.measure(lambda data, quick: cases, alone, suite.nothing, options, n_seeds, say).trials


def test_methods_take_turns_and_a_sure_answer_is_asked_for_once(asked):
    run([DRAWN, FIXED], ["labelmend", "k-NN vote"], 2)
    assert asked == [
        ("drawn", "labelmend", 0),
        ("drawn", "k-NN vote", 0),
        ("fixed", "labelmend", 0),
        ("fixed", "k-NN vote", 0),
        ("drawn", "labelmend", 1),
        ("drawn", "k-NN vote", 1),
        ("fixed", "labelmend", 1),
    ]


def test_time_is_always_measured_again(asked):
    run([FIXED], ["k-NN vote"], 3, alone=True)
    assert [seed for _, _, seed in asked] == [0, 1, 2]


def test_every_trial_is_told(asked):
    said = []
    run([DRAWN], ["labelmend"], 1, say=said.append)
    assert said == ["drawn  labelmend  seed 0  0.9000 of the labels right  1.0 s"]


def test_a_failed_process_is_noted_and_the_others_go_on(monkeypatch, asked):
    working = trial.measure_alone

    def measure(case, method, seed):
        if method == "cleanlab":
            raise trial.TrialFailedError("MemoryError")
        return working(case, method, seed)

    monkeypatch.setattr(trial, "measure_alone", measure)
    found = run([DRAWN], ["cleanlab", "labelmend"], 1, alone=True)
    assert [(one.method, one.note) for one in found] == [("cleanlab", "failed: MemoryError"), ("labelmend", None)]


def test_growth_is_the_slope_on_logarithms():
    sizes = (100, 1000, 10_000, 20_000)
    records = [sized(n, 2.0 * n**1.5, used_bytes=7.0 * n) for n in reversed(sizes)]
    growth = suite.exponents(records, CASES)["growth"]["labelmend"]
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
    growth = suite.exponents(records, CASES)["growth"]["labelmend"]
    assert growth["seconds_exponent_of_largest_three"] == pytest.approx(1.0)
    assert growth["seconds_exponent"] == pytest.approx(1.3)


def test_growth_is_not_defined_without_two_sizes():
    failed = replace(sized(200, 0.0), figures={}, note="failed: out of memory")
    growth = suite.exponents([sized(100, 1.0), failed], CASES)["growth"]["labelmend"]
    assert set(growth.values()) == {None}


def test_ratios_compare_within_a_repetition():
    records = [
        sized(10, 6.0, seed=0),
        sized(10, 2.0, "cleanlab", seed=0),
        sized(10, 5.0, seed=1),
        sized(10, 4.0, "cleanlab", seed=1),
        sized(20, 4.0, seed=1),
    ]
    suite.add_ratios(records, CASES)
    assert [r.figures.get("times_cleanlab") for r in records] == [3.0, 1.0, 1.25, 1.0, None]


def test_sizes_are_those_of_the_specification():
    growth = suite.growth_cases(None, False)
    assert [case.arguments["n_rows"] for case in growth] == [10_000, 20_000, 50_000, 100_000, 200_000]
    assert {(case.arguments["n_columns"], case.arguments["n_classes"]) for case in growth} == {(128, 10)}
    (classes,) = suite.classes_cases(None, False)
    assert (classes.arguments["n_rows"], classes.arguments["n_classes"]) == (20_000, 1_000)
    assert [case.name for case in suite.digits_cases(None, False)] == [
        "random 20 %",
        "confusing 20 %",
        "both, 20 % each",
        "patch 20 %",
        "clean",
    ]
    assert suite.digits_cases(None, False)[0].arguments["n_rows"] is None


def test_human_cases_cover_every_set_in_the_folder(human_folder):
    cases = suite.human_cases(human_folder, False)
    assert [case.name for case in cases] == ["aggregate", "random1", "worst", "zebra", "clean"]
    assert {case.neighbours for case in cases} == {50}
    assert [case.name for case in suite.human_cases(human_folder, False, only="random1")] == ["random1"]


@pytest.mark.parametrize("cases", [suite.human_cases, partial(suite.human_cases, only="random1")])
def test_human_cases_need_a_folder(cases):
    with pytest.raises(ConfigError, match="needs --data DIR"):
        cases(None, False)
