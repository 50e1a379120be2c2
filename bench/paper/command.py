"""`python -m bench paper`: lists the experiments, runs one, or writes docs/paper.md from results."""

from __future__ import annotations

import argparse
import dataclasses
import math
import os
import shlex
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bench.paper.experiment import Keeping, Options, Result, chosen_cells, identity
from bench.paper.registry import MODULES, experiment_named
from bench.paper.rows import READINGS, TITLES
from labelmend.ensemble.records import read_seconds
from labelmend.errors import ConfigError

if TYPE_CHECKING:
    from bench.paper.play import Order


OK, FAILED = 0, 1
ABOUT = "every table and figure of the paper, with its figure beside ours"
USUAL_DOCS = Path("docs/paper.md")


def main(rest: list[str]) -> int:
    arguments = parser().parse_args(rest)
    if arguments.miniature:
        arguments.name, arguments.device = "miniature", "cpu"
        arguments.jobs = max(arguments.jobs, os.cpu_count() or 1)
    if arguments.write_docs:
        return write_docs(arguments)
    if arguments.merge:
        return merge(arguments)
    if arguments.queue:
        return run_queue(arguments)
    if arguments.list or arguments.name is None:
        print("\n".join(listing(_options(arguments))))
        return OK
    return run(arguments)


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser("python -m bench paper", description=ABOUT)
    options.add_argument("name", nargs="?", metavar="NAME", help=f"one of {', '.join(MODULES)}")
    options.add_argument(
        "--miniature", action="store_true", help="NAME miniature: the ablation on small pictures, a cell on each core"
    )
    options.add_argument("--list", action="store_true", help="list the experiments, and whether their data are here")
    options.add_argument("--data", type=Path, metavar="DIR", help="folder with the data, see --list")
    options.add_argument("--on", nargs="+", metavar="DATA", help="data sets, for a NAME that knows several")
    options.add_argument("--epochs", type=int, metavar="N", help="default: as the paper or its field has it")
    options.add_argument("--seeds", type=int, metavar="N", help="default: by data set")
    options.add_argument("--device", default="auto", help="cpu, cuda or auto (digits: cpu, else a GPU if there is one)")
    options.add_argument("--rows", nargs="+", metavar="ROW", help="only these rows of the table")
    options.add_argument("--columns", nargs="+", metavar="COLUMN", help="only these columns")
    options.add_argument(
        "--batch-size", type=int, metavar="N", help="another one takes a learning rate in proportion (a GPU: 256)"
    )
    options.add_argument("--out", type=Path, metavar="FILE", help="results, a line of JSON each (default paper.jsonl)")
    options.add_argument("--docs", type=Path, metavar="FILE.md", help="page to update (default docs/paper.md)")
    options.add_argument("--jobs", type=int, default=1, metavar="N", help="cells at the same time, a process each")
    options.add_argument(
        "--readings",
        nargs="+",
        default=[],
        choices=list(READINGS),
        metavar="READING",
        help=f"what the paper's rows are read as, of {', '.join(READINGS)} (cifar10, cifar100)",
    )
    options.add_argument(
        "--queue",
        type=Path,
        metavar="FILE",
        help="run the open cells of many: a line of NAME and options each, in that order; # begins a remark",
    )
    options.add_argument("--time-limit", metavar="TIME", help="stop cleanly before, such as 90, 90s, 10m or 2h")
    options.add_argument(
        "--checkpoints", type=Path, metavar="DIR", help="keep unfinished cells there; the same command goes on"
    )
    options.add_argument(
        "--merge", nargs="+", type=Path, metavar="FILE.jsonl", help="add the results of these files to --out"
    )
    add_photo_options(options)
    options.add_argument("--quick", action="store_true", help="tiny sizes: does it run? Figures mean nothing")
    options.add_argument(
        "--write-docs", nargs="+", type=Path, metavar="FILE.jsonl", help="write the whole page from these results"
    )
    return options


def add_photo_options(options: argparse.ArgumentParser) -> None:
    photos = options.add_argument_group("clothing1m, clothing1m-hybrid and food101n")
    photos.add_argument(
        "--weights", metavar="FILE", help="ResNet-50 of ImageNet, .safetensors or .pth; none: begin without"
    )
    photos.add_argument("--balanced", action="store_true", help="draw every class equally often in a pass")
    photos.add_argument("--limit", type=int, metavar="N", help="only N pictures per class of every list")
    photos.add_argument("--food101", type=Path, metavar="DIR", help="folder of Food-101, where it is not in --data")
    photos.add_argument("--cache", type=Path, metavar="DIR", help="for decoded pictures (default ~/.cache/labelmend)")


def listing(options: Options) -> list[str]:
    lines = ["experiments of the paper; --data DIR is where their data are:"]
    for name in MODULES:
        experiment = experiment_named(name)
        missing = experiment.missing(options)
        lines.append(f"  {name:<18}{experiment.about}")
        lines.append(f"  {'':<18}data: {experiment.needs}; {'here' if missing is None else f'not here: {missing}'}")
    return lines


def run(arguments: argparse.Namespace) -> int:
    from bench.paper.page import update_section
    from bench.paper.play import play_cells
    from bench.paper.results import read_results
    from bench.record import say_to_stderr

    name, options = arguments.name, _options(arguments)
    out = _out(arguments)
    orders = _orders(name, options, arguments)
    failed = play_cells(orders, out, arguments.jobs, say_to_stderr, options.keeping.ends)
    docs = arguments.docs or _usual_docs(out, options.quick)
    results = [result for result in read_results(out) if result.quick == options.quick]
    print(update_section(docs, name, results, options.quick))
    print("\n".join([*failed, f"results in {out}, page {docs}"]))
    return FAILED if failed else OK


def _orders(name: str, options: Options, arguments: argparse.Namespace) -> list[Order]:
    from bench.paper.play import Order

    experiment = experiment_named(name)
    if missing := experiment.missing(options):
        raise ConfigError(f"{name} needs {experiment.needs}. {missing}.")
    stored = {title: row for row, title in TITLES.items()}
    rows = arguments.rows and [stored.get(row, row) for row in arguments.rows]
    cells = chosen_cells(experiment.cells(options), rows, arguments.columns)
    return [Order(name, cell, options) for cell in cells]


def _out(arguments: argparse.Namespace) -> Path:
    return arguments.out or Path("paper-quick.jsonl" if arguments.quick else "paper.jsonl")


def run_queue(arguments: argparse.Namespace) -> int:
    """The cells of every line of a file, with the other options of this command; results only, no page."""
    from bench.paper.play import play_cells
    from bench.record import say_to_stderr

    keeping, orders = _options(arguments).keeping, []
    for line in _lines(arguments.queue):
        wanted = parser().parse_args(shlex.split(line))
        if wanted.name is None:
            raise ConfigError(f"every line of --queue must begin with the NAME of an experiment. Got {line!r} instead.")
        for name in ("data", "device", "quick"):
            setattr(wanted, name, getattr(arguments, name))
        orders += _orders(wanted.name, dataclasses.replace(_options(wanted), keeping=keeping), wanted)
    out = _out(arguments)
    failed = play_cells(orders, out, arguments.jobs, say_to_stderr, keeping.ends)
    print("\n".join([*failed, f"results in {out}"]))
    return FAILED if failed else OK


def _lines(path: Path) -> list[str]:
    if not path.is_file():
        raise ConfigError(f"--queue must be a file with a NAME and options in every line. {path} is not there.")
    lines = (line.strip() for line in path.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def merge(arguments: argparse.Namespace) -> int:
    """Results that --out does not have yet; of two runs of one cell it keeps the one it has."""
    from bench.paper.results import append_result, read_results

    out, added = _out(arguments), 0
    known = {identity(r.experiment, r.cell, r.quick) for r in read_results(out)}
    for result in _results_of("--merge", arguments.merge):
        name = identity(result.experiment, result.cell, result.quick)
        if name not in known:
            append_result(out, result)
            known.add(name)
            added += 1
    print(f"{added} results added to {out}, which has {len(known)}")
    return OK


def _results_of(option: str, paths: Sequence[Path]) -> list[Result]:
    from bench.paper.results import read_results

    for path in paths:
        if not path.is_file():
            raise ConfigError(f"{option} must name files of results. {path} is not there.")
    return [result for path in paths for result in read_results(path)]


def write_docs(arguments: argparse.Namespace) -> int:
    from bench.paper.page import write_page

    found = _results_of("--write-docs", arguments.write_docs)
    results = [result for result in found if result.quick == arguments.quick]
    docs = arguments.docs or _usual_docs(arguments.write_docs[0], arguments.quick)
    write_page(docs, results, arguments.quick)
    print(f"{len(results)} results in {docs}")
    return OK


def _usual_docs(out: Path, quick: bool) -> Path:
    """The page of a checkout; elsewhere, and for a quick run, a page beside the results."""
    return USUAL_DOCS if USUAL_DOCS.is_file() and not quick else out.with_suffix(".md")


def _options(arguments: argparse.Namespace) -> Options:
    for name in ("epochs", "seeds", "jobs", "limit"):
        if (value := getattr(arguments, name)) is not None and value < 1:
            raise ConfigError(f"--{name} must be at least 1. Got {value} instead.")
    if arguments.batch_size is not None and arguments.batch_size < 2:
        raise ConfigError(f"--batch-size must be at least 2. Got {arguments.batch_size} instead.")
    if arguments.data is not None and not arguments.data.is_dir():
        raise ConfigError(f"--data must be a folder. {arguments.data} is none.")
    seconds = math.inf if arguments.time_limit is None else read_seconds(arguments.time_limit)
    return Options(
        arguments.data,
        None if arguments.on is None else tuple(arguments.on),
        arguments.epochs,
        arguments.seeds,
        arguments.device,
        arguments.batch_size,
        arguments.quick,
        tuple(arguments.readings),
        Keeping(arguments.checkpoints, time.time() + seconds),
        arguments.weights,
        arguments.balanced,
        arguments.limit,
        arguments.food101,
        arguments.cache,
    )
