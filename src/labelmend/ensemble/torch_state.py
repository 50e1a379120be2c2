"""Torch as a run needs it: what it keeps for the whole process belongs to the user, and numbers must stay numbers."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager

import torch
from torch import nn

from labelmend.errors import TrainingError

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


LARGEST_WEIGHT = 1e12  # no net that learned something is near it


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
