"""Runs a benchmark: every method on every case, in turns, and the record of it with machine, versions, n and spread."""

from __future__ import annotations

import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from bench import trial
from bench.suite import BENCHMARKS, Benchmark, Facts, Options, Record
from bench.trial import Case
from labelmend import __version__
from labelmend.errors import MissingExtraError
from labelmend.self_test.comparison import prepare
from labelmend.storage.run_folder import version_of

VERSION = 1  # of the JSON
LIBRARIES = ("numpy", "scipy", "scikit-learn", "torch", "triton", "cleanlab")
Say = Callable[[str], None]


class Measured(Protocol):
    """One trial, as far as a record of many needs to know it."""

    @property
    def name(self) -> str: ...  # of the case

    @property
    def method(self) -> str: ...

    @property
    def figures(self) -> Mapping[str, float | None]: ...

    @property
    def note(self) -> str | None: ...  # why there are no figures


def run_benchmark(name: str, options: Options, n_seeds: int, methods: Sequence[str], say: Say) -> dict[str, Any]:
    """The record of one run, ready for JSON. `say` is told about every trial."""
    benchmark = BENCHMARKS[name]
    cases = benchmark.cases(options)
    absent = missing_methods(methods)
    records = []
    for seed in range(n_seeds):  # methods in turns, so that a busy machine hurts them alike
        for case in cases:
            for method in methods:
                if seed == 0 or repeats(benchmark, case, method, absent):
                    records.append(try_one(benchmark, case, method, seed, absent, say))
    facts = benchmark.work_out(records)
    return whole_record(name, benchmark.about, command(name, options, n_seeds), options.quick, facts, records)


def whole_record(
    name: str, about: str, command: str, quick: bool, facts: Facts, records: Sequence[Measured]
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
        "rows": summarise(records),
    }


def command(name: str, options: Options, n_seeds: int) -> str:
    """How to run it again; the place of the data is left out."""
    data = " --data DIR" if options.data is not None else ""
    return f"python -m bench {name}{data} --seeds {n_seeds}{' --quick' if options.quick else ''}"


def repeats(benchmark: Benchmark, case: Case, method: str, absent: dict[str, str]) -> bool:
    """Whether another seed says something new: the neighbours give the same answer to the same data."""
    return method not in absent and (benchmark.alone or case.seeded or method == "labelmend")


def try_one(benchmark: Benchmark, case: Case, method: str, seed: int, absent: dict[str, str], say: Say) -> Record:
    if method in absent:
        return Record(case, method, seed, {}, absent[method])
    measure = trial.measure_alone if benchmark.alone else trial.measure
    try:
        figures = measure(case, method, seed)
    except trial.TrialFailedError as error:  # the others still count
        say(f"{case.name}  {method}  seed {seed}  failed: {error}")
        return Record(case, method, seed, {}, f"failed: {error}")
    say(
        f"{case.name}  {method}  seed {seed}  {figures['label_accuracy']:.4f} of the labels right  "
        f"{figures['seconds']:.1f} s"
    )
    return Record(case, method, seed, figures)


def missing_methods(methods: Sequence[str]) -> dict[str, str]:
    """The methods that cannot run here, and why."""
    absent = {}
    for method in methods:
        try:
            prepare(method)
        except MissingExtraError:
            absent[method] = "not installed"
    return absent


def summarise(records: Sequence[Measured]) -> list[dict[str, Any]]:
    """One row per case and method, with mean and spread of every figure."""
    groups: dict[tuple[str, str], list[Measured]] = {}
    for record in records:
        groups.setdefault((record.name, record.method), []).append(record)
    rows = []
    for (case, method), group in groups.items():
        names = dict.fromkeys(name for record in group for name in record.figures)
        summaries = {name: spread([record.figures.get(name) for record in group]) for name in names}
        note = next((record.note for record in group if record.note), None)
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
