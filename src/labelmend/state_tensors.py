"""The state of a run as named tensors, and back.

Knows every part of `RoundState`; does not know files. Left out is what is made anew: steps (with the optimisers of the
branches, which begin every round afresh) and learning rates, which follow the round. The history is not made of
tensors.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from labelmend.errors import CheckpointError, ConfigError
from labelmend.nets.average import FollowingNet
from labelmend.split import Split
from labelmend.state import RoundState
from labelmend.training.sgd import Optimizer
from labelmend.vote import Vote

Tensors = dict[str, Tensor]
SPLIT = ("branch_of", "package_of", "seed_indices")


def to_tensors(state: RoundState) -> Tensors:
    """Everything a run needs to go on; the tensors are those of the state, not copies."""
    found = {
        **_places(state),
        **_momentum(state),
        **_generators(state),
        "round_index": torch.tensor(state.round_index),
        "corrected_labels": state.corrected_labels,
        "omega": state.omega,
    }
    if state.split is not None:
        found |= {f"split.{name}": getattr(state.split, name) for name in SPLIT}
        found["split.similarity"] = torch.tensor(state.split.similarity, dtype=torch.float64)
    if state.vote is not None:
        share = state.vote.share
        found |= {"vote.labels": state.vote.labels, "vote.certainty": state.vote.certainty}
        found |= {"vote.share.rows": share.crow_indices(), "vote.share.columns": share.col_indices()}
        found["vote.share.values"] = share.values()
    if state.neighbors is not None:
        found["neighbors"] = state.neighbors
    return found


@torch.no_grad()
def fill(state: RoundState, found: Tensors, average_decay: float) -> None:
    """Go on from `found`. `state` is as `state.start` makes it; its tensors stay where they are."""
    device = state.held_out.device
    if average_decay:
        state.average = FollowingNet(state.corrected_net, average_decay)
    for name, place in _checked_places(state, found).items():
        place.copy_(found[name])
    for name, parameter, optimizer in _trained(state):
        if name in found:
            optimizer.state[parameter]["momentum_buffer"] = found[name].to(parameter.device)
    state.round_index = int(found["round_index"])
    state.corrected_labels, state.omega = found["corrected_labels"].to(device), found["omega"].to(device)
    if "split.branch_of" in found:
        parts = {name: found[f"split.{name}"].to(device) for name in SPLIT}
        state.split = Split(**parts, similarity=float(found["split.similarity"]))
    if "vote.labels" in found:
        share = _share(found, tuple(state.held_out.shape))
        state.vote = Vote(found["vote.labels"].to(device), found["vote.certainty"].to(device), share)
    if "neighbors" in found:
        state.neighbors = found["neighbors"].to(device)
    _set_generators(state, found)


def _places(state: RoundState) -> Tensors:
    """Tensors that are written to but never replaced."""
    found = {"held_out": state.held_out, "targets.labels": state.targets.labels, "targets.omega": state.targets.omega}
    if state.targets.soft is not None:
        found["targets.soft"] = state.targets.soft
    if state.targets.answers is not None:
        found["targets.answers"] = state.targets.answers
    nets = {"noisy_net": state.noisy_net, "corrected_net": state.corrected_net}
    nets |= {f"branch_nets.{position}": net for position, net in enumerate(state.branch_nets)}
    if state.average is not None:
        nets["average"] = state.average.net
    for name, net in nets.items():
        # The state of a net leaves out buffers that are not worth a file of their own; a run may still change them.
        for part, value in {**dict(net.named_buffers()), **net.state_dict()}.items():
            if not isinstance(value, Tensor):
                raise ConfigError(
                    f"checkpoints need nets whose state is tensors. {type(net).__name__} has {part}, "
                    f"a {type(value).__name__}; leave it out or go without checkpoints."
                )
            found[f"{name}.{part}"] = value
    return found


def _checked_places(state: RoundState, found: Tensors) -> Tensors:
    places = _places(state)
    theirs = {name: value.shape for name, value in found.items() if name in places}
    if theirs != {name: place.shape for name, place in places.items()}:
        raise CheckpointError(
            "checkpoints must be of the same nets. These are of others; use the net they were made with, or another "
            "folder."
        )
    return places


def _momentum(state: RoundState) -> Tensors:
    held = {name: optimizer.state[weight].get("momentum_buffer") for name, weight, optimizer in _trained(state)}
    return {name: value for name, value in held.items() if value is not None}


def _trained(state: RoundState) -> Iterator[tuple[str, nn.Parameter, Optimizer]]:
    """The weights that have a momentum from one round to the next, each with the name of it."""
    for name in ("noisy_optimizer", "corrected_optimizer"):
        optimizer: Optimizer = getattr(state, name)
        for position, weight in enumerate(optimizer.param_groups[0]["params"]):
            yield f"{name}.{position}", weight, optimizer


def _generators(state: RoundState) -> Tensors:
    """Ours, and torch's own, from which the dropout of a net draws."""
    device = state.generator.device
    found = {"generator": state.generator.get_state(), "torch_generator": torch.get_rng_state()}
    if device.type == "cuda":
        found["cuda_generator"] = torch.cuda.get_rng_state(device)
    return found


def _set_generators(state: RoundState, found: Tensors) -> None:
    state.generator.set_state(found["generator"])
    torch.set_rng_state(found["torch_generator"])
    if "cuda_generator" in found:
        torch.cuda.set_rng_state(found["cuda_generator"], state.generator.device)


def _share(found: Tensors, shape: tuple[int, ...]) -> Tensor:
    rows, columns, values = (found[f"vote.share.{name}"] for name in ("rows", "columns", "values"))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*[Ss]parse.*")  # torch: "CSR support is in beta state"
        return torch.sparse_csr_tensor(rows, columns, values, size=shape, check_invariants=False)
