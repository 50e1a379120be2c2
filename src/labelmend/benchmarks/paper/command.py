"""`labelmend benchmark paper`: lists the experiments, runs one, or writes docs/paper.md from results."""

from __future__ import annotations

import argparse
from pathlib import Path

from labelmend.benchmarks.paper.experiment import Options, chosen_cells
from labelmend.benchmarks.paper.registry import MODULES, experiment_named
from labelmend.errors import ConfigError

OK, FAILED = 0, 1
ABOUT = "every table and figure of the paper, with its figure beside ours"
USUAL_DOCS = Path("docs/paper.md")


def main(rest: list[str]) -> int:
    arguments = parser().parse_args(rest)
    if arguments.write_docs:
        return write_docs(arguments)
    if arguments.list or arguments.name is None:
        print("\n".join(listing(_options(arguments))))
        return OK
    return run(arguments)


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser("labelmend benchmark paper", description=ABOUT)
    options.add_argument("name", nargs="?", metavar="NAME", help=f"one of {', '.join(MODULES)}")
    options.add_argument("--list", action="store_true", help="say what there is, and whether its data are here")
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
    from labelmend.benchmarks.paper.page import update_section
    from labelmend.benchmarks.paper.play import play_cells
    from labelmend.benchmarks.paper.results import read_results
    from labelmend.benchmarks.runner import say_to_stderr

    name, options = arguments.name, _options(arguments)
    experiment = experiment_named(name)
    if missing := experiment.missing(options):
        raise ConfigError(f"{name} needs {experiment.needs}. {missing}.")
    cells = chosen_cells(experiment.cells(options), arguments.rows, arguments.columns)
    out = arguments.out or Path("paper-quick.jsonl" if options.quick else "paper.jsonl")
    failed = play_cells(name, cells, options, out, arguments.jobs, say_to_stderr)
    docs = arguments.docs or _usual_docs(out, options.quick)
    results = [result for result in read_results(out) if result.quick == options.quick]
    print(update_section(docs, name, results, options.quick))
    print("\n".join([*failed, f"results in {out}, page {docs}"]))
    return FAILED if failed else OK


def write_docs(arguments: argparse.Namespace) -> int:
    from labelmend.benchmarks.paper.page import write_page
    from labelmend.benchmarks.paper.results import read_results

    for path in arguments.write_docs:
        if not path.is_file():
            raise ConfigError(f"--write-docs must name files of results. {path} is not there.")
    found = [result for path in arguments.write_docs for result in read_results(path)]
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
    return Options(
        arguments.data,
        None if arguments.on is None else tuple(arguments.on),
        arguments.epochs,
        arguments.seeds,
        arguments.device,
        arguments.batch_size,
        arguments.quick,
        arguments.weights,
        arguments.balanced,
        arguments.limit,
        arguments.food101,
        arguments.cache,
    )
