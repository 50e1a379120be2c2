import os
import resource
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from labelmend.errors import CacheError, ConfigError
from labelmend.inputs.backbones import Backbone
from labelmend.inputs.pictures import features as feature_cache
from labelmend.inputs.pictures.features import FeatureCache, backbone_features, cache_key

CPU = torch.device("cpu")


class Corners(nn.Module):
    """Upper left pixel and mean; counts the pictures it has seen, and may stop at one."""

    def __init__(self, stop_at=None):
        super().__init__()
        self.stop_at, self.seen, self.largest = stop_at, 0, 0

    def forward(self, x):
        if self.stop_at is not None and self.seen + len(x) > self.stop_at:
            raise KeyboardInterrupt
        self.seen += len(x)
        self.largest = max(self.largest, len(x))
        return torch.cat((x[:, :, 0, 0], x.mean(dim=(1, 2, 3))[:, None]), dim=1)


def make(net, identity="corners 1", size=4, **options):
    return Backbone("Corners", size, identity, lambda: net, mean=(0.0,) * 3, std=(1.0,) * 3, **options)


def pictures(n=100, side=4, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (n, side, side, 3), dtype=np.uint8)


def expected(pixels):
    return np.concatenate((pixels[:, 0, 0], pixels.mean(axis=(1, 2, 3))[:, None]), axis=1)


def never():
    pytest.fail("the backbone was opened")


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(feature_cache, "BLOCK_ROWS", 40)


@pytest.mark.parametrize("n", [1, 39, 40, 41, 100])
def test_every_picture_gets_its_features_in_order(tmp_path, n):
    pixels, net = pictures(n), Corners()
    features = backbone_features(pixels, make(net), tmp_path, "f", CPU)
    assert features.dtype == np.float32
    np.testing.assert_allclose(features, expected(pixels), rtol=1e-5)
    assert net.seen == n
    assert net.largest <= 32


def test_pixels_may_be_mapped_from_a_file(tmp_path):
    np.save(tmp_path / "pixels.npy", pictures())
    mapped = np.load(tmp_path / "pixels.npy", mmap_mode="r")
    features = backbone_features(mapped, make(Corners()), tmp_path / "cache", "f", CPU)
    np.testing.assert_allclose(features, expected(pictures()), rtol=1e-5)


def test_finished_features_are_read_back_without_the_backbone(tmp_path):
    first = backbone_features(pictures(), make(Corners()), tmp_path, "f", CPU)
    asleep = Backbone("Corners", 4, "corners 1", never, mean=(0.0,) * 3, std=(1.0,) * 3)
    again = backbone_features(pictures(), asleep, tmp_path, "f", CPU)
    np.testing.assert_array_equal(first, again)
    assert [path.suffix for path in tmp_path.iterdir()] == [".npy"]


def test_the_result_may_be_changed_without_changing_the_cache(tmp_path):
    backbone_features(pictures(), make(Corners()), tmp_path, "f", CPU)[:] = 0
    again = backbone_features(pictures(), make(Corners()), tmp_path, "f", CPU)
    np.testing.assert_allclose(again, expected(pictures()), rtol=1e-5)


@pytest.mark.parametrize(
    "change",
    [
        {"fingerprint": "g"},
        {"shape": (100, 5, 4, 3)},
        {"backbone": make(None, identity="corners 2")},
        {"backbone": make(None, size=8)},
        {"backbone": Backbone("Corners", 4, "corners 1", never)},
    ],
)
def test_whatever_changes_features_changes_their_place(change):
    usual = {"shape": (100, 4, 4, 3), "backbone": make(None), "fingerprint": "f"}
    assert cache_key(**usual) == cache_key(**usual)
    assert cache_key(**{**usual, **change}) != cache_key(**usual)


@pytest.mark.parametrize("name", ["hf:someone/model", "../../out", "Ünï/…", "", "x" * 300])
def test_names_of_backbones_are_safe_in_file_names(name):
    key = cache_key((1, 1, 1, 3), Backbone(name, 4, "i", never), "f")
    assert Path(key).name == key
    assert key.isascii()
    assert not key.startswith(".")
    assert len(key) < 100


def test_an_interrupted_run_goes_on_at_its_last_block(tmp_path):
    pixels, steps = pictures(130), []
    with pytest.raises(KeyboardInterrupt):
        backbone_features(pixels, make(Corners(stop_at=100)), tmp_path, "f", CPU)
    assert not list(tmp_path.glob("*.npy"))
    net = Corners()
    features = backbone_features(pixels, make(net), tmp_path, "f", CPU, lambda *step: steps.append(step))
    assert net.seen == 130 - 80
    assert steps == [(112, 130), (120, 130), (130, 130)]
    np.testing.assert_allclose(features, expected(pixels), rtol=1e-5)
    whole = backbone_features(pixels, make(Corners()), tmp_path / "other", "f", CPU)
    np.testing.assert_array_equal(features, whole)


@pytest.mark.parametrize("damage", [b"", b"nonsense", None])
def test_damaged_blocks_are_computed_again(tmp_path, damage):
    pixels = pictures(100)
    with pytest.raises(KeyboardInterrupt):
        backbone_features(pixels, make(Corners(stop_at=90)), tmp_path, "f", CPU)
    block = sorted(tmp_path.glob("*.blocks/*.npy"))[0]
    block.write_bytes(block.read_bytes()[:-8] if damage is None else damage)
    net = Corners()
    features = backbone_features(pixels, make(net), tmp_path, "f", CPU)
    assert net.seen == 40 + 20
    np.testing.assert_allclose(features, expected(pixels), rtol=1e-5)


def test_a_damaged_result_is_computed_again(tmp_path):
    backbone_features(pictures(), make(Corners()), tmp_path, "f", CPU)
    (path,) = tmp_path.glob("*.npy")
    path.write_bytes(path.read_bytes()[:-1])
    features = backbone_features(pictures(), make(Corners()), tmp_path, "f", CPU)
    np.testing.assert_allclose(features, expected(pictures()), rtol=1e-5)


def test_a_run_killed_at_any_moment_leaves_nothing_half_valid(tmp_path):
    script = textwrap.dedent(
        """
        import sys, time
        from pathlib import Path
        import test_backbone_features as t
        t.feature_cache.BLOCK_ROWS = 40

        class Slow(t.Corners):
            def forward(self, x):
                print("batch", flush=True)
                time.sleep(0.01)
                return super().forward(x)

        t.backbone_features(t.pictures(4000), t.make(Slow()), Path(sys.argv[1]), "f", t.CPU)
        """
    )
    path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path}
    command = [sys.executable, "-c", script, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as process:
        for _ in range(9):
            process.stdout.readline()
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    kept = len(list(tmp_path.glob("*.blocks/[0-9]*.npy")))
    assert 1 <= kept < 100
    net = Corners()
    features = backbone_features(pictures(4000), make(net), tmp_path, "f", CPU)
    assert net.seen == 4000 - 40 * kept
    np.testing.assert_allclose(features, expected(pictures(4000)), rtol=1e-5)
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize(("limit", "kept"), [(500, 0), (1000, 3)])
def test_a_full_disk_is_a_clear_error_and_what_was_computed_stays(tmp_path, limit, kept):
    """A limit on the size of a file stands for the full disk: blocks take 768 bytes, the whole 1728."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        with pytest.raises(CacheError, match=r"must be writable and have room.*File too large.*kept"):
            backbone_features(pictures(), make(Corners()), tmp_path, "f", CPU)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    (blocks,) = tmp_path.iterdir()
    assert len(list(blocks.iterdir())) == kept
    net = Corners()
    features = backbone_features(pictures(), make(net), tmp_path, "f", CPU)
    assert net.seen == (0 if kept else 100)
    np.testing.assert_allclose(features, expected(pictures()), rtol=1e-5)


def test_a_cache_that_is_no_folder(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(CacheError, match="must be writable"):
        backbone_features(pictures(), make(Corners()), tmp_path / "file", "f", CPU)


def test_two_runs_over_the_same_pictures_do_not_disturb_each_other(tmp_path):
    pixels, results = pictures(400), {}

    def work(name):
        results[name] = np.array(backbone_features(pixels, make(Corners()), tmp_path, "f", CPU))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4
    for features in results.values():
        np.testing.assert_allclose(features, expected(pixels), rtol=1e-5)


def test_a_slower_run_takes_the_result_of_a_faster_one(tmp_path):
    slow = FeatureCache(tmp_path, "k", 50)
    rows = np.arange(100, dtype=np.float32).reshape(50, 2)
    for span in slow.spans():
        slow.write(span, rows[slice(*span)])
    FeatureCache(tmp_path, "k", 50).finish()
    np.testing.assert_array_equal(slow.finish(), rows)


def test_the_next_pictures_are_read_while_the_net_works(tmp_path):
    """The net does not return before the pictures after its own were asked for."""
    asked, own = threading.Semaphore(0), threading.Event()

    class Watched(np.ndarray):
        def __getitem__(self, index):
            if own.is_set():
                asked.release()
            own.set()  # the very first is the net's own
            return np.asarray(self)[index]

    class Waiting(Corners):
        def forward(self, x):
            assert self.seen + len(x) == 100 or asked.acquire(timeout=10)
            return super().forward(x)

    pixels = pictures().view(Watched)
    backbone_features(pixels, make(Waiting()), tmp_path, "f", CPU)


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="asks Linux how much memory a mapping takes")
def test_memory_does_not_grow_with_the_number_of_pictures(tmp_path, monkeypatch):
    monkeypatch.setattr(feature_cache, "BLOCK_ROWS", 400)
    path = tmp_path / "pixels.npy"
    np.save(path, pictures(8000, side=32))
    mapped = np.load(path, mmap_mode="r")
    resident = []

    def note(done, total):
        if done % 400 == 0:  # a block's last batch, before it is let go
            resident.append(resident_kilobytes(path))

    backbone_features(mapped, make(Corners(), size=32), tmp_path, "f", CPU, note)
    assert 0 < max(resident) < path.stat().st_size / 1024 / 2


def resident_kilobytes(path):
    lines = Path("/proc/self/smaps").read_text().splitlines()
    starts = [i for i, line in enumerate(lines) if line.endswith(str(path))]
    return sum(int(next(line for line in lines[i:] if line.startswith("Rss:")).split()[1]) for i in starts)


def test_changes_made_in_memory_to_a_mapped_file_survive(tmp_path):
    np.save(tmp_path / "pixels.npy", np.zeros((100, 4, 4, 3), np.uint8))
    mapped = np.load(tmp_path / "pixels.npy", mmap_mode="c")
    mapped[:] = pictures()
    features = backbone_features(mapped, make(Corners()), tmp_path / "cache", "f", CPU)
    np.testing.assert_allclose(features, expected(pictures()), rtol=1e-5)
    np.testing.assert_array_equal(mapped, pictures())


def test_features_must_be_finite(tmp_path):
    class Broken(nn.Module):
        def forward(self, x):
            return 1 / (x.mean(dim=(2, 3)) - 7)

    pixels = pictures()
    pixels[57] = 7
    with pytest.raises(ConfigError, match=r"finite.* 1 of 40 .*position 57"):
        backbone_features(pixels, make(Broken()), tmp_path, "f", CPU)
    assert not list(tmp_path.glob("*.npy"))
