import json
import sys

import numpy as np
import pytest

import labelmend
from blobs import QUICK, blobs, plant
from blobs import as_options as options_of
from coloured import TinyBackbone, coloured, write_folders
from labelmend.cli import main as cli
from labelmend.cli.selftest import selftest_lines
from labelmend.config import as_arguments
from labelmend.diagnosis.planting import Planted
from labelmend.diagnosis.reliability import Interval
from labelmend.errors import ConfigError
from labelmend.inputs.backbones import load_backbone
from labelmend.self_test import comparison
from labelmend.self_test.run import _Trial, selftest

FAST = options_of(QUICK)


def clouds(n=150):
    features, true = blobs(n, spread=1.0)
    return features, plant(true, 0.05)[0]


@pytest.fixture(scope="module")
def tested():
    return selftest(*clouds(), kinds=("random", "mixed"), share=0.1, repeats=2, expert=QUICK)


def test_the_public_name_stays_the_function_once_its_module_is_loaded():
    assert labelmend.selftest is selftest
    assert labelmend.selftest is selftest


def scores_of(test):
    return {(score.kind, score.method): score for score in test.scores}


def test_every_method_is_scored_on_every_kind(tested):
    pytest.importorskip("cleanlab")
    methods = ("labelmend", "k-NN vote", "cleanlab")
    assert list(scores_of(tested)) == [(kind, method) for kind in ("random", "mixed") for method in methods]
    assert (tested.rows, tested.share, tested.repeats) == (150, 0.1, 2)
    assert 100 < tested.looks_clean < 150
    for score in tested.scores:
        assert score.planted == 2 * 15
        assert score.mended.value <= score.found.value
        assert score.found.low <= score.found.value <= score.found.high
    easy = scores_of(tested)["random", "labelmend"]
    assert easy.mended.value > 0.8
    assert easy.broken.value < 0.05


def test_the_result_is_that_of_a_plain_run_of_the_data_as_they_are(tested):
    features, given = clouds()
    plain = labelmend.correct(features, given, expert=QUICK)
    np.testing.assert_array_equal(tested.result.labels, plain.labels)
    np.testing.assert_array_equal(tested.result.given.codes, given)
    assert tested.looks_clean == plain.count("kept")


def test_found_mended_and_broken_are_counted_by_hand():
    given = np.array([0, 0, 0, 1, 1, 1])
    may_change = np.array([True, True, True, True, True, False])
    trial = _Trial(None, None, given, may_change, None)
    planted = Planted(np.array([1, 2, 0, 1, 1, 1]), np.array([0, 1]), np.array([0, 0]))
    # The first is mended, the second found but not mended; of three good labels watched one is broken.
    assert trial.count(planted, np.array([0, 1, 2, 1, 1, 0])) == (2, 2, 1, 3, 1)
    assert trial.count(planted, planted.labels) == (2, 0, 0, 3, 0)


def test_the_figures_are_ready_for_json_and_say_which_interval(tested):
    figures = json.loads(json.dumps(tested.summary()))
    assert figures["interval"] == "90 %, Student's t over repetitions"
    assert figures["scores"][0]["method"] == "labelmend"
    assert set(figures["scores"][0]["found"]) == {"value", "low", "high", "count"}


def test_one_repetition_has_wilsons_interval():
    test = selftest(*clouds(150), kinds=["random"], repeats=1, share=0.1, expert=QUICK)
    assert test.summary()["interval"] == "90 %, Wilson"
    found = test.scores[0].found
    assert found.count == 15
    assert found.low < found.value <= found.high


def test_trusted_and_missing_labels_are_left_alone_and_neighbours_do_without_the_missing(monkeypatch):
    features, given = clouds(90)
    labels = [None if row % 9 == 0 else int(label) for row, label in enumerate(given)]
    trusted = np.arange(90) % 9 == 1
    seen = []

    def watch(features, given, neighbours, seed):
        seen.append((len(features), given))
        return comparison.Corrected(given)

    monkeypatch.setitem(comparison.METHODS, "k-NN vote", watch)
    test = selftest(features, labels, kinds=["random"], repeats=1, trusted=trusted, expert=QUICK)
    assert seen[0][0] == 80
    assert (seen[0][1] >= 0).all()
    kept = np.delete(given, np.arange(0, 90, 9))
    assert not (seen[0][1] != kept)[np.delete(trusted, np.arange(0, 90, 9))].any()
    assert (seen[0][1] != kept).sum() == 4
    assert scores_of(test)["random", "k-NN vote"].found.value == 0


def test_without_cleanlab_the_others_are_compared_and_a_note_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "cleanlab.filter", None)
    test = selftest(*clouds(60), kinds=["random"], repeats=1, expert=QUICK)
    assert [score.method for score in test.scores] == ["labelmend", "k-NN vote"]
    assert test.notes == ('cleanlab is not installed. Install it with: pip install "labelmend[compare]"',)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"kinds": ["odd"]}, "kinds must be among random, confusing, patch, mixed. Got odd instead"),
        ({"kinds": []}, "kinds must name at least one"),
        ({"share": 0.7}, "share must be above 0 and at most 0.5. Got 0.7 instead"),
        ({"repeats": 0}, "repeats must be at least 1. Got 0 instead"),
        ({"alpah": 1}, "alpah is not a parameter"),
    ],
)
def test_what_cannot_be_tested_is_said_before_any_work(parameters, message):
    with pytest.raises(ConfigError, match=message):
        selftest(*clouds(60), **as_arguments(parameters))


def test_the_lines_of_the_terminal(tested):
    lines = selftest_lines(tested)
    assert lines[0].startswith(f"150 rows, {tested.looks_clean} look clean, errors planted in 10.0% of the labels")
    assert "t over 2 repetitions" in lines[1]
    assert lines[4].startswith("random     labelmend")
    assert "%" in lines[4]


def test_the_report_holds_it_as_a_section(tested, tmp_path):
    page = tested.report(tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Self-test: planted errors, side by side" in page
    assert "mixed, k-NN vote" in page
    assert f"{tested.looks_clean:,} samples that look clean" in page


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    features, given = clouds(60)
    np.savez("data.npz", X=features, y=given)
    return "data.npz"


def test_the_command_prints_json_and_writes_a_file(table, capsys, tmp_path):
    words = ["selftest", table, "--labels", "y", "--kinds", "random", "--repeats", "1", "--json", "--out", "test.json"]
    assert cli.main([*words, "--quiet", *FAST]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["scores"][0]["kind"] == "random"
    assert json.loads((tmp_path / "test.json").read_text()) == printed
    assert cli.main([*words, *FAST]) == 2
    assert "the target must not exist" in capsys.readouterr().err


def test_the_command_writes_a_page(table, capsys, tmp_path):
    words = ["selftest", table, "--labels", "y", "--kinds", "random", "--repeats", "1", "--out", "page.html"]
    assert cli.main([*words, *FAST]) == 0
    assert "written to page.html" in capsys.readouterr().out
    assert "Self-test" in (tmp_path / "page.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "selftest needs --labels COLUMN"),
        (["--labels", "y", "--out", "page.pdf"], "--out must end in .json or .html. Got page.pdf instead"),
        (["--labels", "y", "--share", "2"], "share must be above 0 and at most 0.5"),
        (["--labels", "y", "--mode", "embed"], "--mode can be used with pictures only"),
    ],
)
def test_the_command_says_what_is_wrong(table, capsys, words, message):
    assert cli.main(["selftest", table, *words]) == 2
    assert message in capsys.readouterr().err


def test_pictures_are_embedded(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_folders(tmp_path / "photos", *coloured(36))
    monkeypatch.setattr("labelmend.runs.pictures.load_backbone", lambda name, size: load_backbone(TinyBackbone(), 8))
    words = ["selftest", "photos", "--kinds", "random", "--repeats", "1", "--share", "0.1", "--json"]
    assert cli.main([*words, "--cache", "cache", *FAST]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 36
    assert cli.main([*words, "--mode", "train", *FAST]) == 2
    assert "selftest embeds pictures" in capsys.readouterr().err


def test_a_share_in_words():
    from labelmend.report.wording import percent

    assert percent(vars(Interval(0.935, 0.9, 0.9612, 200))) == "93.5 % (90.0 to 96.1)"
