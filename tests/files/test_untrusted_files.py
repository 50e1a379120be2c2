"""Files that were damaged or made on purpose: one of the library's errors, before memory is asked for."""

import io
import json
import shutil
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

import labelmend
from blobs import QUICK, blobs
from labelmend.cli.main import main
from labelmend.errors import CheckpointError, DataError, LabelmendError, RunFolderError
from labelmend.export.patch import read_patch
from labelmend.files.reading import checked_fields, open_npz, parse_json, read_npy
from labelmend.inputs.pictures.find import find_pictures
from labelmend.inputs.tables import load_table
from labelmend.storage.checkpoint import Damaged, read
from labelmend.storage.job import JOB, read_job, working_folder
from labelmend.storage.run_folder import load_labels
from labelmend.storage.source import source_from

DEEP = "[" * 100_000


def npy(shape, dtype="<f4", data=b"\0" * 64):
    """An array whose header says more than there is."""
    header = str({"descr": dtype, "fortran_order": False, "shape": shape}).encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data


def npz(path, **members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(f"{name}.npy", data)
    return path


SHAPES = [(10**12, 10**6), (2**62, 2), (10, 10), (-1, 4), (2**40,)]


@pytest.mark.parametrize("shape", SHAPES)
def test_an_array_larger_than_its_file_is_refused_before_room_is_made(tmp_path, shape):
    (tmp_path / "x.npy").write_bytes(npy(shape))
    path = npz(tmp_path / "x.npz", X=npy(shape), images=npy(shape, "|u1"), y=npy((4,), "<i4"))
    for read_one in (
        lambda: read_npy(tmp_path / "x.npy"),
        lambda: load_table(tmp_path / "x.npy", "0"),
        lambda: load_table(path, "y", features="X"),
        lambda: find_pictures(path, "y"),
    ):
        with pytest.raises(DataError, match=r"x\.np[yz]"):
            read_one()


def test_a_member_that_claims_more_than_can_be_in_it_is_refused(tmp_path):
    path = npz(tmp_path / "x.npz", X=npy((4, 4)), y=npy((4,)))
    raw = bytearray(path.read_bytes())
    for mark, at in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):  # where each says the uncompressed size
        place = raw.index(mark) + at
        raw[place : place + 4] = struct.pack("<I", 2**31)
    path.write_bytes(raw)
    with pytest.raises(DataError, match="damaged"), open_npz(path) as arrays:
        arrays["X"]


def test_an_archive_that_is_locked_is_refused(tmp_path):
    path = npz(tmp_path / "x.npz", X=npy((4, 4)), y=npy((4,)))
    raw = bytearray(path.read_bytes())
    for mark, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        start = 0
        while (place := raw.find(mark, start)) >= 0:
            raw[place + at] |= 1
            start = place + 1
    path.write_bytes(raw)
    with pytest.raises(DataError, match="password"):
        load_table(path, "y")


@pytest.mark.parametrize("seed", range(4))
def test_flipped_bytes_are_told(tmp_path, seed):
    random = np.random.default_rng(seed)
    saved = io.BytesIO()
    np.savez(saved, X=random.normal(size=(20, 3)), y=np.arange(20) % 2)
    single = io.BytesIO()
    np.save(single, np.ones((20, 3)))
    for whole, name in ((saved.getvalue(), "x.npz"), (single.getvalue(), "x.npy")):
        for _ in range(60):
            raw = bytearray(whole)
            raw[random.integers(len(raw) if name == "x.npz" else 128)] ^= 1 << random.integers(8)
            (tmp_path / name).write_bytes(raw)
            try:
                table = load_table(tmp_path / name, "y" if name == "x.npz" else "0")
            except DataError:
                continue
            assert len(table.features)


# JSON


def test_json_that_is_nested_too_deeply_is_a_value_error():
    with pytest.raises(ValueError, match="too deeply"):
        parse_json(DEEP)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    features, true = blobs(60)
    return labelmend.correct(features, true, expert=QUICK).save(tmp_path_factory.mktemp("runs") / "run")


@pytest.fixture
def run(made, tmp_path):
    return Path(shutil.copytree(made, tmp_path / "run"))


WRONG = [DEEP, "", "null", "[]", "1", '"text"', '{"a": 1}', "\x00", "{" * 3000]


@pytest.mark.parametrize("text", WRONG, ids=lambda text: text[:8].replace("\0", "0"))
@pytest.mark.parametrize(
    "name", ["config.json", "summary.json", "history.json", "source.json", "profile.json", "model.json"]
)
def test_a_run_folder_with_other_json_is_refused(run, name, text):
    if (name, text) == ("history.json", "[]"):
        return  # a run of no rounds
    (run / name).write_text(text)
    with pytest.raises(RunFolderError):
        labelmend.load(run)


def test_every_value_of_another_type_is_told_or_harmless(run):
    """Each field of each record, one after the other; afterwards all that reads a run must know what to do."""
    for name in ("config.json", "summary.json", "history.json", "source.json", "profile.json"):
        whole = json.loads((run / name).read_text())
        for damaged in replaced(whole):
            (run / name).write_text(json.dumps(damaged))
            try:
                result = load_labels(run)
                result.summary()
            except LabelmendError:
                continue
        (run / name).write_text(json.dumps(whole))


def replaced(record, odd=({"x": 1}, "text")):
    """The record with one value at a time as something else; of lists the first."""
    entries = record.items() if isinstance(record, dict) else list(enumerate(record))[:1]
    for key, value in entries:
        for other in odd:
            if type(other) is not type(value):
                copy = record.copy()
                copy[key] = other
                yield copy
        if isinstance(value, dict | list):
            for inner in replaced(value, odd):
                copy = record.copy()
                copy[key] = inner
                yield copy


@pytest.mark.parametrize(
    "changes",
    [{"kind": "other"}, {"path": 5}, {"labels": ["a"]}, {"files": "a"}, {"files": [1]}, {"ignore": 3}, {"new": 1}],
)
def test_a_source_of_other_types_is_refused(run, changes):
    source = json.loads((run / "source.json").read_text())
    with pytest.raises((ValueError, TypeError)):
        source_from({**source, **changes})
    (run / "source.json").write_text(json.dumps({**source, **changes}))
    with pytest.raises(RunFolderError, match="damaged"):
        load_labels(run)


PATCH = {
    **{"format": "labelmend patch", "format_version": 1, "fingerprint": "f", "data": None, "labels": "y"},
    **{"id": None, "missing": None, "samples": 3},
    "changes": [{"id": "0", "old": "a", "new": "b", "confidence": 0.5}],
}


def test_patches_of_other_types_are_refused(tmp_path):
    path = tmp_path / "p.json"
    path.write_text(json.dumps(PATCH))
    assert len(read_patch(path).changes) == 1
    changes = [{"samples": "3"}, {"labels": 7}, {"id": [1]}, {"changes": {"a": 1}}, {"changes": [None]}]
    changes += [{"changes": [{**PATCH["changes"][0], **odd}]} for odd in ({"id": 3}, {"confidence": "x"}, {"old": []})]
    for text in (DEEP, *(json.dumps({**PATCH, **change}) for change in changes)):
        path.write_text(text)
        with pytest.raises(DataError, match=r"p\.json must be a patch"):
            read_patch(path)


@pytest.mark.parametrize("text", [*WRONG, '{"format": "labelmend job", "format_version": 1}'])
def test_a_job_that_was_changed_is_refused(tmp_path, text):
    working = working_folder(tmp_path / "run")
    working.mkdir()
    (working / JOB).write_text(text)
    with pytest.raises(CheckpointError, match=r"job\.json"):
        read_job(tmp_path / "run")


@pytest.mark.parametrize(
    "changes",
    [
        {"folder": 3},
        {"options": []},
        {"parameters": "x"},
        {"options": {"data": 7}},
        {"options": {"ignore": "abc"}},
        {"options": {"no": "such"}},
        {"parameters": {"no_such": 1}},
        {"parameters": {"n_rounds": "many"}},
        {"options": {"force": "no"}},
        {"options": {"time_limit": []}},
        {"options": {"checkpoint_every": "x"}},
        {"options": {"missing": 3}},
        {"options": {"labels": {}}},
    ],
)
def test_going_on_with_a_job_of_other_types_is_refused(tmp_path, monkeypatch, changes, capsys):
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text("a,y\n" + "1,u\n2,v\n" * 4)
    working = working_folder(Path("run"))
    working.mkdir()
    options = {"data": "t.csv", "labels": "y", **(changes.get("options") or {})}
    job = {"format": "labelmend job", "format_version": 1, "folder": str(tmp_path), "options": {}, "parameters": {}}
    job = {**job, **changes, "options": options if isinstance(changes.get("options", {}), dict) else []}
    (working / JOB).write_text(json.dumps(job))
    assert main(["correct", "--resume", "run", "--quiet"]) == 2
    assert "labelmend: " in capsys.readouterr().err


def test_a_checkpoint_of_another_kind_is_damaged(tmp_path):
    from safetensors.numpy import save_file

    save_file({"a": np.zeros(2)}, tmp_path / "c", {"about": DEEP, "checksum": "0"})
    with pytest.raises(Damaged):
        read(tmp_path / "c")


def test_records_hold_what_their_annotations_say():
    assert checked_fields(source_from({"kind": "arrays"})).kind == "arrays"
    with pytest.raises(ValueError, match="files is"):
        source_from({"kind": "pictures", "files": [None]})
