"""The method on one page: warm up, rounds of embed, split, train branches, propagate, vote, train.

Stages get tensors, numbers and a generator. What lives from one round to the next is one record, `RoundState`; a round
leaves through one callback as a `RoundRecord`. Files, reports and the user's containers are unknown here: checkpoints,
progress and the clock come in from outside.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from labelmend.config import Settings
from labelmend.ensemble.branches import build_graph, cells_of, note_answers, train_branches
from labelmend.ensemble.fit import embed
from labelmend.ensemble.graphs import normalize_rows
from labelmend.ensemble.records import GOING_ON, CorrectionRecord, RoundRecord, Stopwatch, TimeLimit
from labelmend.ensemble.split import split_into_packages
from labelmend.ensemble.state import Problem, RoundState, set_learning_rate, start
from labelmend.ensemble.torch_state import refuse_diverged
from labelmend.ensemble.train import train_nets, warm_up
from labelmend.ensemble.vote import count_votes, suggest

Callback = Callable[[RoundRecord, RoundState], None]
Progress = Callable[[str], None]  # called with the name of the stage that begins
Relabel = Callable[[RoundState, Problem], tuple[Tensor, Tensor]]  # labels to learn in place of the vote's, and weights


class NoCheckpoints:
    """Keeps nothing: every run begins at the beginning. `storage/checkpoint.py` has those that keep it in a folder."""

    def __init__(self) -> None:
        self.notes: list[str] = []  # for the user
        self.seconds = 0.0  # that the run took before it went on here

    def restore(self, state: RoundState) -> bool:
        """Bring `state`, as `state.start` made it, to where the run was; False if nothing is kept."""
        return False

    def save(self, state: RoundState) -> None:
        """Keep `state`, if the last time is long enough ago."""


def run(
    problem: Problem,
    make_net: Callable[[], nn.Module],
    settings: Settings,
    callback: Callback = lambda _record, _state: None,
    progress: Progress = lambda _: None,
    checkpoints: NoCheckpoints | None = None,
    limit: TimeLimit | None = None,
    relabel: Relabel | None = None,
) -> RoundState:
    """All rounds; `decision/deciding.py` decides from what they leave."""
    checkpoints, limit = checkpoints or NoCheckpoints(), limit or TimeLimit()
    state = start(problem, make_net, settings)
    if checkpoints.restore(state):
        progress(f"{GOING_ON} after round {state.round_index} of {settings.n_rounds}")
    else:
        progress("warm-up")
        warm_up(state, problem, settings)
        refuse_diverged("the warm-up", settings.lr, [state.noisy_net])
        checkpoints.save(state)
    while state.round_index < settings.n_rounds and limit.leaves_time(state.history, _corrects(state, settings)):
        record = play_round(state, problem, settings, progress, relabel)
        nets, losses = (state.noisy_net, state.corrected_net), (record.corrected_loss, record.noisy_loss)
        refuse_diverged(f"round {record.round_index}", settings.lr, nets, losses)
        state.history.append(record)
        checkpoints.save(state)
        callback(record, state)
    return state


def play_round(
    state: RoundState,
    problem: Problem,
    settings: Settings,
    progress: Progress = lambda _: None,
    relabel: Relabel | None = None,
    wait: Callable[[], None] | None = None,
) -> RoundRecord:
    """One epoch of the paper. Changes `state` in place and returns what happened; for `wait` see `Stopwatch`."""
    watch = Stopwatch(progress, wait)
    previous, previous_omega = state.corrected_labels, state.omega
    set_learning_rate(state, settings)
    correction = None
    if _corrects(state, settings):
        correction = correct_labels(state, problem, settings, watch, relabel)
    watch.lap("train")
    labels, omega = (previous, previous_omega) if settings.label_delay else (state.corrected_labels, state.omega)
    train_noisy = settings.noisy_branch and correction is not None
    corrected_loss, noisy_loss = train_nets(state, problem, settings, labels, omega, train_noisy)
    state.round_index += 1
    watch.lap(None)
    given = problem.given_labels
    return RoundRecord(
        round_index=state.round_index,
        n_rounds=settings.n_rounds,
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
    state: RoundState, problem: Problem, settings: Settings, watch: Stopwatch, relabel: Relabel | None = None
) -> CorrectionRecord:
    """Phases 1 to 3 of the paper: split, train the branches, propagate on their graphs, vote."""
    turn = settings.turn(state.round_index)
    watch.lap("embed")
    source_net = state.noisy_net if settings.noisy_branch else state.deployed_net
    features, logits = embed(source_net, problem.samples)
    rows, state.source_labels = normalize_rows(features), logits.argmax(dim=1)
    watch.lap("split")
    if state.split is None or settings.resplit:
        given, n_classes, branches = problem.given_labels, problem.n_classes, settings.n_branches
        state.split = split_into_packages(rows, given, n_classes, branches, turn.packages, state.generator)
    watch.lap("branches")
    branch_loss = train_branches(state, problem, settings)
    refuse_diverged("training the branches", settings.lr, state.branch_nets, [branch_loss])
    watch.lap("graphs")
    cells = cells_of(rows, settings, state.generator)
    gamma, soft = settings.gamma, settings.soft_labels
    graphs = [build_graph(net, problem.samples, cells, turn.k, gamma, soft) for net in state.branch_nets]
    note_answers(state, graphs)
    watch.lap("propagate")
    suggestions, solver = suggest(state, problem, settings, graphs, turn.alpha)
    watch.lap("vote")
    state.held_out.mul_(settings.evidence_kept).add_(suggestions.held_out)
    state.neighbors = graphs[0].nearest
    state.vote = count_votes(suggestions, state, problem, settings)
    state.corrected_labels, state.omega = state.vote.labels, state.vote.certainty
    if relabel is not None and state.round_index >= settings.n_rounds / 2:
        state.corrected_labels, state.omega = relabel(state, problem)
    return CorrectionRecord(
        branch_loss=branch_loss,
        graph_similarity=[graph.similarity for graph in graphs],
        package_similarity=state.split.similarity,
        subset_sizes=[len(state.split.members(m)) for m in range(settings.n_branches)],
        solver_iterations=solver.iterations,
        solver_residual=solver.worst_residual,
        solver_converged=solver.converged,
    )


def _corrects(state: RoundState, settings: Settings) -> bool:
    return state.round_index % settings.correct_every == 0
