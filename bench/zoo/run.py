"""Runs cells in processes of one thread each and keeps every line as soon as it is there; what is there is not rerun.

Only this process writes the file: one line a cell, the last line of a cell counts. A cell that fails is reported, has
no line and is tried again by the next run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from bench import lines
from bench.record import Say
from bench.workers import SPAWN, one_thread_each, start_worker
from bench.zoo import classifier, measure
from bench.zoo.cells import Cell, Key
from bench.zoo.measure import Line
from bench.zoo.rivals import Stored
from labelmend.errors import DataError

WHAT = "a cell of `python -m bench zoo`"
Lines = dict[Key, Line]
Task = tuple[Cell, Callable[[], Line]]


def run_cells(cells: Sequence[Cell], stored: Stored, out: Path, jobs: int, say: Say) -> list[str]:
    """Measure what has no line yet; a word about each cell that failed."""
    known = read_lines(out)
    todo = [cell for cell in cells if cell.key not in known]
    if len(todo) < len(cells):
        say(f"{len(cells) - len(todo)} of {len(cells)} cells are in {out} already")
    orders = [(cell, None, stored.get((cell.of.name, cell.kind), {})) for cell in todo]
    return work_off(orders, out, jobs, say)


def check_classifiers(cells: Sequence[Cell], out: Path, jobs: int, say: Say) -> list[str]:
    """Add the check of the classifier to the lines that have none yet."""
    known = read_lines(out)
    fit = [cell for cell in cells if cell.key in known and cell.of.n_rows <= classifier.MOST_ROWS and cell.seed == 0]
    todo = [cell for cell in fit if "classifier" not in known[cell.key]]
    return work_off([(cell, known[cell.key], {}) for cell in todo], out, jobs, say)


def work_off(orders: Sequence[tuple[Cell, Line | None, Any]], out: Path, jobs: int, say: Say) -> list[str]:
    failed, done = [], 0
    with started(orders, jobs) as answers:
        for cell, ask in answers:
            done += 1
            try:
                line = ask()
            except Exception as error:  # whatever ends a cell, the others still count
                words = (str(error).splitlines() or [""])[0][:200]
                failed.append(f"{cell.title}  failed: {type(error).__name__}: {words}")
                say(failed[-1])
            else:
                lines.append_line(out, line)
                say(f"{done} of {len(orders)}  {progress(line)}")
    return failed


def play(cell: Cell, line: Line | None, stored: dict[str, Any]) -> Line:
    """A new line, or an old one with the check of the classifier."""
    return measure.measure(cell, stored) if line is None else {**line, "classifier": measure.check(cell)}


@contextmanager
def started(orders: Sequence[tuple[Cell, Line | None, Any]], jobs: int) -> Iterator[Iterator[Task]]:
    """The cells with a call that gives the line or raises, each as soon as it is there."""
    if not orders:
        yield iter(())
    elif jobs == 1:
        measure.warm_up()
        yield ((order[0], partial(play, *order)) for order in orders)
    else:
        with one_thread_each(), ProcessPoolExecutor(jobs, SPAWN, begin) as pool:
            futures: dict[Future[Line], Cell] = {pool.submit(play, *order): order[0] for order in orders}
            try:
                yield ((futures[future], future.result) for future in as_completed(futures))
            finally:
                pool.shutdown(wait=False, cancel_futures=True)


def begin() -> None:
    start_worker()
    measure.warm_up()


def read_lines(path: Path) -> Lines:
    """The last line of every cell."""
    return {key_of(line, number, path): line for number, line in lines.read_lines(path, WHAT)}


def key_of(line: Any, number: int, path: Path) -> Key:
    if not isinstance(line, dict) or line.get("version") != measure.VERSION:
        raise DataError(
            f"line {number} of {path} must be {WHAT}, version {measure.VERSION}. Got {str(line)[:60]!r} instead."
        )
    return line["name"], line["kind"], line["assume"], line["seed"]


def progress(line: Line) -> str:
    if checked := line.get("classifier"):
        right = "  ".join(f"{name} {share:.1f}" for name, share in checked.items())
        return f"{line['name']}:{line['kind']}  classifier  {right}"
    methods = line["methods"]
    shown = [name for name in ("given", "pool", "ensemble", "labelmend") if name in methods]
    right = "  ".join(f"{name} {methods[name]['right']:.1f}" for name in shown)
    return f"{line['name']}:{line['kind']}  {right}  {line['seconds']['labelmend']:.1f} s"
