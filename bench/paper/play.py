"""Runs cells, here or in several processes, and keeps every result as soon as it is there.

With jobs, each worker is a process of its own that is handed cells as lines of JSON and answers in lines of JSON, with
one thread for torch: when this process ends, however it ends, their input ends, and so do they. Only this process
writes the file. A cell that fails is told, and the others still run.

Where there is a time limit, cells stop after the last round that is likely to end in time, and go on from their
checkpoints when the same is asked for again; what has not stopped by then is killed, which costs what it did since its
last checkpoint and nothing else.
"""

from __future__ import annotations

import dataclasses
import gc
import hashlib
import json
import math
import os
import queue
import shutil
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.paper.experiment import Cell, Keeping, Measured, Options, Result, identity
from bench.paper.keeping import OutOfTimeError
from bench.paper.registry import experiment_named
from bench.paper.results import append_result, read_results
from bench.record import Say, machine, versions
from labelmend.errors import LabelmendWarning, MissingExtraError

ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "LOKY_MAX_CPU_COUNT": "1"}
SKIPPED, STOPPED = "skipped", "stopped"  # begin the word about a cell that has no result and is no failure
GRACE = 10.0  # seconds after the end in which a cell may keep its last round


class CellFailedError(RuntimeError):
    """One cell could not be run; the text says why."""


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
    workers = [_Worker() for _ in range(min(jobs, len(orders)))]

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
        self.process = self._start()

    def ask(self, order: Order) -> Measured:
        if self.process.poll() is not None:
            self.end()
            self.process = self._start()
        stdin, stdout = self.process.stdin, self.process.stdout
        assert stdin is not None
        assert stdout is not None
        try:
            stdin.write(json.dumps(_order_as_plain(order)) + "\n")
            stdin.flush()
            line = stdout.readline()
        except OSError:
            line = ""
        if not line:
            raise CellFailedError(f"failed: its process ended with code {self.process.wait()}")
        answer = json.loads(line)
        if "failed" in answer:
            raise CellFailedError(answer["failed"])
        return Measured(**answer)

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            with suppress(OSError):  # something may still be waiting to be written
                if pipe is not None:
                    pipe.close()

    @staticmethod
    def _start() -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        return subprocess.Popen(
            [sys.executable, "-m", __name__], stdin=pipe, stdout=pipe, text=True, env={**os.environ, **ONE_THREAD}
        )


def answer_orders() -> None:
    """What a worker does: cells from its input, answers to its output, until the input ends."""
    import torch

    torch.set_num_threads(1)
    answers, sys.stdout = sys.stdout, sys.stderr  # whatever prints must not get among the answers
    for line in sys.stdin:
        try:
            answer = dataclasses.asdict(play_cell(_order_from_plain(json.loads(line)), lambda _: None))
        except Exception as error:
            text = str(error) if isinstance(error, CellFailedError) else f"failed: {type(error).__name__}: {error}"
            answer = {"failed": text}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


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


def _order_as_plain(order: Order) -> dict[str, Any]:
    return json.loads(json.dumps(dataclasses.asdict(order), default=str))  # type: ignore[no-any-return]


def _order_from_plain(plain: dict[str, Any]) -> Order:
    options = plain["options"]
    keeping = Keeping(**_with_paths(Keeping, options.pop("keeping")))
    return Order(plain["experiment"], Cell(**plain["cell"]), Options(**_with_paths(Options, options), keeping=keeping))


def _with_paths(kind: type, plain: dict[str, Any]) -> dict[str, Any]:
    """As the annotations of the dataclass have them: JSON knows neither paths nor tuples."""
    paths = {name for name, declared in kind.__annotations__.items() if "Path" in declared}
    values = {name: Path(v) if name in paths and v is not None else v for name, v in plain.items()}
    return {name: tuple(v) if isinstance(v, list) else v for name, v in values.items()}


if __name__ == "__main__":
    answer_orders()
