"""Processes of one thread each, beside the one that started them."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "LOKY_MAX_CPU_COUNT": "1"}
# A fork of a process that has used threads may wait for ever.
SPAWN = multiprocessing.get_context("spawn")


@contextmanager
def one_thread_each() -> Iterator[None]:
    """For the processes started meanwhile: numerical libraries read these as they are imported."""
    before = {name: os.environ.get(name) for name in ONE_THREAD}
    os.environ.update(ONE_THREAD)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def start_worker() -> None:
    """What a worker does first: from now on it ends with the process that started it, however that ends.

    Spawned, it forks again where that is usual: else cleanlab's own processes cannot start.
    """
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if "fork" in multiprocessing.get_all_start_methods():
        multiprocessing.set_start_method("fork", force=True)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
