"""What a benchmark hands back, and the record of it with machine, versions, n and spread; knows no data, no method."""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labelmend import __version__
from labelmend.self_test.comparison import Figures
from labelmend.storage.source import version_of

VERSION = 1  # of the JSON
LIBRARIES = ("numpy", "scipy", "scikit-learn", "torch", "triton", "cleanlab")
OURS = "labelmend"
Say = Callable[[str], None]
Facts = dict[str, Any]  # worked out from the measurements; "notes" are sentences to print under the table


@dataclass(frozen=True)
class Trial:
    """One line of a table, with one seed."""

    name: str  # of the case
    method: str
    figures: Figures
    note: str | None = None  # why there are no figures
    test_by_round: Sequence[float] = ()
    seed: int = 0


@dataclass(frozen=True)
class Findings:
    trials: Sequence[Trial]
    facts: Facts


@dataclass(frozen=True)
class Benchmark:
    about: str
    add_options: Callable[[argparse.ArgumentParser], None]
    measure: Callable[[argparse.Namespace, int, Say], Findings]  # options, number of seeds, progress
    seeds: int | None = 1  # None: it is repeated in a way of its own


def whole_record(
    name: str, about: str, command: str, quick: bool, facts: Facts, trials: Sequence[Trial]
) -> dict[str, Any]:
    """All that is known of a run, ready for JSON."""
    return {
        "version": VERSION,
        "benchmark": name,
        "about": about,
        "command": command,
        "quick": quick,
        "date": time.strftime("%Y-%m-%d"),
        "machine": machine(),
        "versions": versions(),
        "facts": facts,
        "rows": summarise(trials),
    }


def command_line(name: str, parser: argparse.ArgumentParser, options: argparse.Namespace) -> str:
    """How to run it again; where files are is left out."""
    words = [f"python -m bench {name}"]
    for action in parser._actions:
        value = getattr(options, action.dest, None)
        if action.dest in ("help", "out") or value == action.default:
            continue
        words.append(action.option_strings[0])
        if isinstance(value, Path):
            words.append(str(action.metavar))
        elif value is not True:
            words += [f'"{v}"' if " " in str(v) else str(v) for v in (value if isinstance(value, list) else [value])]
    return " ".join(words)


def summarise(trials: Sequence[Trial]) -> list[dict[str, Any]]:
    """One row per case and method, with mean and spread of every figure."""
    groups: dict[tuple[str, str], list[Trial]] = {}
    for trial in trials:
        groups.setdefault((trial.name, trial.method), []).append(trial)
    rows = []
    for (case, method), group in groups.items():
        names = dict.fromkeys(name for trial in group for name in trial.figures)
        summaries = {name: spread([trial.figures.get(name) for trial in group]) for name in names}
        note = next((trial.note for trial in group if trial.note), None)
        figures = {name: summary for name, summary in summaries.items() if summary["n"]}
        rows.append({"case": case, "method": method, "note": note, "figures": figures})
    return rows


def spread(values: list[float | None]) -> dict[str, Any]:
    """n, mean, median and sample standard deviation (None for a single value) of the values that are defined."""
    known = [round(value, 6) for value in values if value is not None]
    return {
        "n": len(known),
        "mean": statistics.fmean(known) if known else None,
        "median": statistics.median(known) if known else None,
        "spread": statistics.stdev(known) if len(known) > 1 else None,
        "values": known,
    }


def machine() -> dict[str, Any]:
    import torch

    return {
        "cpu": cpu_model(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "threads": torch.get_num_threads(),
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "system": f"{platform.system()} {platform.machine()}",
    }


def cpu_model(info: Path = Path("/proc/cpuinfo")) -> str:
    if info.is_file():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def versions() -> dict[str, str | None]:
    import torch

    found: dict[str, str | None] = {"python": platform.python_version(), "labelmend": __version__}
    found |= {library: version_of(library) for library in LIBRARIES}
    return {**found, "CUDA": torch.version.cuda if torch.cuda.is_available() else None}


def write_json(path: Path, value: Any) -> None:
    """Whole or not at all: a temporary name first, then a rename."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".partial", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def say_to_stderr(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
