"""`labelmend benchmark`: lists the benchmarks, runs one, or prints README tables from their JSON files."""

from __future__ import annotations

import argparse
from pathlib import Path

from labelmend.benchmarks.rivals import METHODS
from labelmend.benchmarks.suite import BENCHMARKS, Options
from labelmend.errors import ConfigError

README_TABLE = "readme-table"
OK, FAILED = 0, 1


def main(name: str | None, rest: list[str]) -> int:
    if name is None:
        print("\n".join(listing()))
        return OK
    if name == README_TABLE:
        return print_readme_table(rest)
    if name not in BENCHMARKS:
        known = ", ".join([*BENCHMARKS, README_TABLE])
        raise ConfigError(f"the benchmark must be one of {known}. Got {name!r} instead.")
    return run(name, parser(name).parse_args(rest))


def listing() -> list[str]:
    return [
        "benchmarks, each against cleanlab and a plain k-NN vote in the same run:",
        *(f"  {name:<14}{benchmark.about}" for name, benchmark in BENCHMARKS.items()),
        f"  {README_TABLE:<14}print the tables of the README from the JSON files",
        "",
        "labelmend benchmark NAME [--seeds N] [--data DIR] [--out FILE.json] [--methods NAME ...] [--quick]",
    ]


def parser(name: str) -> argparse.ArgumentParser:
    benchmark = BENCHMARKS[name]
    options = argparse.ArgumentParser(f"labelmend benchmark {name}", description=benchmark.about)
    options.add_argument(
        "--seeds", type=int, default=None, metavar="N", help=f"seeds or repetitions (default {benchmark.seeds})"
    )
    options.add_argument("--data", type=Path, metavar="DIR", help="folder with cifar10_features.npz and labels.npz")
    options.add_argument("--out", type=Path, metavar="FILE.json", help=f"default benchmark-{name}.json")
    options.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS), help="default: all")
    options.add_argument("--quick", action="store_true", help="tiny sizes, one seed: does it run? Figures mean nothing")
    return options


def run(name: str, arguments: argparse.Namespace) -> int:
    from labelmend.benchmarks.runner import run_benchmark, say_to_stderr, write_json
    from labelmend.benchmarks.table import terminal_lines

    n_seeds = arguments.seeds if arguments.seeds is not None else 1 if arguments.quick else BENCHMARKS[name].seeds
    if n_seeds < 1:
        raise ConfigError(f"--seeds must be at least 1. Got {n_seeds} instead.")
    out = arguments.out or Path(f"benchmark-{name}.json")
    options = Options(arguments.data, arguments.quick)
    record = run_benchmark(name, options, n_seeds, arguments.methods, say_to_stderr)
    write_json(out, record)
    print("\n".join([*terminal_lines(record), f"written to {out}"]))
    broken = any(row["note"] and row["method"] == "labelmend" for row in record["rows"])
    return FAILED if broken else OK


def print_readme_table(rest: list[str]) -> int:
    from labelmend.benchmarks.table import readme_table

    options = argparse.ArgumentParser(f"labelmend benchmark {README_TABLE}")
    options.add_argument("files", nargs="+", type=Path, metavar="FILE.json")
    print(readme_table(options.parse_args(rest).files))
    return OK
