"""The method on one page: warm up, rounds of embed, split, train branches, propagate, vote, train.

Stages get tensors, numbers and a generator; the steps that unpack the configuration for them are in `steps.py`. What
lives from one round to the next is one record, `RoundState`; a round leaves through one callback as a `RoundRecord`.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from labelmend.config import RunConfig
from labelmend.engines.base import Engine
from labelmend.ensemble import steps
from labelmend.ensemble.embed import embed
from labelmend.ensemble.graphs import make_cells, normalize_rows
from labelmend.ensemble.records import GOING_ON, CorrectionRecord, RoundRecord, Stopwatch
from labelmend.ensemble.split import split_into_packages
from labelmend.ensemble.state import Problem, RoundState, start
from labelmend.ensemble.time_limit import TimeLimit
from labelmend.ensemble.torch_state import refuse_diverged
from labelmend.storage.checkpoint import NoCheckpoints

Callback = Callable[[RoundRecord, RoundState], None]
Progress = Callable[[str], None]  # called with the name of the stage that begins


def run(
    problem: Problem,
    make_net: Callable[[], nn.Module],
    config: RunConfig,
    engine: Engine,
    callback: Callback,
    progress: Progress,
    checkpoints: NoCheckpoints | None = None,
    limit: TimeLimit | None = None,
) -> RoundState:
    """All rounds. `config` has every None filled in by `config.follow`; `decision/deciding.py` decides."""
    checkpoints, limit = checkpoints or NoCheckpoints(), limit or TimeLimit()
    state = start(problem, make_net, config)
    if checkpoints.restore(state):
        progress(f"{GOING_ON} after round {state.round_index} of {config.n_rounds}")
    else:
        progress("warm-up")
        steps.warm_up(state, problem, config)
        refuse_diverged("the warm-up", config.lr, [state.noisy_net])
        checkpoints.save(state)
    play_rounds(state, problem, config, engine, callback, progress, checkpoints, limit)
    return state


def play_rounds(
    state: RoundState,
    problem: Problem,
    config: RunConfig,
    engine: Engine,
    callback: Callback,
    progress: Progress,
    checkpoints: NoCheckpoints,
    limit: TimeLimit,
) -> None:
    while state.round_index < (config.n_rounds or 0) and limit.leaves_time(state.history, _corrects(state, config)):
        record = play_round(state, problem, config, engine, progress)
        nets, losses = (state.noisy_net, state.corrected_net), (record.corrected_loss, record.noisy_loss)
        refuse_diverged(f"round {record.round_index}", config.lr, nets, losses)
        state.history.append(record)
        checkpoints.save(state)
        callback(record, state)


def _corrects(state: RoundState, config: RunConfig) -> bool:
    return state.round_index % config.correct_every == 0


def play_round(
    state: RoundState,
    problem: Problem,
    config: RunConfig,
    engine: Engine,
    progress: Progress,
    wait: Callable[[], None] | None = None,
) -> RoundRecord:
    """One epoch of the paper. Changes `state` in place and returns what happened; for `wait` see `Stopwatch`."""
    watch = Stopwatch(progress, wait)
    previous, previous_omega = state.corrected_labels, state.omega
    steps.set_learning_rate(state, config)
    correction = None
    if _corrects(state, config):
        correction = correct_labels(state, problem, config, engine, watch)
    watch.lap("train")
    labels, omega = (previous, previous_omega) if config.label_delay else (state.corrected_labels, state.omega)
    train_noisy = bool(config.noisy_branch) and correction is not None
    corrected_loss, noisy_loss = steps.train_nets(state, problem, config, labels, omega, train_noisy)
    state.round_index += 1
    watch.lap(None)
    given = problem.given_labels
    return RoundRecord(
        round_index=state.round_index,
        n_rounds=config.n_rounds or 0,
        label_changes=int((state.corrected_labels != previous).sum()),
        differ_from_given=int(((state.corrected_labels != given) & (given >= 0)).sum()),
        mean_certainty=float(state.omega.mean()),
        certainty_histogram=torch.histc(state.omega.float().cpu(), 20, 0, 1).int().tolist(),
        correction=correction,
        corrected_loss=corrected_loss,
        noisy_loss=noisy_loss,
        seconds=watch.seconds,
    )


def correct_labels(
    state: RoundState, problem: Problem, config: RunConfig, engine: Engine, watch: Stopwatch
) -> CorrectionRecord:
    """Phases 1 to 3 of the paper: split, train the branches, propagate on their graphs, vote."""
    watch.lap("embed")
    source_net = state.noisy_net if config.noisy_branch else state.deployed_net
    features, logits = embed(source_net, problem.samples)
    rows, state.source_labels = normalize_rows(features), logits.argmax(dim=1)
    watch.lap("split")
    if state.split is None or config.resplit:
        state.split = split_into_packages(
            rows,
            problem.given_labels,
            problem.n_classes,
            config.n_branches,
            steps.packages_per_branch(state, config),
            state.generator,
        )
    watch.lap("branches")
    branch_loss = steps.train_branches(state, problem, config, engine)
    refuse_diverged("training the branches", config.lr, state.branch_nets, [branch_loss])
    watch.lap("graphs")
    cells = make_cells(rows, config.n_probe, state.generator) if len(rows) > steps.exact_rows(rows, config) else None
    k = steps.graph_k(state, config)
    graphs = engine.map_graphs(
        lambda net: steps.build_graph(net, problem.samples, cells, k, config.gamma, config.soft_labels),
        state.branch_nets,
    )
    steps.note_answers(state, graphs)
    watch.lap("propagate")
    suggestions, solver = steps.suggest(state, problem, config, graphs)
    watch.lap("vote")
    state.held_out.mul_(config.evidence_kept).add_(suggestions.held_out)
    state.neighbors = graphs[0].nearest
    state.vote = steps.count_votes(suggestions, state, problem, config)
    state.corrected_labels, state.omega = steps.labels_to_learn(state, problem, config)
    return CorrectionRecord(
        branch_loss=branch_loss,
        graph_similarity=[graph.similarity for graph in graphs],
        package_similarity=state.split.similarity,
        subset_sizes=[len(state.split.members(m)) for m in range(config.n_branches)],
        solver_iterations=solver.iterations,
        solver_residual=solver.worst_residual,
        solver_converged=solver.converged,
    )
