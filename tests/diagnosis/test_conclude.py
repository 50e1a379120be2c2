"""The last step in a whole run: result, run folder, report, terminal, review page, command line."""

import csv
import json

import numpy as np
import pytest

import labelmend
from blobs import QUICK, blobs, plant
from blobs import as_options as options_of
from labelmend.cli.main import main
from labelmend.cli.terminal import summary_lines
from labelmend.diagnosis.conclude import ANOTHER, NONE, REASONS
from labelmend.errors import ConfigError, RunFolderError
from labelmend.review.decisions import Standing
from labelmend.review.samples import OUTLIER, Evidence


@pytest.fixture(scope="module")
def result():
    """300 points of three clouds, a fifth of the labels wrong, and six points between the clouds."""
    features, classes = blobs(300)
    given, _ = plant(classes, 0.2)
    centres = np.stack([features[classes == c].mean(axis=0) for c in range(3)])
    strays = np.tile(centres.mean(axis=0), (6, 1)) + 0.1 * np.random.default_rng(0).normal(size=(6, 4))
    names = np.array(["cat", "dog", "owl"])
    labels = names[np.append(given, [0, 0, 1, 1, 2, 2])]
    return labelmend.correct(np.append(features, strays, axis=0), labels, expert={**QUICK, "outlier_share": 0.02})


def test_the_result_says_how_many_labels_are_wrong_and_why_samples_are_in_doubt(result):
    profile = result.profile
    assert profile.rate.low <= 60 / 306 <= profile.rate.high
    assert profile.rate.value == pytest.approx(result.noise_rate)
    assert {entry.name for entry in profile.classes} == {"cat", "dog", "owl"}
    assert profile.kind in ("random", "confusing", "patch")
    assert sum(profile.kinds.values()) == pytest.approx(1)
    assert set(result.reason) <= set(REASONS)
    changed = result.corrected_codes != result.given.codes
    assert (result.reason[changed] == ANOTHER).mean() > 0.9
    assert result.misfit.shape == (306,)


def test_what_fits_no_class_keeps_its_label_for_review(result):
    listed = result.reason == NONE
    assert 0 < listed.sum() <= 0.02 * 306
    assert listed[300:].sum() >= listed.sum() / 2
    assert (result.corrected_codes[listed] == result.given.codes[listed]).all()
    assert set(result.status[listed]) == {"review"}
    strays, others = result.misfit[300:], result.misfit[:300]
    assert strays.max() > others.max()
    assert np.median(strays) > np.quantile(others, 0.95)


def test_without_a_share_nothing_is_held_back():
    features, classes = blobs(60)
    given, _ = plant(classes, 0.2)
    found = labelmend.correct(features, given, expert=QUICK)
    assert found.count_reason(NONE) == 0
    with pytest.raises(ConfigError, match="outlier_share must be at most 1"):
        labelmend.correct(features, given, expert={**QUICK, "outlier_share": 2.0})


def test_trusted_samples_are_never_outliers():
    features, classes = blobs(60)
    trusted = np.arange(60) % 2 == 0
    found = labelmend.correct(features, classes, trusted=trusted, expert={**QUICK, "outlier_share": 1.0})
    assert set(found.reason[trusted]) == {""}
    assert found.profile.labelled == 30


def test_all_of_it_comes_back_from_the_run_folder(result, tmp_path):
    read = labelmend.load(result.save(tmp_path / "run"))
    assert read.profile.plain() == result.profile.plain()
    np.testing.assert_array_equal(read.profile.transition_high, result.profile.transition_high)
    assert read.reason.tolist() == result.reason.tolist()
    np.testing.assert_array_equal(read.misfit, result.misfit)
    with (tmp_path / "run" / "reasons.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["row"]) for row in rows] == np.flatnonzero(result.reason != "").tolist()
    assert {row["reason"] for row in rows} == set(result.reason) - {""}
    assert "profile.json" in (tmp_path / "run" / "README.md").read_text()


def test_a_run_folder_from_before_has_none_and_a_damaged_one_is_told(result, tmp_path):
    folder = result.save(tmp_path / "run")
    for name in ("profile.json", "reasons.csv", "misfit.npz"):
        (folder / name).unlink()
    old = labelmend.load(folder)
    assert (old.profile, old.reason, old.misfit) == (None, None, None)
    assert old.summary()["profile"] is None
    (folder / "reasons.csv").write_text("row,id,reason,misfit\n0,0,fits badly,1.0\n")
    with pytest.raises(RunFolderError, match=r"reasons\.csv"):
        labelmend.load(folder)


def test_the_report_shows_kinds_reasons_and_outliers(result, tmp_path):
    page = result.report(tmp_path / "page.html").read_text(encoding="utf-8")
    assert 'id="profile"' in page
    assert 'id="profile"' in page
    for words in ("random", "confusing", "patch", *REASONS[1:], "They were not relabelled."):
        assert words in page
    assert f"{result.profile.rate.low:.1%} to {result.profile.rate.high:.1%}" in page


def test_the_summary_says_interval_kind_and_what_to_do(result):
    summary = json.loads(json.dumps(result.summary()))
    printed = " ".join("\n".join(summary_lines(summary, None)).split())  # long lines are wrapped
    rate = result.profile.rate
    assert f"interval {rate.low:.1%} to {rate.high:.1%}" in printed
    assert f"kinds of errors {summary['kinds']}" in printed
    assert summary["advice"][0] in printed
    assert "fit no class" in printed
    assert summary["reasons"][NONE] == result.count_reason(NONE)
    assert summary["profile"]["kind"] == result.profile.kind


def test_the_review_page_says_that_a_sample_fits_no_class(result):
    sample = int(np.flatnonzero(result.reason == NONE)[0])
    assert OUTLIER in Evidence(result, Standing(len(result))).about(sample)["reasons"]


def test_the_command_prints_the_profile_as_json(tmp_path, capsys, monkeypatch):
    features, classes = blobs(90)
    given, _ = plant(classes, 0.3)
    np.savez(tmp_path / "data.npz", X=features, y=given)
    monkeypatch.chdir(tmp_path)
    options = options_of(QUICK)
    assert main(["correct", "data.npz", "--labels", "y", "--out", "run", "--json", "--quiet", *options]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert set(printed["profile"]) >= {"rate", "classes", "pairs", "kinds", "kind", "clean", "seen"}
    assert json.loads((tmp_path / "run" / "profile.json").read_text()) == printed["profile"]
