"""What torch keeps for the whole process belongs to the user: as we need it while we work, afterwards as it was.

Generators and the default type are of all threads, so one of them works at a time: a second call waits for the first.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch

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
