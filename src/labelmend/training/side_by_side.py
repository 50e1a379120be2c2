"""Independent work on one GPU at the same time.

Knows jobs; does not know what they do. Kernels that compute and kernels that move memory share a GPU well, and one
small net seldom fills it. On a CPU the jobs simply run one after another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import torch

Result = TypeVar("Result")


def side_by_side(jobs: Sequence[Callable[[], Result]], device: torch.device) -> list[Result]:
    """The results of all jobs. A job must not wait for the GPU, or those after it start late."""
    if device.type != "cuda":
        return [job() for job in jobs]
    now = torch.cuda.current_stream(device)
    results, streams = [], [torch.cuda.Stream(device) for _ in jobs]
    for job, stream in zip(jobs, streams, strict=True):
        stream.wait_stream(now)
        with torch.cuda.stream(stream):
            results.append(job())
    for stream in streams:
        now.wait_stream(stream)
    return results
