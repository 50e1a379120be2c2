import json

import pytest

from bench import record
from bench.record import Trial


def test_the_record_holds_machine_versions_n_and_spread():
    trials = [Trial("one", "labelmend", {"label_accuracy": value, "noise_rate": None}) for value in (0.9, 0.91, 0.92)]
    found = record.whole_record("toy", "a toy", "python -m bench toy", True, {"notes": []}, trials)
    (row,) = found["rows"]
    accuracy = row["figures"]["label_accuracy"]
    assert (accuracy["n"], accuracy["values"]) == (3, [0.9, 0.91, 0.92])
    assert (accuracy["mean"], accuracy["spread"]) == pytest.approx((0.91, 0.01))
    assert "noise_rate" not in row["figures"]
    assert found["machine"]["cpu"]
    assert found["machine"]["cores"] >= 1
    assert {"python", "labelmend", "torch", "numpy", "cleanlab"} <= set(found["versions"])


def test_undefined_values_do_not_count():
    assert record.spread([None, 0.5]) == {"n": 1, "mean": 0.5, "median": 0.5, "spread": None, "values": [0.5]}
    assert record.spread([None])["n"] == 0


def test_rows_keep_the_order_of_the_trials():
    trials = [Trial("one", "b", {"f1": 1.0}), Trial("one", "a", {"f1": 1.0}), Trial("one", "b", {"f1": 0.0})]
    rows = record.summarise(trials)
    assert [(row["method"], row["figures"]["f1"]["mean"]) for row in rows] == [("b", 0.5), ("a", 1.0)]


def test_an_absent_library_has_no_version(monkeypatch):
    monkeypatch.setattr(record, "LIBRARIES", ("numpy", "surely-not-installed"))
    assert record.versions()["surely-not-installed"] is None
    assert record.versions()["numpy"]


def test_the_name_of_the_processor_is_read_where_the_system_tells(tmp_path):
    info = tmp_path / "cpuinfo"
    info.write_text("processor : 0\nmodel name\t: A Fast One @ 3 GHz\n")
    assert record.cpu_model(info) == "A Fast One @ 3 GHz"
    assert record.cpu_model(tmp_path / "absent")


def test_a_json_file_is_replaced_whole_or_not_at_all(tmp_path):
    path = tmp_path / "new" / "result.json"
    record.write_json(path, {"a": 1})
    with pytest.raises(ValueError, match="Out of range float values"):
        record.write_json(path, {"a": float("nan")})
    assert json.loads(path.read_text(encoding="utf-8")) == {"a": 1}
    assert [entry.name for entry in path.parent.iterdir()] == ["result.json"]
