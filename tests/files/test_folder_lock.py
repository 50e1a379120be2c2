import os
import signal
import subprocess
import sys

import pytest

from labelmend.errors import CheckpointError
from labelmend.files import writing as folder_lock
from labelmend.files.writing import LOCK, locked, refuse_locked

HOLD = """
import sys, time, pathlib
from labelmend.files.writing import locked
with locked(pathlib.Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(100)
"""


def test_a_folder_is_made_and_names_the_process_that_uses_it(tmp_path):
    with locked(tmp_path / "a" / "b"):
        assert (tmp_path / "a" / "b" / LOCK).read_text() == str(os.getpid())


def test_another_process_is_kept_out_until_the_first_is_killed(tmp_path):
    other = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    try:
        assert other.stdout.readline() == "held\n"
        for enter in (lambda: locked(tmp_path, "RUN").__enter__(), lambda: refuse_locked(tmp_path, "RUN")):
            with pytest.raises(CheckpointError, match=f"one run at a time can use RUN. Process {other.pid} does so"):
                enter()
        other.send_signal(signal.SIGKILL)
        other.wait()
        refuse_locked(tmp_path, "RUN")
        with locked(tmp_path):
            pass
    finally:
        other.kill()
        other.wait()
        other.stdout.close()


def test_the_lock_goes_with_an_error_too(tmp_path):
    with pytest.raises(ZeroDivisionError), locked(tmp_path):
        _ = 1 / 0
    refuse_locked(tmp_path, "RUN")


def test_asking_makes_no_folder(tmp_path):
    refuse_locked(tmp_path / "a", "RUN")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_vanishes_while_it_is_locked_is_made_again(tmp_path, monkeypatch):
    lock, calls = folder_lock._lock, []

    def vanish(descriptor, name):
        if not calls:
            (tmp_path / "a" / LOCK).unlink()
            (tmp_path / "a").rmdir()
        calls.append(name)
        lock(descriptor, name)

    monkeypatch.setattr(folder_lock, "_lock", vanish)
    with locked(tmp_path / "a"):
        assert (tmp_path / "a" / LOCK).exists()
        assert len(calls) == 2


@pytest.mark.parametrize("lacking", ["module", "drive"])
def test_where_there_are_no_locks_a_run_goes_on_without(tmp_path, monkeypatch, lacking):
    def no_locks(*arguments):
        raise OSError(38, "Function not implemented")

    if lacking == "module":
        monkeypatch.setattr(folder_lock, "fcntl", None)
    else:
        monkeypatch.setattr(folder_lock.fcntl, "flock", no_locks)
    with locked(tmp_path):
        assert (tmp_path / LOCK).exists()
