"""The method on one page: warm up, then rounds of embed, split, train branches, propagate, vote, train.

Configuration stops here: stages get tensors, numbers and a generator. The state between two rounds is one record.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from labelmend.config import RunConfig
from labelmend.data.samples import Samples
from labelmend.embed import embed
from labelmend.engines.base import Engine
from labelmend.graph.affinity import normalized_graph
from labelmend.graph.knn import EXACT_ROWS, Neighbors, cell_neighbors, exact_neighbors, make_cells, normalize_rows
from labelmend.graph.propagate import propagate, starting_rows
from labelmend.nets.interpolate import interpolate, refresh_batch_norm
from labelmend.split import split_into_packages
from labelmend.training import losses
from labelmend.training.fit import train_pass
from labelmend.vote import Vote, vote


@dataclass
class RoundState:
    """Everything that lives from one round to the next; what a checkpoint has to store."""

    noisy_net: nn.Module
    corrected_net: nn.Module
    branch_nets: list[nn.Module]
    noisy_optimizer: torch.optim.Optimizer
    corrected_optimizer: torch.optim.Optimizer
    generator: torch.Generator
    corrected_labels: Tensor
    omega: Tensor
    round_index: int = 0
    split: object = None
    vote: Vote | None = None
    mean: Tensor | None = None


def warm_up(state, samples, labelled, given, config):
    def loss(net, x, indices):
        return F.cross_entropy(net(x)[1], given[indices])
    for _ in range(config.warmup_passes):
        train_pass(state.noisy_net, state.noisy_optimizer, samples, labelled, config.batch_size, loss, state.generator)
    state.corrected_net.load_state_dict(state.noisy_net.state_dict())


def play_round(state, samples, given, trusted, n_classes, config, engine, times):
    t = time.perf_counter()
    def lap(name):
        nonlocal t
        now = time.perf_counter(); times[name] = times.get(name, 0) + now - t; t = now
    features, _ = embed(state.noisy_net if config.noisy_branch else state.corrected_net, samples)
    rows = normalize_rows(features)
    lap('embed')
    split = split_into_packages(rows, given, n_classes, config.n_branches, config.packages_per_branch, state.generator)
    lap('split')
    corrected, omega = state.corrected_labels, state.omega
    shares = torch.rand(config.n_branches, generator=state.generator).tolist()
    for net, share in zip(state.branch_nets, shares):
        interpolate(net, state.corrected_net, state.noisy_net if config.noisy_branch else state.corrected_net, share)
    opt = torch.optim.SGD([p for n in state.branch_nets for p in n.parameters()], lr=config.lr, momentum=config.momentum, weight_decay=config.weight_decay)
    kept = (corrected == given) & (given >= 0)
    subsets = [split.members(m) for m in range(config.n_branches)]
    if config.branch_samples == 'kept':
        subsets = [s[kept[s]] for s in subsets]
    def bl(f, logits, idx):
        return losses.branch_loss(config.branch_loss, f, logits, corrected[idx], kept[idx], omega[idx], config.smoothness_scale, config.ce_factor, config.mae_factor)
    engine.train_branches(state.branch_nets, opt, samples, subsets, config.batch_size, bl, state.generator)
    lap('branches')
    cells = None
    if len(samples) > EXACT_ROWS:
        cells = make_cells(rows, config.n_probe, state.generator)
        lap('cells')
    sources = [given] if bool((corrected == given).all()) else [given, corrected]
    starts = [starting_rows(s, split.branch_of, j) for s in sources for j in range(config.n_branches)]
    def build(net):
        f, logits = embed(net, samples)
        r = normalize_rows(f)
        lap('embed')
        nb = exact_neighbors(r, config.graph_k) if cells is None else cell_neighbors(r, cells, config.graph_k)
        lap('knn')
        g = normalized_graph(nb, config.gamma)
        lap('graph')
        out = propagate(g, starts, n_classes, config.alpha, config.scale_columns, config.tolerance, config.max_iter)
        lap('propagate')
        return out, logits.softmax(1)
    results = engine.map_graphs(build, state.branch_nets)
    state.reports = [r[0][1] for r in results]
    suggested = torch.cat([r[0][0].labels for r in results], 1)
    cert = torch.cat([r[0][0].certainty for r in results], 1)
    state.mean = torch.stack([r[0][0].mean for r in results]).mean(0)
    state.branch_p = torch.stack([r[1] for r in results]).mean(0)
    v = vote(suggested, cert, given, corrected, n_classes, trusted, config.certainty_percentiles)
    lap('vote')
    state.vote = v
    state.corrected_labels, state.omega = v.labels, v.certainty
    lab, om = v.labels, v.certainty
    def cl(net, x, i):
        return losses.weighted_cross_entropy(net(x)[1], lab[i], om[i])
    train_pass(state.corrected_net, state.corrected_optimizer, samples, torch.nonzero(lab >= 0).squeeze(1), config.batch_size, cl, state.generator)
    nw = losses.noisy_weights(om, given, lab)
    if config.noisy_branch:
        def nl(net, x, i):
            return losses.weighted_cross_entropy(net(x)[1], given[i], nw[i])
        train_pass(state.noisy_net, state.noisy_optimizer, samples, torch.nonzero(given >= 0).squeeze(1), config.batch_size, nl, state.generator)
    lap('train')
    state.round_index += 1
