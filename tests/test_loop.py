"""The loop: what a round changes, what it records, and that it is a function of its state."""

import copy

import pytest
import torch
from torch.testing import assert_close

from labelmend import loop, steps
from labelmend.config import follow, make_config
from labelmend.data.samples import VectorSamples
from labelmend.engines.local import LocalEngine
from labelmend.nets.mlp import MLP
from labelmend.state import Problem, start


def make_problem(n=90, n_wrong=12):
    generator = torch.Generator().manual_seed(0)
    truth = torch.arange(n) % 3
    rows = torch.randn(n, 6, generator=generator) * 0.4
    rows[torch.arange(n), truth] += 2
    given = truth.clone()
    given[:n_wrong] = (given[:n_wrong] + 1) % 3
    return Problem(VectorSamples(rows), given, torch.zeros(n, dtype=torch.bool), 3), truth


def make_run(problem, **changes):
    config = follow(make_config(**{"n_rounds": 3, "hidden": 16, "graph_k": 6, "batch_size": 32, **changes}), 90, 3)
    state = start(problem, lambda: MLP(6, 16, 3), config)
    steps.warm_up(state, problem, config)
    return state, config


def play(state, problem, config):
    return loop.play_round(state, problem, config, LocalEngine(), lambda stage: None)


def test_all_nets_start_from_the_warmed_up_net():
    problem, _ = make_problem()
    state, _ = make_run(problem)
    for name, value in state.noisy_net.state_dict().items():
        assert_close(state.corrected_net.state_dict()[name], value)


def test_rounds_correct_planted_errors_and_record_them():
    problem, truth = make_problem()
    state, config = make_run(problem)
    records = [play(state, problem, config) for _ in range(3)]
    assert [record.round_index for record in records] == [1, 2, 3]
    assert float((state.corrected_labels == truth).double().mean()) >= 0.95
    assert records[-1].differ_from_given == int((state.corrected_labels != problem.given_labels).sum())
    assert sum(records[0].certainty_histogram) == 90
    assert sum(records[0].subset_sizes) == 90
    assert len(records[0].graph_similarity) == 5
    assert all(record.solver_converged for record in records)
    assert set(records[0].seconds) == {"embed", "split", "branches", "graphs", "propagate", "vote", "train"}


def test_a_round_is_a_function_of_the_state():
    problem, _ = make_problem()
    state, config = make_run(problem)
    play(state, problem, config)
    generator_state = state.generator.get_state()
    twin = copy.deepcopy({k: v for k, v in vars(state).items() if k not in ("generator", "vote")})  # a vote is output
    twin_state = type(state)(**twin, generator=torch.Generator())
    twin_state.generator.set_state(generator_state)
    # An optimiser deep-copied apart from its net would train the old one: tie the copies together again.
    for net, name in ((twin_state.noisy_net, "noisy_optimizer"), (twin_state.corrected_net, "corrected_optimizer")):
        optimizer = torch.optim.SGD(net.parameters(), lr=1.0)
        optimizer.load_state_dict(copy.deepcopy(getattr(state, name).state_dict()))
        setattr(twin_state, name, optimizer)
    play(state, problem, config)
    play(twin_state, problem, config)
    assert torch.equal(state.corrected_labels, twin_state.corrected_labels)
    assert torch.equal(state.omega, twin_state.omega)
    for mine, other in zip(state.corrected_net.parameters(), twin_state.corrected_net.parameters(), strict=True):
        assert torch.equal(mine, other)


def test_the_split_is_kept_without_resplitting_and_changes_with_it():
    problem, _ = make_problem()
    for resplit in (True, False):
        state, config = make_run(problem, resplit=resplit)
        play(state, problem, config)
        first = state.split.branch_of.clone()
        play(state, problem, config)
        assert torch.equal(first, state.split.branch_of) is not resplit


def test_before_the_first_vote_one_source_gives_the_same_votes_as_two():
    problem, _ = make_problem()
    state, config = make_run(problem)
    state.split = loop.split_into_packages(
        torch.nn.functional.normalize(problem.samples.rows), problem.given_labels, 3, 5, 4, state.generator
    )
    graphs = [steps.build_graph(net, problem.samples, None, config) for net in state.branch_nets]
    one, _ = steps.propagate_all(graphs, [problem.given_labels], state, problem, config)
    two, _ = steps.propagate_all(graphs, [problem.given_labels] * 2, state, problem, config)
    vote_one, vote_two = (steps.count_votes(s, state, problem, config) for s in (one, two))
    assert torch.equal(vote_one.labels, vote_two.labels)
    assert_close(vote_one.certainty, vote_two.certainty)
    assert_close(vote_one.share.to_dense(), vote_two.share.to_dense())


def test_unlabelled_samples_start_no_propagation_even_after_a_vote_has_filled_them():
    problem, truth = make_problem()
    problem.given_labels[-6:] = -1
    state, config = make_run(problem)
    for _ in range(2):
        play(state, problem, config)
        assert (state.split.branch_of[-6:] == -1).all()
    assert_close(state.corrected_labels[-6:], truth[-6:])


def test_the_learning_rate_drops_at_the_milestones():
    problem, _ = make_problem()
    state, config = make_run(problem, n_rounds=4, lr_milestones=(0.5, 0.75))
    seen = []
    for state.round_index in range(4):
        steps.set_learning_rate(state, config)
        seen.append(state.noisy_optimizer.param_groups[0]["lr"])
    assert seen == pytest.approx([0.05, 0.05, 0.005, 0.0005])
