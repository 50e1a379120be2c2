"""Runs cells, here or in several processes, and keeps every result as soon as it is there.

With jobs, each worker is a process of its own that is handed cells as lines of JSON and answers in lines of JSON, with
one thread for torch: when this process ends, however it ends, their input ends, and so do they. Only this process
writes the file. A cell that fails is told, and the others still run.
"""

from __future__ import annotations

import dataclasses
import gc
import json
import os
import queue
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from labelmend.benchmarks.paper.experiment import Cell, Measured, Options, Result, identity
from labelmend.benchmarks.paper.registry import experiment_named
from labelmend.benchmarks.paper.results import append_result, read_results
from labelmend.benchmarks.runner import Say, machine, versions
from labelmend.errors import LabelmendWarning, MissingExtraError

ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "LOKY_MAX_CPU_COUNT": "1"}
SKIPPED = "skipped"  # begins the word about a cell that cannot run here and is no failure


class CellFailedError(RuntimeError):
    """One cell could not be run; the text says why."""


def play_cells(name: str, cells: Sequence[Cell], options: Options, out: Path, jobs: int, say: Say) -> list[str]:
    """Run what is not in the file yet; returns a word about each cell that failed."""
    done = {identity(r.experiment, r.cell, r.quick) for r in read_results(out)}
    todo = [cell for cell in cells if identity(name, cell, options.quick) not in done]
    if len(todo) < len(cells):
        say(f"{len(cells) - len(todo)} of {len(cells)} cells are in {out} already")
    play = _play_here if jobs == 1 else _play_in_workers
    return play(name, todo, options, out, jobs, say)


def play_cell(name: str, cell: Cell, options: Options, say: Say) -> Measured:
    """One cell in this process."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LabelmendWarning)  # tiny classes and the like: known, the same every time
        try:
            with _gpu_memory() as memory:
                measured = experiment_named(name).play(cell, options, say)
            return dataclasses.replace(measured, more={**measured.more, **memory})
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


def _play_here(name: str, cells: Sequence[Cell], options: Options, out: Path, jobs: int, say: Say) -> list[str]:
    failed = []
    for number, cell in enumerate(cells, 1):
        say(f"{number} of {len(cells)}: {cell.name}")
        try:
            _keep(name, cell, play_cell(name, cell, options, say), options, out, jobs, say)
        except CellFailedError as error:
            say(f"{cell.name}  {error}")
            failed += [] if str(error).startswith(SKIPPED) else [f"{cell.name}: {error}"]
    return failed


def _play_in_workers(name: str, cells: Sequence[Cell], options: Options, out: Path, jobs: int, say: Say) -> list[str]:
    todo: queue.SimpleQueue[Cell] = queue.SimpleQueue()
    for cell in cells:
        todo.put(cell)
    failed: list[str] = []
    ending = threading.Event()
    workers = [_Worker() for _ in range(min(jobs, len(cells)))]

    def serve(worker: _Worker) -> None:
        while not ending.is_set():
            try:
                cell = todo.get_nowait()
            except queue.Empty:
                return
            try:
                _keep(name, cell, worker.ask(name, cell, options), options, out, jobs, say)
            except CellFailedError as error:
                say(f"{cell.name}  {error}")
                failed.extend([] if str(error).startswith(SKIPPED) else [f"{cell.name}: {error}"])
            except Exception as error:  # a full disk: a thread that just ended would leave nothing behind
                say(f"{cell.name}  {error}")
                failed.append(f"{cell.name}: {error}")
                ending.set()

    threads = [threading.Thread(target=serve, args=(worker,), daemon=True) for worker in workers]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        ending.set()
        for worker in workers:
            worker.end()
    return failed


class _Worker:
    """A process that runs one cell after another."""

    def __init__(self) -> None:
        self.process = self._start()

    def ask(self, name: str, cell: Cell, options: Options) -> Measured:
        if self.process.poll() is not None:
            self.end()
            self.process = self._start()
        order = {"experiment": name, "cell": dataclasses.asdict(cell), "options": _options_as_plain(options)}
        stdin, stdout = self.process.stdin, self.process.stdout
        assert stdin is not None
        assert stdout is not None
        try:
            stdin.write(json.dumps(order) + "\n")
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
        order = json.loads(line)
        cell, options = Cell(**order["cell"]), _options_from_plain(order["options"])
        try:
            answer = dataclasses.asdict(play_cell(order["experiment"], cell, options, lambda _: None))
        except Exception as error:
            text = str(error) if isinstance(error, CellFailedError) else f"failed: {type(error).__name__}: {error}"
            answer = {"failed": text}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def _keep(name: str, cell: Cell, measured: Measured, options: Options, out: Path, jobs: int, say: Say) -> None:
    where = {**machine(), "jobs": jobs, **({"threads": 1} if jobs > 1 else {})}
    if "gpu_bytes" not in measured.more:
        where["gpu"] = None  # there may be one, but it was not used
    date = time.strftime("%Y-%m-%d")
    append_result(out, Result(name, cell, measured, where, versions(), date, options.quick))
    shown = {"test_last": "test", "label_accuracy": "labels right"}
    known = {text: measured.figures.get(figure) for figure, text in shown.items()}
    words = "  ".join(f"{text} {value:.4f}" for text, value in known.items() if value is not None)
    seconds = measured.figures.get("seconds")
    say(f"{cell.name}  {words}{'' if seconds is None else f'  {seconds:.1f} s'}")


def _options_as_plain(options: Options) -> dict[str, Any]:
    plain = dataclasses.asdict(options)
    return {name: str(value) if isinstance(value, Path) else value for name, value in plain.items()}


def _options_from_plain(plain: dict[str, Any]) -> Options:
    paths = {name for name, kind in Options.__annotations__.items() if "Path" in kind}
    values: dict[str, Any] = {name: Path(v) if name in paths and v is not None else v for name, v in plain.items()}
    values |= {name: tuple(v) for name, v in values.items() if isinstance(v, list)}
    return Options(**values)


if __name__ == "__main__":
    answer_orders()
