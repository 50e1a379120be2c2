"""The floor plan: what may import what, how many files the hall has, and who may see true labels."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import labelmend

PACKAGE = Path(labelmend.__file__).parent
MOST_IN_THE_HALL = 9
STAY_OUT = ("labelmend.storage", "labelmend.inputs", "labelmend.report", "labelmend.cli", "sqlite3", "csv")
ALLOWED_TRUTH = re.compile(r"diagnosis/|self_test/|cli/demo")  # what plants errors, scores against them, or shows them


def test_the_hall_has_at_most_nine_modules():
    hall = sorted(path.name for path in PACKAGE.glob("*.py"))
    assert len(hall) <= MOST_IN_THE_HALL, hall


def test_the_method_is_imported_without_files_readers_pages_or_commands():
    """Torch itself loads csv, by way of importlib.metadata: what it brings is not the library's doing."""
    code = (
        "import sys, torch; before = set(sys.modules); import labelmend.ensemble.run; print(*set(sys.modules) - before)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stdout.split()
    assert "labelmend.ensemble.run" in loaded
    below = tuple(f"{name}." for name in STAY_OUT)
    assert sorted(name for name in loaded if name in STAY_OUT or name.startswith(below)) == []


def test_imports_go_downward_only():
    """The contracts of [tool.importlinter] in pyproject.toml."""
    pytest.importorskip("importlinter")
    words = [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"]
    done = subprocess.run([*words, "--no-cache"], cwd=PACKAGE.parents[1], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_true_labels_are_seen_only_where_errors_are_planted():
    names = {
        path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py") if "true_labels" in path.read_text()
    }
    assert sorted(name for name in names if not ALLOWED_TRUTH.match(name)) == []
