"""A problem made ready: samples on their device, settings resolved, and what the result has to know besides."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from labelmend.config import RunConfig, Settings, resolve
from labelmend.ensemble.nets import MLP
from labelmend.ensemble.run import NoCheckpoints
from labelmend.ensemble.state import Problem
from labelmend.ensemble.torch_state import choose_device, few_threads, seeded
from labelmend.errors import ConfigError
from labelmend.evidence.inputs import Inputs, PredProbs
from labelmend.inputs.annotators import opinions_of
from labelmend.inputs.arrays import fingerprint
from labelmend.inputs.features import conflicting_duplicates, fit_scaler
from labelmend.labels import Labels
from labelmend.models.vectors import NetFactory, VectorModel, fit_vector_model, net_model
from labelmend.samples import Samples, VectorSamples
from labelmend.storage.checkpoint import Subject, checkpoints_in


@dataclass(frozen=True)
class Task:
    """A problem ready to be solved, and what the result has to know besides."""

    problem: Problem
    make_net: Callable[[], nn.Module]
    config: RunConfig  # as it was asked for
    settings: Settings
    make_model: Callable[[NDArray[np.int64], nn.Module], Any]  # from the decided labels and the net of the run
    duplicates: list[list[int]]
    fingerprint: str
    inputs: Inputs | None = None  # of the pool; None: nets are trained on pictures

    def checkpoints_in(self, folder: str | Path | None, every: float) -> AbstractContextManager[NoCheckpoints]:
        if folder is None:
            return nullcontext(NoCheckpoints())
        return checkpoints_in(folder, every, lambda: Subject.of(self.problem, self.settings, self.fingerprint))


def vector_task(
    matrix: Any,
    labels: Labels,
    trusted: NDArray[np.bool_],
    config: RunConfig,
    net: NetFactory | None,
    pred_probs: PredProbs | None = None,
    alone: bool = False,
) -> Task:
    """Feature vectors, scaled, on their device; `alone`: they are made of the probabilities."""
    settings = resolve(config, len(labels.codes), len(labels.classes))
    device = choose_device(settings.device)
    scaler = fit_scaler(matrix, settings.seed)
    samples = VectorSamples(torch.from_numpy(scaler(matrix)).to(device))
    inputs = Inputs.of(matrix, scaler.projection, settings.seed)
    if pred_probs is not None:
        if settings.decide == "votes" and not alone:
            raise ConfigError(
                "pred_probs beside features are for the pool, which the parameters leave out (preset paper, "
                "decide='votes'). Leave out pred_probs, or those parameters."
            )
        inputs = replace(inputs, given_scores=pred_probs.scores(), named=pred_probs.named, alone=alone)
    n_classes = len(labels.classes)
    default = partial(MLP, scaler.n_inputs, settings.hidden, n_classes)

    def make_model(decided: NDArray[np.int64], trained: nn.Module) -> VectorModel:
        if net is not None or settings.decide == "votes" or settings.fine_tune_passes:
            return net_model(trained, scaler, labels.classes, device)
        with few_threads(inputs.raw.size):
            return fit_vector_model(matrix, inputs.preparation, scaler, decided, labels.classes, device, settings.seed)

    return Task(
        make_problem(samples, labels, trusted, settings),
        default if net is None else checked_factory(net, scaler.n_inputs, n_classes, samples, settings.seed),
        config,
        settings,
        make_model,
        conflicting_duplicates(matrix, labels.codes),
        fingerprint(matrix, labels, pred_probs),
        inputs if settings.decide == "posterior" else None,
    )


def make_problem(samples: Samples, labels: Labels, trusted: NDArray[np.bool_], settings: Settings) -> Problem:
    if settings.fine_tune_passes and not trusted.any():
        raise ConfigError("fine_tune_passes needs trusted samples to learn from. Got none; mark some with trusted=.")
    device = samples.device
    said = labels.annotations
    given = labels.codes if said is None or said.consensus is None else said.consensus
    codes, certain = torch.from_numpy(given).to(device), torch.from_numpy(trusted).to(device)
    opinions = None if said is None else opinions_of(said, labels.codes, device)
    return Problem(samples, codes, certain, len(labels.classes), opinions)


def checked_factory(
    net: NetFactory, n_inputs: int, n_classes: int, samples: Samples, seed: int
) -> Callable[[], nn.Module]:
    """The user's factory, once a net of it has been tried."""
    with seeded(seed, samples.device):
        check_net(net(n_inputs, n_classes).to(samples.device), samples, n_classes)
    return lambda: net(n_inputs, n_classes)


def check_net(net: nn.Module, samples: Samples, n_classes: int) -> None:
    """Refuse a net of another shape before it fails somewhere inside."""
    rows = samples.batch(torch.arange(2, device=samples.device), "none", generator=None)
    with torch.no_grad():
        out = net.eval()(rows)
    parts = out if isinstance(out, tuple) else (out,)
    shapes = [tuple(part.shape) for part in parts if isinstance(part, Tensor)]
    if len(parts) != 2 or [len(shape) for shape in shapes] != [2, 2] or shapes[1] != (len(rows), n_classes):
        raise ConfigError(
            f"net must build a module that maps a batch to (features, logits), both two-dimensional, with {n_classes} "
            f"logits a row. Got {type(out).__name__} with shapes {shapes} for {len(rows)} rows instead."
        )
