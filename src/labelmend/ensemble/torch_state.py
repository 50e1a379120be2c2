"""Torch as a run needs it: device, seeds, threads, arithmetic; what it keeps for the process belongs to the user."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager

import torch
from torch import nn

from labelmend.errors import ConfigError, TrainingError

SMALL = 500_000  # numbers in the features, up to which one thread is used
LARGEST_WEIGHT = 1e12  # no net that learned something is near it
_one_at_a_time = threading.RLock()


@contextmanager
def own_torch() -> Iterator[None]:
    """Gradients, float32, the CPU and full precision by default, whatever the caller has set; no random number less."""
    with _one_at_a_time, ExitStack() as given_back:
        given_back.enter_context(torch.inference_mode(False))
        given_back.enter_context(torch.enable_grad())
        devices = [torch.cuda.current_device()] if torch.cuda.is_initialized() else []
        given_back.enter_context(torch.random.fork_rng(devices=devices))
        if torch.get_default_dtype() != torch.float32:
            given_back.callback(torch.set_default_dtype, torch.get_default_dtype())
            torch.set_default_dtype(torch.float32)
        if torch.get_default_device().type != "cpu":
            given_back.enter_context(torch.device("cpu"))
        for kind in ("cpu", "cuda"):
            if torch.is_autocast_enabled(kind):
                given_back.enter_context(torch.autocast(kind, enabled=False))
        yield


@contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """First weights and dropout draw from torch's global generator: seeded here, and given back as it was."""
    with own_torch(), torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield


@contextmanager
def fast_arithmetic(device: torch.device) -> Iterator[None]:
    """On a GPU: convolutions chosen by trial, float32 products rounded to 19 bits. Given back as it was."""
    if device.type != "cuda":
        yield
        return
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        with torch.backends.cudnn.flags(enabled=True, benchmark=True, allow_tf32=True):
            yield
    finally:
        torch.set_float32_matmul_precision(before)


def choose_device(name: str) -> torch.device:
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        if device.type not in ("cpu", "cuda"):
            raise RuntimeError("only cpu and cuda are supported")
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ConfigError(f"device must be usable here. Got {name!r}: {str(error).splitlines()[0]}") from error
    return device


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
    """One thread for features of so few numbers: several wait for each other longer than they work.

    Wine took 42 s with two threads beside other work, 3.5 s with one.
    """
    if n_numbers > SMALL:
        yield
        return
    with one_thread():
        yield


def refuse_diverged(stage: str, lr: float, nets: Iterable[nn.Module], losses: Iterable[float | None] = ()) -> None:
    """An error that says what to change. `stage`: after what, in words."""
    if all(loss is None or math.isfinite(loss) for loss in losses) and all(map(has_finite_weights, nets)):
        return
    raise TrainingError(
        f"weights and losses must stay finite. After {stage} some are infinite, NaN or beyond all use; make lr smaller "
        f"(it is {lr:g}, the default is 0.05), or look for features or weights that are far too large."
    )


def has_finite_weights(net: nn.Module) -> bool:
    """Also of a size that a product of a few layers stays finite."""
    return all(bool((weight.detach().abs() < LARGEST_WEIGHT).all()) for weight in net.parameters())  # NaN is not
