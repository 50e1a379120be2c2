import json

import numpy as np
import pytest

from labelmend.cli.demo import demo, measured_lines
from labelmend.cli.demo_data import clothes, clothes_with_errors
from labelmend.errors import RunFolderError

N = 240


def test_json_holds_what_was_measured_and_the_folder_the_labels(tmp_path, capsys):
    out = tmp_path / "run"
    assert demo(out, seed=0, as_json=True, n_rows=N) == 0
    printed = json.loads(capsys.readouterr().out)
    data, names = clothes_with_errors(0, N), clothes().class_names
    rows = [line.split(",") for line in (out / "labels.csv").read_text(encoding="utf-8").splitlines()[1:]]
    given, corrected = np.array([row[1] for row in rows]), np.array([row[2] for row in rows])
    assert (given == names[data.given_labels]).all()
    assert printed["given_accuracy"] == pytest.approx(0.8)
    assert printed["label_accuracy"] == pytest.approx((corrected == names[data.true_labels]).mean())
    assert (printed["rows"], printed["out"]) == (N, str(out))


def test_the_text_tells_before_and_after_and_the_summary(capsys):
    assert demo(None, seed=1, as_json=False, n_rows=N) == 0
    printed = capsys.readouterr()
    assert "80.0%  before" in printed.out
    assert "after" in printed.out
    assert "of 48 (recall" in printed.out
    assert "estimated wrong labels" in printed.out
    assert "round 1/" in printed.err


def test_an_existing_folder_is_refused_before_any_work(tmp_path, capsys):
    with pytest.raises(RunFolderError, match="must not exist"):
        demo(tmp_path, seed=0, as_json=False)
    assert capsys.readouterr().out == ""


def test_the_measurement_in_words():
    figures = {
        "given_accuracy": 0.8,
        "label_accuracy": 0.905,
        "recall": 0.6,
        "precision": 0.9,
        "wrongly_changed": 0.01,
        "true_noise_rate": 0.2,
        "f1": 0.72,
    }
    lines = measured_lines(figures, 1000)
    assert lines[1].endswith("80.0%  before")
    assert lines[2].endswith("90.5%  after")
    assert lines[3].endswith("120  of 200 (recall 60.0%, precision 90.0%)")
    assert lines[4].endswith("10  of 800")
    assert "precision undefined" in measured_lines({**figures, "precision": None}, 1000)[3]
