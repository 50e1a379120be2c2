import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from labelmend.cli import demo as command
from labelmend.cli.demo import Planted, clothes, count, demo, hard_lines, plant, truth_lines
from labelmend.cli.main import main
from labelmend.errors import RunFolderError

N = 240


def test_clothes_are_small_balanced_and_licensed():
    source = clothes()
    assert source.pictures.shape == (3000, 14, 14)
    assert source.pictures.dtype == np.uint8
    assert_array_equal(np.bincount(source.true_labels), [375] * 8)
    assert len(source.class_names) == 8
    folder = Path(command.__file__).parent
    assert (folder / "clothes.npz").stat().st_size < 700_000
    assert "2017 Zalando SE" in (folder / "clothes.LICENSE").read_text(encoding="utf-8")


def test_a_tenth_of_the_labels_is_wrong_at_random_and_a_twentieth_where_classes_overlap():
    source = clothes(200)
    assert source.features.shape == (200, 196)
    assert source.features.dtype == np.float32
    assert 0.9 < source.features.max() <= 1
    planted = plant(source, seed=0)
    assert (planted.random.sum(), planted.overlap.sum()) == (20, 10)
    assert not (planted.random & planted.overlap).any()
    assert_array_equal(planted.given != source.true_labels, planted.random | planted.overlap)


@pytest.mark.slow
def test_json_holds_what_was_measured_and_the_folder_the_labels(tmp_path, capsys):
    out = tmp_path / "run"
    demo(out, seed=0, as_json=True, n_rows=N)
    printed = json.loads(capsys.readouterr().out)
    source = clothes(N)
    names, planted = source.class_names, plant(source, 0)
    rows = [line.split(",") for line in (out / "labels.csv").read_text(encoding="utf-8").splitlines()[1:]]
    given, corrected = np.array([row[1] for row in rows]), np.array([row[2] for row in rows])
    assert (given == names[planted.given]).all()
    right = corrected == names[source.true_labels]
    assert printed["given_accuracy"] == pytest.approx(0.85)
    assert printed["label_accuracy"] == pytest.approx(right.mean())
    assert printed["random_corrected"] == (planted.random & right).sum()
    assert (printed["rows"], printed["out"]) == (N, str(out))


@pytest.mark.slow
def test_the_text_tells_before_and_after_the_summary_and_what_is_hard(capsys):
    demo(None, seed=1, as_json=False, n_rows=N)
    out, err = capsys.readouterr()
    for words in ("85.0%", "of 24", "of 12", "estimated wrong labels", "What is hard"):
        assert words in out
    assert "round 1/" in err


def test_an_existing_folder_is_refused_before_any_work(tmp_path, capsys):
    with pytest.raises(RunFolderError, match="must not exist"):
        demo(tmp_path, seed=0, as_json=False)
    assert capsys.readouterr().out == ""


def test_the_measurement_in_words():
    given = np.arange(20)
    planted = Planted(given, random=given < 4, overlap=(given >= 4) & (given < 6))
    right = ~np.isin(given, [3, 4, 5, 19])
    counts = count(planted, right, in_review=given == 3)
    assert counts == {
        "pictures": 20,
        "random_planted": 4,
        "random_corrected": 3,
        "overlap_planted": 2,
        "overlap_corrected": 0,
        "good_labels": 14,
        "good_labels_broken": 1,
        "still_wrong": 4,
        "still_wrong_in_review": 1,
    }
    shown = [line.split()[-3:] for line in truth_lines(counts)]
    assert [words[-1] for words in shown[:2]] == ["70.0%", "80.0%"]
    assert shown[2:] == [["3", "of", "4"], ["0", "of", "2"], ["1", "of", "14"]]
    hard = " ".join(hard_lines(counts))
    for words in ("2 planted", "2 are still wrong", "1 are marked for review", "3 went unnoticed"):
        assert words in hard


def test_the_command_passes_its_arguments_on(monkeypatch):
    calls = []
    monkeypatch.setattr(command, "demo", lambda *arguments: calls.append(arguments))
    assert main(["demo", "--seed", "4", "--json"]) == 0
    assert calls == [(None, 4, True)]
