"""`python -m bench`: lists the benchmarks, runs one, or prints README tables from their JSON files."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from bench.picture_suite import PICTURE_BENCHMARKS, command_line
from bench.suite import BENCHMARKS, Options
from bench.trust_suite import TRUST_BENCHMARKS
from labelmend.cli.main import FAILED, OK, guarded
from labelmend.errors import ConfigError
from labelmend.selftest.rivals import METHODS

README_TABLE = "readme-table"
PAPER, ZOO, HOUSE = "paper", "zoo", "house"
OF_THEIR_OWN = {**PICTURE_BENCHMARKS, **TRUST_BENCHMARKS}  # with options and measurements of their own


def main(argv: list[str] | None = None) -> int:
    """The exit code, as of the library's own command line."""
    return guarded(lambda: _run(sys.argv[1:] if argv is None else argv))


def _run(argv: list[str]) -> int:
    name, rest = (argv[0], argv[1:]) if argv else (None, [])
    if name in (None, "-h", "--help"):
        print("\n".join(listing()))
        return OK
    if name == README_TABLE:
        return print_readme_table(rest)
    if name == PAPER:
        from bench.paper.command import main as paper

        return paper(rest)
    if name == ZOO:
        from bench.zoo.command import main as zoo

        return zoo(rest)
    if name == HOUSE:
        from bench.house import main as house

        return house(rest)
    if name in OF_THEIR_OWN:
        return run_its_own_way(name, rest)
    if name not in BENCHMARKS:
        known = ", ".join([*BENCHMARKS, *OF_THEIR_OWN, PAPER, ZOO, HOUSE, README_TABLE])
        raise ConfigError(f"the benchmark must be one of {known}. Got {name!r} instead.")
    return run(name, parser(name).parse_args(rest))


def listing() -> list[str]:
    return [
        "benchmarks, each against cleanlab and a plain k-NN vote in the same run:",
        *(f"  {name:<16}{benchmark.about}" for name, benchmark in BENCHMARKS.items()),
        "on pictures, and with ways of their own:",
        *(f"  {name:<16}{benchmark.about}" for name, benchmark in PICTURE_BENCHMARKS.items()),
        "of what a run says about itself:",
        *(f"  {name:<16}{benchmark.about}" for name, benchmark in TRUST_BENCHMARKS.items()),
        "",
        f"  {ZOO:<16}many data sets and kinds of errors in parallel, resumed; python -m bench zoo --help",
        f"  {PAPER:<16}every table and figure of the paper; python -m bench paper --list",
        f"  {HOUSE:<16}modules, lines, imports and parameters of the library, beside what is asked",
        f"  {README_TABLE:<16}print the tables of the README from the JSON files",
        "",
        "python -m bench NAME [--seeds N] [--data DIR] [--out FILE.json] [--methods NAME ...] [--quick]",
        "python -m bench NAME --help says what one of those on pictures may be told",
    ]


def parser(name: str) -> argparse.ArgumentParser:
    benchmark = BENCHMARKS[name]
    options = argparse.ArgumentParser(f"python -m bench {name}", description=benchmark.about)
    options.add_argument("--data", type=Path, metavar="DIR", help="folder with cifar10_features.npz and labels.npz")
    options.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS), help="default: all")
    add_common_options(options, name, benchmark.seeds)
    return options


def add_common_options(options: argparse.ArgumentParser, name: str, n_seeds: int | None) -> None:
    if n_seeds is not None:
        options.add_argument("--seeds", type=int, metavar="N", help=f"seeds or repetitions (default {n_seeds})")
    options.add_argument("--out", type=Path, metavar="FILE.json", help=f"default benchmark-{name}.json")
    options.add_argument("--quick", action="store_true", help="tiny sizes, one seed: does it run? Figures mean nothing")


def run(name: str, arguments: argparse.Namespace) -> int:
    from bench.runner import run_benchmark, say_to_stderr

    n_seeds = number_of_seeds(arguments, BENCHMARKS[name].seeds)
    options = Options(arguments.data, arguments.quick)
    return finish(arguments, run_benchmark(name, options, n_seeds, arguments.methods, say_to_stderr))


def run_its_own_way(name: str, rest: list[str]) -> int:
    from bench.runner import say_to_stderr, whole_record

    benchmark = OF_THEIR_OWN[name]
    options = argparse.ArgumentParser(f"python -m bench {name}", description=benchmark.about)
    benchmark.add_options(options)
    add_common_options(options, name, benchmark.seeds)
    arguments = options.parse_args(rest)
    n_seeds = 1 if benchmark.seeds is None else number_of_seeds(arguments, benchmark.seeds)
    found = benchmark.measure(arguments, n_seeds, say_to_stderr)
    command = command_line(name, options, arguments)
    code = finish(arguments, whole_record(name, benchmark.about, command, arguments.quick, found.facts, found.trials))
    return code if found.passed else FAILED


def number_of_seeds(arguments: argparse.Namespace, usual: int) -> int:
    n_seeds = arguments.seeds if arguments.seeds is not None else 1 if arguments.quick else usual
    if n_seeds < 1:
        raise ConfigError(f"--seeds must be at least 1. Got {n_seeds} instead.")
    return n_seeds


def finish(arguments: argparse.Namespace, record: dict[str, Any]) -> int:
    """Write and print what was measured."""
    from bench.runner import write_json
    from bench.table import terminal_lines

    out = arguments.out or Path(f"benchmark-{record['benchmark']}.json")
    write_json(out, record)
    print("\n".join([*terminal_lines(record), f"written to {out}"]))
    broken = any(row["note"] and row["method"] == "labelmend" for row in record["rows"])
    return FAILED if broken else OK


def print_readme_table(rest: list[str]) -> int:
    from bench.table import readme_table

    options = argparse.ArgumentParser(f"python -m bench {README_TABLE}")
    options.add_argument("files", nargs="+", type=Path, metavar="FILE.json")
    print(readme_table(options.parse_args(rest).files))
    return OK
