"""A run that was interrupted ends like one that was not, bit for bit; whatever else is found in its folder is told."""

import dataclasses
import functools
import json
import math
import os
import pickle
import re
import warnings

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn
from torch.testing import assert_close

import labelmend
from blobs import QUICK, blobs, plant
from coloured import TINY, coloured
from labelmend.config import as_arguments
from labelmend.ensemble.nets import MLP
from labelmend.errors import CheckpointError, ConfigError, LabelmendWarning
from labelmend.files import writing
from labelmend.files.writing import locked
from labelmend.storage import checkpoint
from labelmend.storage.checkpoint import Checkpoints, Damaged, Subject, kept, read, write

ROUNDS = 4


class Interrupted(BaseException):
    """Not caught by anyone, like a Ctrl-C."""


class Dropout(MLP):
    """Draws from torch's global generator."""

    def forward(self, x):
        features, logits = super().forward(nn.functional.dropout(x, 0.2, self.training))
        return features, logits


def on_vectors(**more):
    features, true = blobs(75)
    return labelmend.correct(features, plant(true, 0.12)[0], **as_arguments({**QUICK, "n_rounds": ROUNDS, **more}))


def on_pictures(**more):
    pixels, true = coloured(45)
    settings = {**TINY, "n_rounds": ROUNDS, "correct_every": 2, "warmup_passes": 1}
    return labelmend.correct_images(pixels, plant(true, 0.1)[0], mode="train", **as_arguments({**settings, **more}))


RUNS = {
    "vectors": on_vectors,
    "vectors, dropout, a split for all rounds, nets in the decision": functools.partial(
        on_vectors, net=lambda n, c: Dropout(n, 16, c), resplit=False, held_out_passes=1, momentum=0.5
    ),
    "vectors, paper, soft labels, delayed, no noisy branch": functools.partial(
        on_vectors,
        preset="paper",
        graph_k=5,
        alpha=0.9,
        soft_labels=True,
        label_delay=1,
        noisy_branch=False,
        correct_every=2,
    ),
    "pictures": on_pictures,
    "pictures, posterior labels, no momentum": functools.partial(
        on_pictures, round_labels="posterior", correct_every=1, momentum=0.0, average_decay=0.0, consistency=0.0
    ),
}


@functools.cache
def uninterrupted(name):
    return RUNS[name]()


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "checkpoints"


def interrupt(run, folder, at, **more):
    """Play until round `at` is over, or until the stage `at` has begun as often as said."""
    stage, times = at if isinstance(at, tuple) else (None, 0)
    seen = []

    def progress(name):
        seen.append(name)
        if seen.count(stage) == times > 0:
            raise Interrupted

    def callback(record, state):
        if record.round_index == at:
            raise Interrupted

    with pytest.raises(Interrupted):
        run(checkpoints=folder, checkpoint_every=0, callback=callback, progress=progress, **more)
    return seen


def resume(run, folder, **more):
    return run(checkpoints=folder, checkpoint_every=0, **more)


def assert_same(one, other):
    for name in ("labels", "status", "confidence", "certainty", "runner_up", "transition", "neighbors"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    assert (one.votes != other.votes).nnz == 0
    assert one.noise_rate == other.noise_rate
    mine, theirs = ([dataclasses.replace(record, seconds={}) for record in r.history] for r in (one, other))
    assert mine == theirs
    # Trained nets stand alone; the model of vectors and of embedded pictures is a head.
    weights, others = (getattr(r.model, "head", None) or r.model.net for r in (one, other))
    weights, others = weights.state_dict(), others.state_dict()
    assert weights.keys() == others.keys()
    for name, value in weights.items():
        assert torch.equal(value, others[name]), name


def names(folder):
    return sorted(path.name for path in folder.iterdir() if path.name != "lock")


# Going on


@pytest.mark.parametrize("name", RUNS)
def test_interrupted_after_every_round_a_run_ends_as_if_it_was_not(name, folder):
    """One process after the other, each ended after one more round."""
    for last in range(1, ROUNDS + 1):
        stages = interrupt(RUNS[name], folder, at=last)
        assert ("warm-up" in stages) == (last == 1)
        assert (f"resuming after round {last - 1} of {ROUNDS}" in stages) == (last > 1)
        assert names(folder) == [f"round-{k:06d}.safetensors" for k in (last - 1, last)]
    torch.rand(3)  # what others draw from torch's generator does not matter
    result = resume(RUNS[name], folder)
    assert_same(result, uninterrupted(name))
    assert result.warnings == uninterrupted(name).warnings


@pytest.mark.parametrize("name", ["vectors", "pictures"])
@pytest.mark.parametrize("at", [("warm-up", 1), ("vote", 1), ("branches", 2), ("train", 3), ("decide", 1)], ids=str)
def test_interrupted_within_a_round_or_the_decision_a_run_ends_as_if_it_was_not(name, at, folder):
    interrupt(RUNS[name], folder, at)
    assert_same(resume(RUNS[name], folder), uninterrupted(name))


def test_after_the_last_round_only_the_decision_is_left(folder):
    first = resume(on_vectors, folder)
    stages = []
    again = resume(on_vectors, folder, progress=stages.append)
    assert stages == [f"resuming after round {ROUNDS} of {ROUNDS}", "decide", "profile", "map"]
    assert_same(again, first)
    assert again.seconds > sum(sum(record.seconds.values()) for record in again.history)


def test_checkpoints_change_nothing(folder):
    assert_same(resume(on_vectors, folder), uninterrupted("vectors"))


def test_embedded_pictures_go_on_too(folder, tmp_path):
    from coloured import TinyBackbone

    pixels, true = coloured(45)
    run = functools.partial(
        labelmend.correct_images,
        pixels,
        true,
        mode="embed",
        backbone=TinyBackbone(),
        cache=tmp_path / "cache",
        expert=TINY,
    )
    expected = run(size=8)
    interrupt(run, folder, at=2, size=8)
    with pytest.raises(CheckpointError, match=r"have changed: features, pictures or pred_probs\."):
        resume(functools.partial(run, size=6), folder)
    other = functools.partial(run, backbone=TinyBackbone(seed=1), size=8)
    with pytest.raises(CheckpointError, match=r"have changed: features, pictures or pred_probs\."):
        resume(other, folder)
    assert_same(resume(run, folder, size=8), expected)


def test_without_a_folder_nothing_is_kept(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    on_vectors(checkpoint_every=0)
    assert os.listdir() == []


# Files


def test_a_kill_in_the_middle_of_writing_leaves_the_checkpoint_before(folder, monkeypatch):
    whole = checkpoint.save_file

    def killed(tensors, path, metadata):
        whole(tensors, path, metadata)
        if "round-000003" in path.name:
            os.truncate(path, os.path.getsize(path) // 2)
            raise Interrupted

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "save_file", killed)
        with pytest.raises(Interrupted):
            resume(on_vectors, folder)
    assert names(folder) == ["round-000001.safetensors", "round-000002.safetensors"]
    partial = folder / ".round-000003.safetensors.1234abcd.partial"  # as kill -9 leaves it
    partial.write_bytes((folder / "round-000002.safetensors").read_bytes()[:500])
    assert_same(resume(on_vectors, folder), uninterrupted("vectors"))
    assert not partial.exists()


def cut_short(path):
    os.truncate(path, os.path.getsize(path) - 100)


def emptied(path):
    path.write_bytes(b"")


def one_bit_changed(path):
    content = bytearray(path.read_bytes())
    content[-50] ^= 4
    path.write_bytes(content)


def one_digit_of_the_history_changed(path):
    content = path.read_bytes()
    changed = re.sub(rb'(\\"mean_certainty\\": 0\.)(\d)', lambda m: m[1] + b"%d" % (9 - int(m[2])), content, count=1)
    assert changed != content
    path.write_bytes(changed)


def something_else(path):
    save_file({"x": torch.ones(3)}, path)


DAMAGES = [cut_short, emptied, one_bit_changed, one_digit_of_the_history_changed, something_else]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_damaged_checkpoint_is_told_and_the_one_before_used(damage, folder):
    interrupt(on_vectors, folder, at=3)
    damage(folder / "round-000003.safetensors")
    with pytest.warns(LabelmendWarning, match=r"round-000003\.safetensors was damaged \(.+\); the run went on from"):
        result = resume(on_vectors, folder)
    assert_same(result, uninterrupted("vectors"))
    assert "after round 2" in result.warnings[-1]


def test_a_damaged_checkpoint_does_not_count_as_one_of_two(folder):
    interrupt(on_vectors, folder, at=3)
    emptied(folder / "round-000003.safetensors")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        interrupt(on_vectors, folder, at=("train", 1))
    assert names(folder) == ["round-000002.safetensors"]


def test_if_every_checkpoint_is_damaged_the_way_out_is_told(folder):
    interrupt(on_vectors, folder, at=3)
    for path in kept(folder):
        emptied(path)
    with pytest.raises(CheckpointError, match=r"all 2 in .+ are damaged.+Begin anew: delete the folder"):
        resume(on_vectors, folder)
    assert len(kept(folder)) == 2


def test_a_full_disk_ends_no_run_and_costs_no_older_checkpoint(folder, monkeypatch):
    whole = checkpoint.save_file

    def full(tensors, path, metadata):
        if "round-000003" in path.name or "round-000004" in path.name:
            raise OSError("No space left on device")
        whole(tensors, path, metadata)

    monkeypatch.setattr(checkpoint, "save_file", full)
    with pytest.warns(LabelmendWarning, match="could not be written: No space left on device"):
        result = resume(on_vectors, folder)
    assert_same(result, uninterrupted("vectors"))
    assert result.warnings == [
        f"the checkpoint after round {k} could not be written: No space left on device" for k in (3, 4)
    ]
    assert names(folder) == ["round-000001.safetensors", "round-000002.safetensors"]


def test_an_older_checkpoint_goes_only_when_the_new_one_has_its_name(folder, monkeypatch):
    seen, flush = [], writing.flush_names
    monkeypatch.setattr(writing, "flush_names", lambda path: (seen.append(len(kept(path))), flush(path)))
    resume(on_vectors, folder)
    assert seen == [1, 2, 3, 3, 3]
    assert len(kept(folder)) == 2


def test_loading_unpickles_nothing(folder, monkeypatch):
    def refuse(*args, **named):
        raise AssertionError("pickle")

    for owner, name in ((pickle, "loads"), (pickle, "load"), (pickle, "Unpickler"), (torch, "load"), (torch, "save")):
        monkeypatch.setattr(owner, name, refuse)
    interrupt(on_vectors, folder, at=2)
    assert_same(resume(on_vectors, folder), uninterrupted("vectors"))
    for path in kept(folder):  # a header of JSON, then numbers and nothing else
        content = path.read_bytes()
        size = int.from_bytes(content[:8], "little")
        header = json.loads(content[8 : 8 + size])
        json.loads(header.pop("__metadata__")["about"])
        assert 8 + size + max(entry["data_offsets"][1] for entry in header.values()) == len(content)


def test_tensors_come_back_with_their_order_in_memory(tmp_path):
    tensors = {
        "plain": torch.arange(6.0).view(2, 3),
        "channels last": torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last),
        "turned": torch.randn(3, 4).t(),
        "number": torch.tensor(7),
        "none": torch.zeros(0, 3),
        "expanded": torch.ones(1).expand(4),
        "yes or no": torch.tensor([True, False]),
    }
    tensors["twice"] = tensors["plain"]
    write(tmp_path / "file", tensors, {"format": checkpoint.FORMAT, "x": math.pi})
    found, about = read(tmp_path / "file")
    assert about == {"format": checkpoint.FORMAT, "x": math.pi}
    assert found.keys() == tensors.keys()
    for name, value in tensors.items():
        assert torch.equal(found[name], value)
        assert found[name].stride() == torch.empty_like(value).stride(), name
        assert found[name].dtype == value.dtype
        assert found[name].data_ptr() % 64 == 0
    with pytest.raises(Damaged, match="no such file"):
        read(tmp_path / "other")


# When


def test_a_checkpoint_is_written_when_the_last_is_long_enough_ago(folder, monkeypatch):
    now, wrote = [100.0], []
    monkeypatch.setattr(checkpoint, "write", lambda path, tensors, about: wrote.append((path.name[6:12], about)))
    monkeypatch.setattr(checkpoint, "to_tensors", lambda state: {})
    checkpoints = Checkpoints(folder, Subject({}, {}, torch.zeros(0)), every=20, clock=lambda: now[0])

    class State:
        history = ()

    for State.round_index, seconds in enumerate([5, 14, 2, 19, 1, 20, 50]):
        now[0] += seconds
        checkpoints.save(State)
    assert [name for name, _ in wrote] == ["000002", "000004", "000005", "000006"]
    assert wrote[0][1]["seconds"] == 21


@pytest.mark.parametrize(("every", "rounds"), [(20, [0, 3]), (50, [1, 4]), (0, [0, 1, 2, 3, 4, 5])])
def test_a_slow_disk_takes_a_tenth_of_the_time_unless_every_round_was_asked_for(every, rounds, folder, monkeypatch):
    now, wrote = [0.0], []

    def slow(path, tensors, about):
        wrote.append(int(path.name[6:12]))
        now[0] += 6

    monkeypatch.setattr(checkpoint, "write", slow)
    monkeypatch.setattr(checkpoint, "to_tensors", lambda state: {})
    checkpoints = Checkpoints(folder, Subject({}, {}, torch.zeros(0)), every=every, clock=lambda: now[0])

    class State:
        history = ()

    for State.round_index in range(6):
        now[0] += 25
        checkpoints.save(State)
    assert wrote == rounds


@pytest.mark.parametrize("every", [-1, math.nan, "soon"])
def test_the_time_between_checkpoints_is_checked(every, folder):
    with pytest.raises(ConfigError, match="checkpoint_every must be seconds, at least 0"):
        on_vectors(checkpoints=folder, checkpoint_every=every)


# Other runs


def altered(**changes):
    """The run on vectors with other data: a row less, another label, another value, a trusted row."""
    features, true = blobs(75)
    given = plant(true, 0.12)[0]
    if changes.pop("row", False):
        features, given = features[1:], given[1:]
    if changes.pop("label", False):
        given[5] = (given[5] + 1) % 3
    if changes.pop("value", False):
        features[5, 2] += 1e-6
    if changes.pop("trusted", False):
        changes["trusted"] = np.arange(75) == 3
    return labelmend.correct(features, given, **as_arguments({**QUICK, "n_rounds": ROUNDS, **changes}))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"row": True}, r"rows \(74, were 75\)\."),
        ({"label": True}, r"given labels\."),
        ({"value": True}, r"features, pictures or pred_probs\."),
        ({"trusted": True}, r"trusted marks\."),
        ({"n_rounds": 5}, r"n_rounds \(5, was 4\)\."),
        ({"seed": 3, "alpha": 0.5}, r"alpha \(0\.5, was 0\.9\), fine_alpha \(0\.5, was 0\.9\), seed \(3, was 0\)\."),
    ],
    ids=str,
)
def test_what_differs_from_the_run_that_was_begun_is_told(change, words, folder):
    interrupt(on_vectors, folder, at=1)
    with pytest.raises(CheckpointError, match=f"these have changed: {words}"):
        resume(functools.partial(altered, **change), folder)
    assert_same(resume(altered, folder), uninterrupted("vectors"))


def test_auto_and_the_device_it_found_are_the_same(folder, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    interrupt(on_vectors, folder, at=1, device="auto")
    assert_same(resume(on_vectors, folder), uninterrupted("vectors"))


def test_another_net_is_refused(folder):
    interrupt(on_vectors, folder, at=1)
    with pytest.raises(CheckpointError, match="must be of the same nets"):
        resume(functools.partial(on_vectors, net=lambda n, c: MLP(n, 17, c)), folder)


def test_another_version_is_refused(folder, monkeypatch):
    interrupt(on_vectors, folder, at=1)
    monkeypatch.setattr(checkpoint, "FORMAT_VERSION", 99)
    with pytest.raises(CheckpointError, match=r"must be of format 99\. Those in .+ are of format 1"):
        resume(on_vectors, folder)


def test_a_net_whose_state_is_not_made_of_tensors_is_told_at_once(folder):
    class Counting(MLP):
        def get_extra_state(self):
            return {"calls": 3}

        def set_extra_state(self, state):
            pass

    stages = []
    with pytest.raises(ConfigError, match="Counting has _extra_state, a dict"):
        resume(functools.partial(on_vectors, net=lambda n, c: Counting(n, 16, c)), folder, progress=stages.append)
    assert stages == []


def test_buffers_that_a_net_does_not_save_are_kept(folder):
    class Remembering(MLP):
        def __init__(self, *shape):
            super().__init__(*shape)
            self.register_buffer("seen", torch.zeros(()), persistent=False)

        def forward(self, x):
            if self.training:
                self.seen += 0.01
            features, logits = super().forward(x)
            return features, logits + self.seen * torch.arange(logits.shape[1])

    run = functools.partial(on_vectors, net=lambda n, c: Remembering(n, 16, c))
    expected = run()
    interrupt(run, folder, at=2)
    result = resume(run, folder)
    assert_same(result, expected)
    assert_close(result.model.net.seen, expected.model.net.seen)


def test_one_run_at_a_time_uses_a_folder(folder):
    with locked(folder), pytest.raises(CheckpointError, match=f"Process {os.getpid()} does so now; wait for it"):
        resume(on_vectors, folder)
    assert_same(resume(on_vectors, folder), uninterrupted("vectors"))


def test_a_folder_one_cannot_write_to_is_told(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(CheckpointError, match="/file/checkpoints"):
        on_vectors(checkpoints=tmp_path / "file" / "checkpoints")
