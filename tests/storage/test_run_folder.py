import csv
import dataclasses
import errno
import functools
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
import torch
from safetensors import SafetensorError
from torch import nn

import labelmend
from blobs import QUICK, blobs, plant
from labelmend.cli.main import main
from labelmend.config import make_config, resolve
from labelmend.ensemble.nets import MLP
from labelmend.ensemble.records import CorrectionRecord
from labelmend.errors import LabelmendWarning, RunFolderError
from labelmend.files import writing as in_place
from labelmend.inputs.features import fit_scaler
from labelmend.labels import Labels
from labelmend.models.vectors import net_model
from labelmend.storage import run_files, run_folder

AWKWARD = ['comma, "quote"', "line\nbreak\r\n", "<script>alert(1)</script>", "naïve 漢字 🙂", " ", "", "=1", "\udc80"]


def labelled_blobs(n=60, n_classes=3):
    features, true = blobs(n, n_classes)
    return features, plant(true, 0.1)[0]


@functools.cache
def tiny_result():
    return labelmend.correct(*labelled_blobs(), expert=QUICK)


def with_classes(result, classes):
    """The same result as if the classes 0, 1, 2 had had these values."""
    return dataclasses.replace(
        result,
        classes=classes,
        given=Labels(result.given.codes, classes, lambda values: values),
        labels=classes[result.corrected_codes],
        runner_up=classes[result.runner_up],
        model=dataclasses.replace(result.model, classes=classes),
    )


@pytest.fixture
def saved(tmp_path):
    return tiny_result().save(tmp_path / "run")


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def read_csv(folder):
    with (folder / "labels.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def array_of(values, dtype=object):
    out = np.empty(len(values), dtype=dtype)
    out[:] = values
    return out


# What is in the folder


def test_the_folder_holds_the_files_of_the_table_and_no_others(saved):
    told = set(run_files.FILES)
    told -= {"unreadable.csv", "annotators.npz"}  # there are no pictures here, nor names of annotators
    told -= {
        "report.html",
        "review.sqlite",
        "review.lock",
        "reviewed.npz",
        "labels_before_review.csv",
        "audit.json",
    }  # those come later
    assert {path.name for path in saved.iterdir()} == told


def test_without_pyarrow_the_folder_has_no_parquet_and_loads_all_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    folder = tiny_result().save(tmp_path / "run")
    assert not (folder / "labels.parquet").exists()
    assert len(labelmend.load(folder)) == 60


def test_the_table_has_one_line_per_sample_in_order(saved):
    result, rows = tiny_result(), read_csv(saved)
    assert tuple(rows[0]) == run_files.COLUMNS
    assert [row["id"] for row in rows] == [str(i) for i in range(60)]
    assert [row["given"] for row in rows] == result.given.codes.astype(str).tolist()
    assert [row["corrected"] for row in rows] == result.labels.astype(str).tolist()
    assert [row["status"] for row in rows] == result.status.tolist()


def test_the_parquet_table_says_the_same_as_the_csv(saved):
    parquet = pytest.importorskip("pyarrow.parquet").read_table(saved / "labels.parquet")
    assert parquet.column_names == list(run_files.COLUMNS)
    numbers = ("confidence", "certainty")
    text = [{k: v for k, v in row.items() if k not in numbers} for row in read_csv(saved)]
    assert parquet.drop_columns(list(numbers)).to_pylist() == text
    np.testing.assert_array_equal(parquet["confidence"].to_numpy(), tiny_result().confidence)


# What comes back


def test_a_loaded_result_is_the_saved_one(saved):
    before, after = tiny_result(), labelmend.load(saved)
    for field in ("labels", "status", "confidence", "certainty", "runner_up", "transition", "classes", "neighbors"):
        np.testing.assert_array_equal(getattr(after, field), getattr(before, field), err_msg=field, strict=True)
    for field in ("noise_rate", "history", "config", "fingerprint", "seconds", "duplicates", "warnings"):
        assert getattr(after, field) == getattr(before, field), field
    assert (after.votes != before.votes).nnz == 0
    assert after.votes.shape == before.votes.shape
    np.testing.assert_array_equal(after.given.codes, before.given.codes)
    assert after.summary() == before.summary()


def test_a_round_with_a_correction_and_one_without_come_back(tmp_path):
    features, given = labelled_blobs()
    before = labelmend.correct(features, given, expert={**QUICK, "correct_every": 2})
    after = labelmend.load(before.save(tmp_path / "run"))
    assert [type(record.correction) for record in after.history] == [CorrectionRecord, type(None)]
    assert after.history == before.history


def test_a_loaded_model_predicts_the_same(saved):
    features, _ = labelled_blobs()
    np.testing.assert_array_equal(
        labelmend.load(saved).model.predict_proba(features), tiny_result().model.predict_proba(features)
    )


@pytest.mark.parametrize(
    "classes",
    [
        np.array([-1, 0, 7], dtype=np.int8),
        np.array([0, 1, 2**63 + 1], dtype=np.uint64),
        np.array([1.0, 2.0, 1e30], dtype=np.float32),
        np.array(["a", "b", "longer"]),
        array_of(["a", "b", "c"]),
        array_of([1, 2.0, "1"]),
        array_of([True, "True", 2**80]),
    ],
    ids=lambda classes: f"{classes.dtype}-{classes[-1]}",
)
def test_numbers_and_text_come_back_with_their_type(tmp_path, classes):
    before = with_classes(tiny_result(), classes)
    after = labelmend.load(before.save(tmp_path / "run"))
    for field in ("classes", "labels", "runner_up"):
        np.testing.assert_array_equal(getattr(after, field), getattr(before, field), strict=True)
    assert [type(value) for value in after.classes] == [type(value) for value in classes]
    assert after.model.predict(labelled_blobs()[0]).dtype == classes.dtype


def test_booleans_come_back_as_booleans(tmp_path):
    features, given = labelled_blobs(n_classes=2)
    labels = labelmend.load(labelmend.correct(features, given == 1, expert=QUICK).save(tmp_path / "run")).labels
    assert labels.dtype == bool


@pytest.mark.parametrize("classes", [np.array([b"a", b"b", b"c"]), np.array(["2020", "2021", "2022"], dtype="M8[Y]")])
def test_other_classes_come_back_as_text(tmp_path, classes):
    after = labelmend.load(with_classes(tiny_result(), classes).save(tmp_path / "run"))
    assert after.classes.tolist() == [str(value) for value in classes.tolist()]


def test_awkward_text_survives_in_labels_and_ids(tmp_path):
    features, given = labelled_blobs(n=80, n_classes=8)
    labels = np.array(AWKWARD)[given]
    ids = [f"{text}{number}" for number, text in enumerate(labels)]
    before = labelmend.correct(features, labels, ids=ids, expert=QUICK)
    after = labelmend.load(before.save(tmp_path / "run"))
    np.testing.assert_array_equal(after.classes, before.classes)
    np.testing.assert_array_equal(after.labels, before.labels)
    spelled_out = [text.replace("\udc80", "\\udc80") for text in ids]
    assert after.ids.tolist() == spelled_out
    assert [row["given"] for row in read_csv(tmp_path / "run")] == [t.replace("\udc80", "\\udc80") for t in labels]


def test_ids_come_back_as_text(tmp_path):
    result = dataclasses.replace(tiny_result(), ids=np.arange(60) * 10)
    assert labelmend.load(result.save(tmp_path / "run")).ids.tolist() == [str(10 * i) for i in range(60)]


def test_a_missing_given_label_is_empty_in_the_table_and_missing_when_loaded(tmp_path):
    features, given = labelled_blobs()
    folder = labelmend.correct(features, given, missing=2, expert=QUICK).save(tmp_path / "run")
    missing = given == 2
    assert [row["given"] == "" for row in read_csv(folder)] == missing.tolist()
    after = labelmend.load(folder)
    np.testing.assert_array_equal(after.given.codes < 0, missing)
    np.testing.assert_array_equal(after.status == "filled", missing)
    parquet = pytest.importorskip("pyarrow.parquet").read_table(folder / "labels.parquet")
    assert parquet["given"].is_null().to_numpy().tolist() == missing.tolist()


def test_a_thousand_classes_come_back(tmp_path):
    n, generator = 2000, np.random.default_rng(0)
    codes, classes = np.arange(n) % 1000, np.array([f"class {i:04d}" for i in range(1000)])
    before = dataclasses.replace(
        tiny_result(),
        labels=classes[codes],
        status=np.full(n, "kept"),
        confidence=generator.random(n, dtype=np.float32),
        certainty=generator.random(n, dtype=np.float32),
        runner_up=classes[::-1][codes],
        transition=generator.random((1000, 1000)),
        votes=scipy.sparse.csr_matrix(np.eye(1000)[codes]),
        classes=classes,
        given=Labels(codes, classes, lambda values: values),
        corrected_codes=codes,
        ids=np.arange(n),
        neighbors=np.zeros((n, 3), dtype=np.int32),
        given_confidence=generator.random(n, dtype=np.float32),
        label_score=generator.random(n, dtype=np.float32),
        left_alone=np.arange(n) % 2 == 0,
        model=net_model(MLP(4, 8, 1000), fit_scaler(labelled_blobs()[0], 0), classes, torch.device("cpu")),
    )
    after = labelmend.load(before.save(tmp_path / "run"))
    for field in ("labels", "runner_up", "confidence", "given_confidence", "label_score", "left_alone", "classes"):
        np.testing.assert_array_equal(getattr(after, field), getattr(before, field), strict=True)
    assert after.model.predict_proba(labelled_blobs()[0]).shape == (60, 1000)


class Wider(MLP):
    def __init__(self, n_inputs, n_classes):
        super().__init__(n_inputs, 12, n_classes)


def test_a_net_of_ones_own_needs_its_factory_to_load(tmp_path):
    features, given = labelled_blobs()
    before = labelmend.correct(features, given, net=Wider, expert=QUICK)
    folder = before.save(tmp_path / "run")
    with pytest.raises(RunFolderError, match=r"is a .*Wider, which this library cannot build"):
        labelmend.load(folder)
    after = labelmend.load(folder, net=Wider)
    np.testing.assert_array_equal(after.model.predict_proba(features), before.model.predict_proba(features))
    with pytest.raises(RunFolderError, match="must hold the weights of its net"):
        labelmend.load(folder, net=lambda n_inputs, n_classes: nn.Linear(n_inputs, n_classes))


# An existing target


def test_an_existing_run_is_not_replaced_without_force(saved):
    before = contents(saved)
    with pytest.raises(RunFolderError, match=r"run .*--force"):
        tiny_result().save(saved)
    assert contents(saved) == before


def test_force_replaces_a_run_and_leaves_nothing_beside_it(saved):
    dataclasses.replace(tiny_result(), fingerprint="new").save(saved, force=True)
    assert labelmend.load(saved).fingerprint == "new"
    assert list(saved.parent.iterdir()) == [saved]


def test_force_replaces_a_run_where_folders_cannot_change_places(saved, monkeypatch):
    monkeypatch.setattr(in_place, "_exchange", lambda one, other: False)
    dataclasses.replace(tiny_result(), fingerprint="new").save(saved, force=True)
    assert labelmend.load(saved).fingerprint == "new"
    assert list(saved.parent.iterdir()) == [saved]


def test_two_folders_change_places_in_one_step(tmp_path):
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "name").write_text(name)
    if not in_place._exchange(tmp_path / "one", tmp_path / "other"):
        pytest.skip("this system cannot")
    assert (tmp_path / "one" / "name").read_text() == "other"
    assert not in_place._exchange(tmp_path / "one", tmp_path / "nowhere")


def test_the_old_run_steps_back_if_the_new_one_cannot_take_its_place(saved, monkeypatch):
    def fail_for_the_new_one(source, target):
        if source.suffix == ".partial":
            raise OSError(errno.EIO, "broken disk")
        os.rename(source, target)

    monkeypatch.setattr(in_place, "_exchange", lambda one, other: False)
    monkeypatch.setattr(Path, "rename", fail_for_the_new_one)
    before = contents(saved)
    with pytest.raises(OSError, match="broken disk"):
        tiny_result().save(saved, force=True)
    assert contents(saved) == before
    assert list(saved.parent.iterdir()) == [saved]


def test_force_takes_an_empty_folder_and_a_run_of_another_version(saved, tmp_path):
    (tmp_path / "empty").mkdir()
    assert len(labelmend.load(tiny_result().save(tmp_path / "empty", force=True))) == 60
    config = saved / "config.json"
    config.write_text(config.read_text().replace('"format_version": 3', '"format_version": 1'))
    assert len(labelmend.load(tiny_result().save(saved, force=True))) == 60


@pytest.mark.parametrize("config", ["", "{}", "[]", '{"architectures": ["Bert"], "format_version": 2}', None])
def test_force_never_deletes_a_folder_that_is_not_a_run(tmp_path, config):
    folder = tmp_path / "thesis"
    folder.mkdir()
    (folder / "chapter.txt").write_text("years of work")
    if config is not None:
        (folder / "config.json").write_text(config)
    before = contents(folder)
    with pytest.raises(RunFolderError, match="--force replaces run folders only"):
        tiny_result().save(folder, force=True)
    assert contents(folder) == before


def test_force_never_deletes_a_file_and_follows_no_broken_link(tmp_path):
    (tmp_path / "file").write_text("keep")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name in ("file", "link"):
        with pytest.raises(RunFolderError, match="--force replaces run folders only"):
            tiny_result().save(tmp_path / name, force=True)
    assert (tmp_path / "file").read_text() == "keep"


def test_a_link_to_a_run_stays_a_link(saved, tmp_path):
    link = tmp_path / "latest"
    link.symlink_to(saved)
    dataclasses.replace(tiny_result(), fingerprint="new").save(link, force=True)
    assert link.is_symlink()
    assert labelmend.load(saved).fingerprint == "new"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["latest", "run"]


def test_a_place_that_cannot_hold_a_folder_is_told_beforehand(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RunFolderError, match=r"in a folder one can write to\. .*file is not one"):
        run_folder.refuse_existing(tmp_path / "file" / "deep" / "run", force=False)


def test_missing_folders_above_are_made_and_permissions_follow_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        folder = tiny_result().save(tmp_path / "a" / "b" / "run")
    finally:
        os.umask(before)
    assert folder.stat().st_mode & 0o777 == 0o750


# Failing in the middle


def fail_at(monkeypatch, place, error):
    def fail(*args, **kwargs):
        raise error

    owner, name = {
        "table": (csv, "writer"),
        "arrays": (np, "savez_compressed"),
        "json": (json, "dumps"),
        "model": (type(tiny_result().model), "save"),
        "flush": (os, "fsync"),
        "rename": (in_place, "put_in_place"),
    }[place]
    monkeypatch.setattr(owner, name, fail)


@pytest.mark.parametrize("place", ["table", "arrays", "json", "model", "flush", "rename"])
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_a_failing_save_leaves_the_old_run_and_nothing_else(saved, monkeypatch, place, error):
    before = contents(saved)
    with monkeypatch.context() as patch:
        fail_at(patch, place, error)
        with pytest.raises(type(error)):
            tiny_result().save(saved, force=True)
    assert contents(saved) == before
    assert list(saved.parent.iterdir()) == [saved]


KILLED = """
import dataclasses, os, shutil, signal, sys
from pathlib import Path
import labelmend
from labelmend.files import writing
from labelmend.storage import run_files

def die(*args, **kwargs):
    os.kill(os.getpid(), signal.SIGKILL)

folder = Path(sys.argv[1])
result = dataclasses.replace(labelmend.load(folder), fingerprint="from the killed run")
module = {"rmtree": shutil, "put_in_place": writing, "write_file": run_files}[sys.argv[2]]
setattr(module, sys.argv[2], die)
result.save(folder, force=True)
"""


@pytest.mark.parametrize(("place", "is_new"), [("write_file", False), ("put_in_place", False), ("rmtree", True)])
def test_a_kill_finds_a_whole_run_in_place_and_the_next_run_works(saved, place, is_new):
    killed = subprocess.run([sys.executable, "-c", KILLED, saved, place], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert labelmend.load(saved).fingerprint == ("from the killed run" if is_new else tiny_result().fingerprint)
    (left,) = saved.parent.glob(".run.*.partial")
    dataclasses.replace(tiny_result(), fingerprint="next").save(saved, force=True)
    assert labelmend.load(saved).fingerprint == "next"
    assert sorted(saved.parent.iterdir()) == [left, saved]


def test_what_was_left_behind_long_ago_is_taken_away(saved):
    old, new, other = (saved.parent / name for name in (".run.1.partial", ".run.2.partial", ".else.1.partial"))
    for left in (old, new, other):
        left.mkdir()
        (left / "labels.csv").write_text("")
        if left != new:
            os.utime(left, (0, 0))
    tiny_result().save(saved, force=True)
    assert [left.exists() for left in (old, new, other)] == [False, True, True]


def test_everybody_who_may_read_the_run_may_read_its_model(saved):
    assert len({path.stat().st_mode for path in saved.iterdir()}) == 1


def test_a_model_that_cannot_be_written_is_an_error_of_the_run(tmp_path, monkeypatch):
    def full(*_):
        raise SafetensorError("Error while serializing: IoError(Os { code: 28, message: No space left on device })")

    monkeypatch.setattr("labelmend.models.vectors.save_file", full)
    with pytest.raises(RunFolderError, match=r"model\.safetensors must be writable"):
        tiny_result().save(tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


# Loading what is not whole


@pytest.mark.parametrize(
    "name",
    [
        "labels.csv",
        "codes.npz",
        "votes.npz",
        "neighbors.npz",
        "transition.npz",
        "summary.json",
        "history.json",
        "model.json",
        "model.safetensors",
    ],
)
def test_a_damaged_file_is_a_clear_error(saved, name):
    path, whole = saved / name, (saved / name).read_bytes()
    for damaged in (whole[: len(whole) // 2], b"", b"[1, 2", None):
        if name == "labels.csv" and damaged is None:
            continue  # it is a copy, see below
        path.unlink() if damaged is None else path.write_bytes(damaged)
        with pytest.raises(RunFolderError, match=r"damaged|must hold the weights|was edited"):
            labelmend.load(saved)


def test_files_that_do_not_belong_together_are_refused(saved, tmp_path):
    other = labelmend.correct(*labelled_blobs(n=50), expert=QUICK).save(tmp_path / "other")
    shutil.copy(other / "neighbors.npz", saved / "neighbors.npz")
    with pytest.raises(RunFolderError, match=r"neighbors\.npz"):
        labelmend.load(saved)


def test_verdict_and_label_scores_come_back(saved):
    before, after = tiny_result(), labelmend.load(saved)
    assert after.verdict == before.verdict
    np.testing.assert_array_equal(after.label_score, before.label_score, strict=True)
    assert after.summary()["verdict"] == before.summary()["verdict"]


def test_a_folder_of_before_has_no_verdict_and_what_it_says_of_tuning_is_passed_over(saved):
    (saved / "verdict.json").unlink()
    np.savez_compressed(saved / "given.npz", confidence=tiny_result().given_confidence)
    config = json.loads((saved / "config.json").read_text())
    config["parameters"]["tune"] = True
    (saved / "config.json").write_text(json.dumps(config))
    (saved / "tuning.json").write_text("{}")
    after = labelmend.load(saved)
    assert (after.verdict, after.label_score) == (None, None)
    assert after.config == tiny_result().config
    with pytest.warns(LabelmendWarning, match="tuning"):
        assert after.tuning is None


def test_scores_of_other_samples_are_refused(saved):
    np.savez_compressed(saved / "given.npz", confidence=tiny_result().given_confidence, score=np.zeros(5))
    with pytest.raises(RunFolderError, match=r"given\.npz"):
        labelmend.load(saved)


EDITS = {
    "sorted by the label": lambda header, rows: [header, *sorted(rows, key=lambda row: row[1])],
    "one row less": lambda header, rows: [header, *rows[:-1]],
    "ids as numbers": lambda header, rows: [header, *([row[0].lstrip("0"), *row[1:]] for row in rows)],
    "a label": lambda header, rows: [header, [*rows[0][:2], "2", *rows[0][3:]], *rows[1:]],
    "a confidence": lambda header, rows: [header, [*rows[0][:4], "0.1", *rows[0][5:]], *rows[1:]],
    "a column more": lambda header, rows: [[*header, "note"], *([*row, ""] for row in rows)],
}


@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("older", [False, True])
def test_a_table_that_somebody_edited_is_never_taken_for_the_run(tmp_path, edit, older):
    result = dataclasses.replace(tiny_result(), ids=np.array([f"{i:03d}" for i in range(60)]))
    saved = result.save(tmp_path / "run")
    if older:  # a run of before, which has its ids in the table alone
        with np.load(saved / "codes.npz") as arrays:
            np.savez(saved / "codes.npz", **{name: arrays[name] for name in ("given", "corrected", "runner_up")})
        labelmend.load(saved)
        if edit in ("ids as numbers", "a confidence"):
            return  # of which it says nothing anywhere else
    with (saved / "labels.csv").open(newline="") as file:
        header, *rows = list(csv.reader(file))
    with (saved / "labels.csv").open("w", newline="") as file:
        csv.writer(file).writerows(EDITS[edit](header, rows))
    for read in (labelmend.load, run_folder.load_labels, run_folder.read_run):
        with pytest.raises(RunFolderError, match=r"labels\.csv|of the samples"):
            read(saved)


def test_a_table_that_was_moved_away_is_written_anew_from_the_run(saved, capsys):
    before = (saved / "labels.csv").read_bytes()
    (saved / "labels.csv").rename(saved / "mine.csv")
    assert (labelmend.load(saved).labels == tiny_result().labels).all()
    assert main(["apply", str(saved)]) == 0
    assert "labels.csv was missing and is there again" in capsys.readouterr().out
    assert (saved / "labels.csv").read_bytes() == before
    assert not (saved / "reviewed.npz").exists()


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("codes.npz", {"corrected": np.full(60, 3)}),
        ("codes.npz", {"given": np.full(60, -2)}),
        ("codes.npz", {"runner_up": np.full(60, 0.5)}),
        ("neighbors.npz", {"indices": np.full((60, 3), 60)}),
        ("votes.npz", {"shape": np.array([60, 2])}),
        ("transition.npz", {"transition": np.eye(2)}),
    ],
)
def test_numbers_out_of_range_are_refused(saved, name, changes):
    with np.load(saved / name) as arrays:
        np.savez(saved / name, **{**arrays, **changes})
    with pytest.raises(RunFolderError, match="damaged"):
        labelmend.load(saved)


def test_another_format_version_is_refused_by_its_number(saved):
    config = json.loads((saved / "config.json").read_text())
    (saved / "config.json").write_text(json.dumps({**config, "format_version": 99}))
    with pytest.raises(RunFolderError, match=r"must be of format 2 or 3\. .*run is of format 99"):
        labelmend.load(saved)


def test_format_2_which_has_no_source_is_still_read(saved):
    config = json.loads((saved / "config.json").read_text())
    (saved / "config.json").write_text(json.dumps({**config, "format_version": 2}))
    (saved / "source.json").unlink()
    found = labelmend.load(saved)
    assert found.source is None
    assert (found.labels == tiny_result().labels).all()


def test_what_is_not_a_run_folder_is_refused(tmp_path):
    for path in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(RunFolderError, match="no run folder at"):
            labelmend.load(path)


class Trap:
    """Runs code when it is unpickled."""

    def __init__(self, sprung):
        self.sprung = sprung

    def __reduce__(self):
        return Path.touch, (self.sprung,)


def test_loading_executes_nothing(saved, tmp_path):
    trap = array_of([Trap(tmp_path / "sprung")])
    with np.load(saved / "votes.npz") as arrays:
        votes = {**arrays, "data": trap}
    np.savez(saved / "votes.npz", **votes)
    with pytest.raises(RunFolderError, match="it holds Python objects"):
        labelmend.load(saved)
    assert not (tmp_path / "sprung").exists()
    np.load(saved / "votes.npz", allow_pickle=True)["data"]
    assert (tmp_path / "sprung").exists()  # the trap was a real one


def test_every_parameter_comes_back(tmp_path):
    config = resolve(make_config("paper", mixup=True, alpha=0.5, review_below=0.7), 60, 3)
    result = dataclasses.replace(tiny_result(), config=config)
    assert labelmend.load(result.save(tmp_path / "run")).config == config
