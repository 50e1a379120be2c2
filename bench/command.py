"""`python -m bench`: lists the benchmarks, runs one, and writes and prints what it measured."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from pathlib import Path

from bench.picture_suite import PICTURE_BENCHMARKS
from bench.record import OURS, Benchmark, command_line, say_to_stderr, whole_record, write_json
from bench.suite import VECTOR_BENCHMARKS
from bench.table import terminal_lines
from bench.trust_suite import TRUST_BENCHMARKS
from labelmend.cli.main import FAILED, OK, guarded
from labelmend.errors import ConfigError

GROUPS = {
    "vectors, each against cleanlab and a plain k-NN vote in the same run:": VECTOR_BENCHMARKS,
    "pictures, annotators and the review page:": PICTURE_BENCHMARKS,
    "what a run says about itself:": TRUST_BENCHMARKS,
}
BENCHMARKS: dict[str, Benchmark] = {name: one for group in GROUPS.values() for name, one in group.items()}
# With a command line of their own: what they do, and the module whose `main` gets the rest of the words.
COMMANDS = {
    "zoo": ("many data sets and kinds of errors in parallel, resumed", "bench.zoo.command"),
    "paper": ("every table and figure of the paper; --list says which", "bench.paper.command"),
    "house": ("modules, lines, imports and parameters of the library, beside what is asked", "bench.house"),
    "readme-table": ("Markdown tables from the JSON files that benchmarks wrote", "bench.table"),
}


def main(argv: list[str] | None = None) -> int:
    """The exit code, as of the library's own command line."""
    return guarded(lambda: _run(sys.argv[1:] if argv is None else argv))


def _run(argv: list[str]) -> int:
    if not argv or argv[0] in ("-h", "--help"):
        print("\n".join(listing()))
        return OK
    name, *rest = argv
    if name in COMMANDS:
        code: int = import_module(COMMANDS[name][1]).main(rest)
        return code
    if name not in BENCHMARKS:
        known = ", ".join([*BENCHMARKS, *COMMANDS])
        raise ConfigError(f"the benchmark must be one of {known}. Got {name!r} instead.")
    return run(name, rest)


def listing() -> list[str]:
    groups = [(title, {name: one.about for name, one in group.items()}) for title, group in GROUPS.items()]
    groups.append(("with options of their own:", {name: about for name, (about, _) in COMMANDS.items()}))
    lines = [line for title, abouts in groups for line in (title, *(f"  {n:<16}{a}" for n, a in abouts.items()), "")]
    return [*lines, "python -m bench NAME [--seeds N] [--out FILE.json] [--quick]; NAME --help lists all options"]


def run(name: str, words: list[str]) -> int:
    """Measure, write and print; it fails where labelmend itself could not be measured."""
    benchmark = BENCHMARKS[name]
    parser = argparse.ArgumentParser(f"python -m bench {name}", description=benchmark.about)
    benchmark.add_options(parser)
    if benchmark.seeds is not None:
        parser.add_argument("--seeds", type=int, metavar="N", help=f"seeds or repetitions (default {benchmark.seeds})")
    parser.add_argument("--out", type=Path, metavar="FILE.json", help=f"default benchmark-{name}.json")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, one seed: does it run? Figures mean nothing")
    options = parser.parse_args(words)
    n_seeds = 1
    if benchmark.seeds is not None:
        n_seeds = options.seeds = number_of_seeds(options, benchmark.seeds)
    found = benchmark.measure(options, n_seeds, say_to_stderr)
    command = command_line(name, parser, options)
    record = whole_record(name, benchmark.about, command, options.quick, found.facts, found.trials)
    out = options.out or Path(f"benchmark-{name}.json")
    write_json(out, record)
    print("\n".join([*terminal_lines(record), f"written to {out}"]))
    return FAILED if any(row["note"] and row["method"] == OURS for row in record["rows"]) else OK


def number_of_seeds(options: argparse.Namespace, usual: int) -> int:
    n_seeds: int = options.seeds if options.seeds is not None else 1 if options.quick else usual
    if n_seeds < 1:
        raise ConfigError(f"--seeds must be at least 1. Got {n_seeds} instead.")
    return n_seeds
