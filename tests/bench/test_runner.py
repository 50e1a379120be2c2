import json
from pathlib import Path

import pytest

from bench import runner, suite, trial
from bench.suite import Benchmark, Options, Record
from bench.trial import Case

DRAWN, FIXED = Case("drawn", "clusters", {}), Case("fixed", "human", {}, seeded=False)


@pytest.fixture
def trials(monkeypatch):
    """Stands in for the measurement and notes what was asked for, in order."""
    asked = []

    def measure(case, method, seed):
        asked.append((case.name, method, seed))
        return {"label_accuracy": 0.9 + 0.01 * seed, "seconds": 1.0, "noise_rate": None}

    monkeypatch.setattr(trial, "measure", measure)
    monkeypatch.setattr(trial, "measure_alone", measure)
    monkeypatch.setattr(runner, "prepare", lambda method: None)
    return asked


def use(monkeypatch, *cases, alone=False):
    monkeypatch.setitem(suite.BENCHMARKS, "toy", Benchmark("a toy", lambda options: list(cases), 1, alone))


def test_methods_take_turns_and_a_sure_answer_is_asked_for_once(monkeypatch, trials):
    use(monkeypatch, DRAWN, FIXED)
    runner.run_benchmark("toy", Options(), 2, ["labelmend", "k-NN vote"], lambda text: None)
    assert trials == [
        ("drawn", "labelmend", 0),
        ("drawn", "k-NN vote", 0),
        ("fixed", "labelmend", 0),
        ("fixed", "k-NN vote", 0),
        ("drawn", "labelmend", 1),
        ("drawn", "k-NN vote", 1),
        ("fixed", "labelmend", 1),
    ]


def test_time_is_always_measured_again(monkeypatch, trials):
    use(monkeypatch, FIXED, alone=True)
    runner.run_benchmark("toy", Options(), 3, ["k-NN vote"], lambda text: None)
    assert [seed for _, _, seed in trials] == [0, 1, 2]


def test_the_record_holds_machine_versions_n_and_spread(monkeypatch, trials):
    use(monkeypatch, DRAWN)
    said = []
    record = runner.run_benchmark("toy", Options(Path("secret"), True), 3, ["labelmend"], said.append)
    (row,) = record["rows"]
    accuracy = row["figures"]["label_accuracy"]
    assert (accuracy["n"], accuracy["values"]) == (3, [0.9, 0.91, 0.92])
    assert (accuracy["mean"], accuracy["spread"]) == pytest.approx((0.91, 0.01))
    assert "noise_rate" not in row["figures"]
    assert record["command"] == "python -m bench toy --data DIR --seeds 3 --quick"
    assert "secret" not in json.dumps(record)
    assert record["machine"]["cpu"]
    assert record["machine"]["cores"] >= 1
    assert {"python", "labelmend", "torch", "numpy", "cleanlab"} <= set(record["versions"])
    assert said[0] == "drawn  labelmend  seed 0  0.9000 of the labels right  1.0 s"


def test_a_failed_process_is_noted_and_the_others_go_on(monkeypatch, trials):
    use(monkeypatch, DRAWN, alone=True)
    working = trial.measure_alone

    def measure(case, method, seed):
        if method == "cleanlab":
            raise trial.TrialFailedError("MemoryError")
        return working(case, method, seed)

    monkeypatch.setattr(trial, "measure_alone", measure)
    record = runner.run_benchmark("toy", Options(), 1, ["cleanlab", "labelmend"], lambda text: None)
    assert [(row["method"], row["note"]) for row in record["rows"]] == [
        ("cleanlab", "failed: MemoryError"),
        ("labelmend", None),
    ]


def test_undefined_values_do_not_count():
    assert runner.spread([None, 0.5]) == {"n": 1, "mean": 0.5, "median": 0.5, "spread": None, "values": [0.5]}
    assert runner.spread([None])["n"] == 0


def test_rows_keep_the_order_of_the_trials():
    records = [
        Record(DRAWN, "b", 0, {"f1": 1.0}),
        Record(DRAWN, "a", 0, {"f1": 1.0}),
        Record(DRAWN, "b", 1, {"f1": 0.0}),
    ]
    rows = runner.summarise(records)
    assert [(row["method"], row["figures"]["f1"]["mean"]) for row in rows] == [("b", 0.5), ("a", 1.0)]


def test_an_absent_library_has_no_version(monkeypatch):
    monkeypatch.setattr(runner, "LIBRARIES", ("numpy", "surely-not-installed"))
    assert runner.versions()["surely-not-installed"] is None
    assert runner.versions()["numpy"]


def test_the_name_of_the_processor_is_read_where_the_system_tells(tmp_path):
    info = tmp_path / "cpuinfo"
    info.write_text("processor : 0\nmodel name\t: A Fast One @ 3 GHz\n")
    assert runner.cpu_model(info) == "A Fast One @ 3 GHz"
    assert runner.cpu_model(tmp_path / "absent")


def test_a_json_file_is_replaced_whole_or_not_at_all(tmp_path):
    path = tmp_path / "new" / "result.json"
    runner.write_json(path, {"a": 1})
    with pytest.raises(ValueError, match="Out of range float values"):
        runner.write_json(path, {"a": float("nan")})
    assert json.loads(path.read_text(encoding="utf-8")) == {"a": 1}
    assert [entry.name for entry in path.parent.iterdir()] == ["result.json"]
