"""Only files that end are read. Every reader is tried with a pipe that nobody writes to: it would wait for ever."""

import os
import shutil
import socket
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

import labelmend
from blobs import QUICK, blobs
from labelmend.cli.main import main
from labelmend.errors import DataError, LabelmendError
from labelmend.export.patch import read_patch, undo
from labelmend.files.reading import regular_file
from labelmend.inputs.pictures.find import find_pictures, holds_pictures
from labelmend.inputs.tables import load_table, open_rows
from labelmend.storage.source import digest

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names here")


@pytest.fixture
def pipe(tmp_path):
    def make(name):
        path = tmp_path / name
        path.unlink(missing_ok=True)
        os.mkfifo(path)
        return path

    return make


READERS = {
    "tables": lambda path: load_table(path, "y"),
    "pictures": find_pictures,
    "rows": lambda path: open_rows(path, "y"),
    "source": digest,
    "patch": read_patch,
    "undo": lambda path: undo(path, path, path.with_name("out")),
    "command": lambda path: main(["correct", str(path), "--labels", "y", "--dry-run"]) == 2 or pytest.fail("read"),
}


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".npz", ".npy"])
@pytest.mark.parametrize("reader", READERS)
def test_a_pipe_is_refused_before_it_is_opened(pipe, reader, ending, capsys):
    path = pipe(f"data{ending}")
    assert not holds_pictures(path)
    if reader == "command":
        READERS[reader](path)
        assert str(path) in capsys.readouterr().err
        return
    with pytest.raises(LabelmendError):
        READERS[reader](path)


def test_what_else_is_no_file_is_named(tmp_path, pipe):
    with closing(socket.socket(socket.AF_UNIX)) as server:
        server.bind(str(tmp_path / "socket"))
        for path, kind in ((Path("/dev/zero"), "device"), (tmp_path, "folder"), (tmp_path / "socket", "socket")):
            with pytest.raises(DataError, match=f"It is a {kind}"):
                regular_file(path)
    with pytest.raises(DataError, match="It is a pipe"):
        regular_file(pipe("pipe"))
    for name in ("nowhere", "nowhere/deep", "x" * 5000, "nu\0ll"):
        with pytest.raises(DataError, match=r"nowhere|readable"):
            regular_file(tmp_path / name)


def test_links_are_followed(tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    assert regular_file(tmp_path / "link") == tmp_path / "link"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "run"
    features, true = blobs(60)
    return labelmend.correct(features, true, expert=QUICK).save(folder)


NAMES = [
    *("labels.csv", "codes.npz", "votes.npz", "neighbors.npz", "transition.npz", "summary.json", "history.json"),
    *("config.json", "source.json", "model.json", "model.safetensors", "profile.json", "reasons.csv", "map.npz"),
    *("review.sqlite", "reviewed.npz", "labels_before_review.csv", "unreadable.csv", "audit.json", "verdict.json"),
]


@pytest.mark.parametrize("name", NAMES)
def test_a_run_folder_with_a_pipe_in_it_does_not_hang(run, tmp_path, pipe, name):
    shutil.copytree(run, tmp_path / "run")
    pipe(f"run/{name}")
    read = labelmend.read_decisions if name == "review.sqlite" else labelmend.load
    with pytest.raises(LabelmendError):
        read(tmp_path / "run")


def test_a_review_that_is_a_device_is_no_review(run, tmp_path):
    shutil.copytree(run, tmp_path / "run")
    (tmp_path / "run" / "review.sqlite").symlink_to("/dev/zero")
    assert main(["review", str(tmp_path / "run"), "--no-browser"]) == 2
    assert main(["apply", str(tmp_path / "run")]) == 2


def tampered(run, tmp_path, *columns):
    """A log with one line in it that no page would write."""
    shutil.copytree(run, tmp_path / "run")
    result = labelmend.load(tmp_path / "run")
    from labelmend.review.decisions import Decisions, Subject

    Decisions(tmp_path / "run" / "review.sqlite", Subject.of(result)).close()
    with closing(sqlite3.connect(tmp_path / "run" / "review.sqlite")) as base, base:
        sample, kind, code = columns
        base.execute("INSERT INTO log VALUES (1, 1, ?, 'x', ?, ?, 'label', NULL, 'r', 't', 1.0)", (sample, kind, code))
    return tmp_path / "run"


@pytest.mark.parametrize(
    "line",
    [(-1, "label", 0), (60, "label", 0), (0, "label", 3), (0, "label", -1), (0, "label", None), ("a", "skip", 0)],
)
def test_a_log_about_samples_or_classes_that_are_not_is_refused(run, tmp_path, line):
    folder = tampered(run, tmp_path, *line)
    with pytest.raises(LabelmendError):
        labelmend.read_decisions(folder)
    for verb in ("apply", "review"):
        assert main([verb, str(folder)]) == 2


def test_a_line_of_the_run_is_read(run, tmp_path):
    ids, labels = labelmend.read_decisions(tampered(run, tmp_path, 59, "label", 2))
    assert (ids.tolist(), labels.tolist()) == (["59"], [2])
    assert np.array_equal(labels, [2])
