"""Annotators through the whole library: arrays, tables, pictures, run folders, checkpoints, the report."""

import csv
import dataclasses
import json
from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch

import labelmend
from blobs import QUICK, blobs
from blobs import as_options as options_of
from coloured import COLOURS, TINY, TinyBackbone, coloured, write_folders
from labelmend.api import correct, correct_images
from labelmend.cli.main import main
from labelmend.config import as_arguments
from labelmend.decision import posterior as decide
from labelmend.decision.ensemble_evidence import label_posterior
from labelmend.ensemble import state
from labelmend.errors import CheckpointError, ConfigError, DataError, LabelmendWarning, RunFolderError
from labelmend.inputs.annotators import read_annotated, settled, unanimous, with_consensus
from labelmend.samples import VectorSamples

FAST = options_of(QUICK)
NAMES = ("ann", "ben", "cid")
NAN = float("nan")


def crowd(true, accuracies=(0.95, 0.85, 0.4), share=0.7, seed=0, n_classes=3):
    """(samples, annotators) of floats: NaN where someone said nothing; the last sample has no label at all."""
    random = np.random.default_rng(seed)
    shape = (len(true), len(accuracies))
    other = (true[:, None] + random.integers(1, n_classes, shape)) % n_classes
    said = np.where(random.random(shape) < accuracies, true[:, None], other).astype(float)
    said[random.random(shape) >= share] = NAN
    said[-1] = NAN
    return said


@cache
def example():
    features, true = blobs(120)
    return features, true, crowd(true)


@cache
def result():
    features, _, said = example()
    return correct(features, annotators=said, expert=QUICK)


def frame(said):
    return pd.DataFrame(said, columns=list(NAMES), index=[f"row{i}" for i in range(len(said))])


def test_a_table_gives_labels_their_quality_and_fills_what_nobody_labelled():
    _, true, said = example()
    found = result()
    assert (found.labels == true).mean() > 0.97
    assert found.labels.dtype.kind == "i"
    silent = np.isnan(said).all(axis=1)
    assert (found.status[silent] == "filled").all()
    assert (found.annotators.consensus[silent] == -1).all()
    assert (found.annotators.consensus_certainty[silent] == 0).all()
    assert found.annotators.names.tolist() == ["1", "2", "3"]
    truth = np.array([(said[:, a] == true)[~np.isnan(said[:, a])].mean() for a in range(3)])
    assert np.abs(found.annotators.accuracy - truth).max() < 0.08
    assert ((found.annotators.low < truth) & (truth < found.annotators.high)).all()
    assert found.annotators.n_labels.sum() == (~np.isnan(said)).sum()
    assert found.annotators.confusion.shape == (3, 3, 3)


def test_without_y_the_given_labels_are_the_consensus():
    found = result()
    assert (found.given.codes == found.annotators.consensus).all()
    expected = 1 - (found.given.codes == found.corrected_codes)[found.given.codes >= 0].mean()
    assert found.noise_rate == pytest.approx(expected, abs=0.05)


def test_with_y_the_labels_in_use_are_kept_or_corrected():
    features, true, said = example()
    in_use = true.copy()
    in_use[:12] = (true[:12] + 1) % 3
    found = correct(features, in_use, annotators=said, expert={**QUICK, "outlier_share": 0.0})
    assert (found.given.codes == in_use).all()
    assert (found.labels == true).mean() > 0.97
    assert set(found.status[:12]) == {"corrected"}
    assert found.noise_rate == pytest.approx(0.1, abs=0.03)
    assert (found.annotators.consensus == result().annotators.consensus).all()


def test_one_name_per_label():
    features, true, _ = example()
    random = np.random.default_rng(1)
    who = random.integers(3, size=120)
    wrong = random.random(120) >= np.array([0.98, 0.9, 0.5])[who]
    given = np.where(wrong, (true + 1) % 3, true)
    found = correct(features, given, annotators=np.array(NAMES)[who], expert=QUICK)
    assert found.annotators.names.tolist() == list(NAMES)
    assert found.annotators.accuracy.argmin() == 2
    assert (found.annotators.consensus == given).all()  # one label has nobody to agree with
    assert (found.labels == true).mean() > 0.95


def test_containers_come_back():
    features, _, said = example()
    found = correct(features, annotators=frame(said), expert=QUICK)
    assert isinstance(found.labels, pd.Series)
    assert found.labels.index[0] == "row0"
    assert (found.labels.to_numpy() == result().labels).all()
    assert found.annotators.names.tolist() == list(NAMES)
    polars = pl.DataFrame(dict(zip(NAMES, np.where(np.isnan(said), None, said).T.tolist(), strict=True)))
    assert isinstance(correct(features, annotators=polars, expert=QUICK).labels, pl.Series)


def test_a_class_that_never_wins_is_still_a_class():
    features, _, said = example()
    said = said.copy()
    said[0, 2] = 3.0
    with pytest.warns(LabelmendWarning, match="fewer (than|samples)"):
        found = correct(features, annotators=said, expert=QUICK)
    assert found.classes.tolist() == [0, 1, 2, 3]


def test_trusted_rows_are_those_in_use_or_agreed_upon():
    said = np.array([[0, 0], [0, 1], [1, NAN], [NAN, NAN]])
    labels = read_annotated(None, said)
    assert unanimous(labels.annotations, 4).tolist() == [0, -1, 1, -1]
    assert settled(labels).codes.tolist() == [0, -1, 1, -1]
    trusted = np.array([True, False, False, False])
    assert with_consensus(labels, trusted).codes[0] == 0
    features, _, said = example()
    differ = int(np.flatnonzero((said[:, 0] != said[:, 1]) & ~np.isnan(said[:, :2]).any(axis=1))[0])
    with pytest.raises(DataError, match=f"trusted rows must have a label. Row {differ} has none"):
        correct(features, annotators=said, trusted=np.arange(120) == differ, expert=QUICK)


@pytest.mark.parametrize(
    ("y", "annotators", "message"),
    [
        (None, None, "there must be labels: y, or a table of them as annotators. Got neither"),
        (None, ["ann"] * 120, "Got names without y"),
        (
            [0, 1, 2] * 40,
            [[0, 1]] * 119,
            "y and annotators must have the same length. Got 120 labels and a table of 119",
        ),
        (None, [[0, 1]] * 119, "features and labels must have the same length. Got 120 rows and 119 labels"),
        ([0, 1, 2] * 40, [[0, 7]] * 120, "2 gave 7 to sample 0, which is no class of y"),
    ],
)
def test_what_cannot_be_is_told(y, annotators, message):
    with pytest.raises(DataError, match=message):
        correct(example()[0], y, annotators=annotators, expert=QUICK)


def test_without_annotators_the_decision_is_the_plain_one_to_the_last_bit():
    random = np.random.default_rng(0)
    predicted = torch.tensor(random.dirichlet([1, 1, 1], 50), dtype=torch.float32)
    given = torch.tensor(random.integers(-1, 3, 50))
    fixed = torch.zeros(50, dtype=torch.bool)
    problem = state.Problem(VectorSamples(torch.zeros(50, 2)), given, fixed, 3)
    assert problem.labels_in_use is given
    mine, plain = label_posterior(predicted, problem), decide.posterior(predicted, given, fixed)
    assert torch.equal(mine.probabilities, plain.probabilities)
    assert torch.equal(mine.transition, plain.transition)
    assert mine.noise_rate == plain.noise_rate
    assert correct(*blobs(60), expert=QUICK).annotators is None


def test_a_run_folder_gives_them_back(tmp_path, no_pickle):
    found = result()
    loaded = labelmend.load(found.save(tmp_path / "run"))
    for field in dataclasses.fields(found.annotators):
        np.testing.assert_array_equal(getattr(loaded.annotators, field.name), getattr(found.annotators, field.name))
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["annotators"][0]["name"] == "3"
    assert "annotators.npz" in (tmp_path / "run" / "README.md").read_text()
    np.savez(tmp_path / "run" / "annotators.npz", **{**vars(found.annotators), "consensus": np.zeros(5)})
    with pytest.raises(RunFolderError, match=r"annotators\.npz"):
        labelmend.load(tmp_path / "run")


def test_the_report_has_a_section_and_escapes_names(tmp_path):
    evil = dataclasses.replace(result().annotators, names=np.array(["<script>x", "ben", "cid"]))
    page = dataclasses.replace(result(), annotators=evil).report(tmp_path / "report.html").read_text()
    assert 'href="#annotators"' in page
    assert "How good the annotators are" in page
    assert "<script>x" not in page
    assert "&lt;script&gt;x" in page
    plain = dataclasses.replace(result(), annotators=None).report(tmp_path / "plain.html").read_text()
    assert "#annotators" not in plain


def test_checkpoints_and_fingerprint_cover_the_annotators(tmp_path):
    features, _, said = example()

    def run(table, stop=False):
        def end(record, state):
            if stop:
                raise KeyboardInterrupt

        how = {"checkpoints": tmp_path / "kept", "checkpoint_every": 0, "callback": end, "n_rounds": 3}
        return correct(features, annotators=table, **as_arguments({**QUICK, **how}))

    with pytest.raises(KeyboardInterrupt):
        run(said, stop=True)
    other = np.where(np.isnan(said), said, said)[:, ::-1]
    with pytest.raises(CheckpointError, match="these have changed: annotators"):
        run(other)
    resumed, whole = (
        run(said),
        correct(features, annotators=said, **as_arguments({**QUICK, "n_rounds": 3})),
    )
    assert (resumed.labels == whole.labels).all()
    assert (resumed.confidence == whole.confidence).all()
    np.testing.assert_array_equal(resumed.annotators.confusion, whole.annotators.confusion)
    named = correct(features, annotators=frame(said), expert=QUICK)
    assert len({result().fingerprint, named.fingerprint}) == 2


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    features, true, said = example()
    random = np.random.default_rng(0)
    with open("table.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["a", "b", "c", "d", "kind", "by", *NAMES])
        for row, label, votes in zip(features, true, said, strict=True):
            cells = ["" if np.isnan(vote) else "xyz"[int(vote)] for vote in votes]
            writer.writerow([*row, "xyz"[label], random.choice(NAMES), *cells])


def test_the_command_line_takes_columns_of_labels(table, capsys):
    command = ["correct", "table.csv", "--ignore", "by", "--annotator-columns", "ann,ben,cid", "--quiet", *FAST]
    assert main([*command, "--ignore", "kind", "--out", "run", "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["annotators"][0]["name"] == "cid"
    assert summary["filled"] >= 1
    loaded = labelmend.load("run")
    assert loaded.source.annotators == NAMES
    assert (loaded.labels == np.array(list("xyz"))[result().labels]).mean() > 0.95
    assert "--annotator-columns ann,ben,cid" in loaded.repeat
    assert main(["export", "run", "--to", "csv", "--with-data", "--out", "mended.csv"]) == 2
    assert "needs a label column to mend" in capsys.readouterr().err
    assert main([*command, "--labels", "kind", "--out", "run2"]) == 0
    out = capsys.readouterr().out
    assert "annotators, estimated accuracy" in out
    assert labelmend.load("run2").given.codes.tolist() == example()[1].tolist()
    assert main(["export", "run2", "--to", "csv", "--with-data", "--out", "mended.csv"]) == 0


def test_the_command_line_takes_a_column_of_names(table, capsys):
    command = ["correct", "table.csv", "--labels", "kind", "--annotator", "by", "--quiet", *FAST]
    command += [word for name in NAMES for word in ("--ignore", name)]
    assert main([*command, "--dry-run"]) == 0
    assert "120 labels by 3 annotators" in capsys.readouterr().out
    assert main([*command, "--out", "run"]) == 0
    assert labelmend.load("run").annotators.names.tolist() == sorted(NAMES)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--labels", "kind", "--annotator", "by", "--annotator-columns", "ann"], "Use one of them"),
        (["--labels", "kind", "--annotator", "bye"], "a column named 'bye'. Did you mean 'by'?"),
        (["--annotator-columns", "ann,zoe"], "a column named 'zoe'."),
        (["--annotator-columns", ","], "must name columns, such as ann,ben,cid"),
        (["--annotator", "by"], "correct needs --labels COLUMN"),
        (["--annotator-columns", "ann,ben,cid,by", "--trusted-from", "run"], "needs --labels COLUMN"),
    ],
)
def test_the_command_line_tells_what_is_wrong(table, capsys, options, message):
    assert main(["correct", "table.csv", *options, "--out", "run", "--ignore", "kind"]) == 2
    assert message in capsys.readouterr().err


def test_an_npz_holds_an_array_for_each(tmp_path):
    features, true, said = example()
    np.savez(tmp_path / "data.npz", X=features, y=true, **dict(zip(NAMES, said.T, strict=True)))
    out = str(tmp_path / "run")
    command = ["correct", str(tmp_path / "data.npz"), "--annotator-columns", "ann,ben,cid", "--quiet", *FAST]
    assert main([*command, "--out", out]) == 0
    assert (labelmend.load(out).labels == result().labels).all()


def test_pictures_of_a_manifest(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    pixels, true = coloured()
    said = crowd(true)
    paths = write_folders(tmp_path / "photos", pixels, np.array(COLOURS)[true])
    paths[3].write_bytes(b"no picture")
    with open(tmp_path / "photos.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["path", "by", *NAMES])
        for path, votes in zip(paths, said, strict=True):
            cells = ["" if np.isnan(vote) else COLOURS[int(vote)] for vote in votes]
            writer.writerow([path.relative_to(tmp_path), "ann", *cells])
    how = {"mode": "embed", "backbone": TinyBackbone(), "size": 8, **TINY}
    with pytest.warns(LabelmendWarning, match="1 picture"):
        found = correct_images(tmp_path / "photos.csv", annotators=list(NAMES), **as_arguments(how))
    readable = found.status != "unreadable"
    assert (np.asarray(found.labels) == np.array(COLOURS)[true])[readable].mean() > 0.9
    assert found.status[3] == "unreadable"
    assert found.annotators.n_labels.sum() == (~np.isnan(said))[readable].sum()
    assert found.annotators.accuracy.argmin() == 2
    assert found.source.annotators == NAMES
    again = correct_images(pixels, annotators=said, **as_arguments(how))
    assert again.annotators.names.tolist() == ["1", "2", "3"]
    with pytest.raises(ConfigError, match=r"annotators .*photos\.csv.*ndarray"):
        correct_images(tmp_path / "photos.csv", annotators=said, **as_arguments(how))
    with pytest.raises(DataError, match="columns can be named for tables only"):
        correct_images(tmp_path / "photos", annotators="by", **as_arguments(how))
