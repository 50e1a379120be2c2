"""One thread where there is little to do: several wait for each other longer than they work.

Wine took 42 s with two threads beside other work, 3.5 s with one. Given back as they were.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

SMALL = 500_000  # numbers in the features


@contextmanager
def one_torch_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def one_thread() -> Iterator[None]:
    """In torch, and in the libraries of numpy and scikit-learn; to find those takes some milliseconds."""
    from threadpoolctl import threadpool_limits

    with one_torch_thread(), threadpool_limits(1):
        yield


@contextmanager
def few_threads(n_numbers: int) -> Iterator[None]:
    """One thread for features of so few numbers."""
    if n_numbers > SMALL:
        yield
        return
    with one_thread():
        yield
