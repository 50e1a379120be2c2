"""Runs cells, here or in several processes, and keeps every result as soon as it is there.

With jobs, each worker is a process of its own with one thread; when this process ends, however it ends, so do they.
Only this process writes the file. A cell that fails is reported, and the others still run.

Where there is a time limit, cells stop after the last round that is likely to end in time, and go on from their
checkpoints when the same is asked for again; what has not stopped by then is killed, which costs what it did since its
last checkpoint and nothing else.
"""

from __future__ import annotations

import dataclasses
import gc
import hashlib
import math
import queue
import shutil
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from bench.paper.experiment import Cell, Measured, Options, Result, identity
from bench.paper.keeping import OutOfTimeError
from bench.paper.registry import experiment_named
from bench.paper.results import append_result, read_results
from bench.record import Say, machine, versions
from bench.workers import SPAWN, one_thread_each, start_worker
from labelmend.errors import LabelmendWarning, MissingExtraError

SKIPPED, STOPPED = "skipped", "stopped"  # begin the word about a cell that has no result and is no failure
GRACE = 10.0  # seconds after the end in which a cell may keep its last round


class CellFailedError(RuntimeError):
    """One cell could not be run; the text is the reason."""


@dataclass(frozen=True)
class Order:
    """One cell of an experiment, and what it is to be run with."""

    experiment: str
    cell: Cell
    options: Options

    @property
    def identity(self) -> str:
        return identity(self.experiment, self.cell, self.options.quick)

    @property
    def checkpoints(self) -> Path | None:
        """The folder of this cell."""
        folder = self.options.keeping.checkpoints
        return None if folder is None else folder / hashlib.sha256(self.identity.encode()).hexdigest()[:16]


def play_cells(orders: Sequence[Order], out: Path, jobs: int, say: Say, ends: float = math.inf) -> list[str]:
    """Run what is not in the file yet, in this order; returns a word about each cell that failed."""
    done = {identity(r.experiment, r.cell, r.quick) for r in read_results(out)}
    todo = {order.identity: order for order in orders if order.identity not in done}
    if len(todo) < len(orders):
        say(f"{len(orders) - len(todo)} of {len(orders)} cells are in {out} already")
    play = _play_here if jobs == 1 else _play_in_workers
    return play(list(todo.values()), out, jobs, say, ends)


def play_cell(order: Order, say: Say) -> Measured:
    """One cell in this process."""
    keeping = dataclasses.replace(order.options.keeping, checkpoints=order.checkpoints)
    options = dataclasses.replace(order.options, keeping=keeping)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LabelmendWarning)  # tiny classes and the like: known, the same every time
        try:
            with _gpu_memory() as memory:
                measured = experiment_named(order.experiment).play(order.cell, options, say)
            return dataclasses.replace(measured, more={**measured.more, **memory})
        except OutOfTimeError as error:
            raise CellFailedError(f"{STOPPED}: the time is over") from error
        except MissingExtraError as error:
            raise CellFailedError(f"{SKIPPED}: {error}") from error
        except (RuntimeError, MemoryError) as error:  # out of memory, a broken GPU: the others still count
            raise CellFailedError(f"failed: {(str(error).splitlines() or [type(error).__name__])[0]}") from error


@contextmanager
def _gpu_memory() -> Iterator[dict[str, int]]:
    """Filled in at the end: the most memory that was held on a GPU, if one was used at all."""
    import torch

    found: dict[str, int] = {}
    if not torch.cuda.is_available():
        yield found
        return
    gc.collect()  # what the cell before has left is not this one's
    torch.cuda.reset_peak_memory_stats()
    yield found
    if peak := torch.cuda.max_memory_allocated():
        found["gpu_bytes"] = peak


def _play_here(orders: Sequence[Order], out: Path, jobs: int, say: Say, ends: float) -> list[str]:
    failed = []
    for number, order in enumerate(orders, 1):
        if time.time() >= ends:
            say(f"the time is over: {len(orders) - number + 1} cells are not begun")
            break
        say(f"{number} of {len(orders)}: {order.cell.name}")
        try:
            _keep(order, play_cell(order, say), out, jobs, say)
        except CellFailedError as error:
            failed += _failure(order, error, say)
    return failed


def _failure(order: Order, error: CellFailedError, say: Say) -> list[str]:
    say(f"{order.cell.name}  {error}")
    return [] if str(error).startswith((SKIPPED, STOPPED)) else [f"{order.cell.name}: {error}"]


def _play_in_workers(orders: Sequence[Order], out: Path, jobs: int, say: Say, ends: float) -> list[str]:
    todo: queue.SimpleQueue[Order] = queue.SimpleQueue()
    for order in orders:
        todo.put(order)
    failed: list[str] = []
    ending = threading.Event()

    def serve(worker: _Worker) -> None:
        while not ending.is_set() and time.time() < ends:
            try:
                order = todo.get_nowait()
            except queue.Empty:
                return
            try:
                _keep(order, worker.ask(order), out, jobs, say)
            except CellFailedError as error:
                killed = CellFailedError(f"{STOPPED}: the time is over")
                failed.extend(_failure(order, killed if ending.is_set() else error, say))
            except Exception as error:  # a full disk: a thread that just ended would leave nothing behind
                say(f"{order.cell.name}  {error}")
                failed.append(f"{order.cell.name}: {error}")
                ending.set()

    with one_thread_each():
        workers = [_Worker() for _ in range(min(jobs, len(orders)))]
        threads = [threading.Thread(target=serve, args=(worker,), daemon=True) for worker in workers]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(None if ends == math.inf else max(0.0, ends + GRACE - time.time()))
        finally:
            ending.set()
            for worker in workers:
                worker.end()
    if todo.qsize():
        say(f"the time is over: {todo.qsize()} cells are not begun")
    return failed


class _Worker:
    """A process that runs one cell after another."""

    def __init__(self) -> None:
        self._start()

    def ask(self, order: Order) -> Measured:
        if not self.process.is_alive():
            self.end()
            self._start()
        try:
            self.pipe.send(order)
            answer: Measured | str = self.pipe.recv()
        except (EOFError, OSError):
            self.process.join()
            raise CellFailedError(f"failed: its process ended with code {self.process.exitcode}") from None
        if isinstance(answer, str):
            raise CellFailedError(answer)
        return answer

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()

    def _start(self) -> None:
        self.pipe, theirs = SPAWN.Pipe()
        self.process = SPAWN.Process(target=answer_orders, args=(theirs,))
        self.process.start()
        theirs.close()


def answer_orders(pipe: Connection) -> None:
    """What a worker does: plays the cells that it is sent, and sends back what it measured or why it could not."""
    import torch

    start_worker()
    torch.set_num_threads(1)
    sys.stdout = sys.stderr
    while True:
        order = pipe.recv()
        try:
            pipe.send(play_cell(order, lambda _: None))
        except CellFailedError as error:
            pipe.send(str(error))
        except Exception as error:
            pipe.send(f"failed: {type(error).__name__}: {error}")


def _keep(order: Order, measured: Measured, out: Path, jobs: int, say: Say) -> None:
    cell = order.cell
    where = {**machine(), "jobs": jobs, **({"threads": 1} if jobs > 1 else {})}
    if "gpu_bytes" not in measured.more:
        where["gpu"] = None  # there may be one, but it was not used
    date = time.strftime("%Y-%m-%d")
    append_result(out, Result(order.experiment, cell, measured, where, versions(), date, order.options.quick))
    if order.checkpoints is not None:
        shutil.rmtree(order.checkpoints, ignore_errors=True)
    shown = {"test_last": "test", "label_accuracy": "labels right"}
    known = {text: measured.figures.get(figure) for figure, text in shown.items()}
    words = "  ".join(f"{text} {value:.4f}" for text, value in known.items() if value is not None)
    seconds = measured.figures.get("seconds")
    say(f"{cell.name}  {words}{'' if seconds is None else f'  {seconds:.1f} s'}")
