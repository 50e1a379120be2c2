"""A review holds its run."""

import os
import subprocess
import sys

import pytest

from labelmend.errors import RunFolderError
from labelmend.storage.reviewed import Hold, refuse_held, replacing
from labelmend.storage.run_files import REVIEW_LOCK


def test_several_reviews_may_hold_a_run_and_the_last_leaves_nothing(tmp_path):
    one, other = Hold(tmp_path), Hold(tmp_path)
    for hold in (one, other):
        with pytest.raises(RunFolderError, match=str(os.getpid())):
            refuse_held(tmp_path)
        hold.release()
    refuse_held(tmp_path)
    one.release()
    assert list(tmp_path.iterdir()) == []


def test_a_review_does_not_begin_while_its_run_is_replaced(tmp_path):
    with replacing(tmp_path), pytest.raises(RunFolderError, match=str(tmp_path)):
        Hold(tmp_path)
    Hold(tmp_path).release()


def test_a_review_that_was_killed_holds_nothing(tmp_path):
    code = "import os, pathlib; from labelmend.storage.reviewed import Hold; h = Hold(pathlib.Path()); os._exit(9)"
    assert subprocess.run([sys.executable, "-c", code], cwd=tmp_path).returncode == 9
    assert (tmp_path / REVIEW_LOCK).exists()
    refuse_held(tmp_path)
