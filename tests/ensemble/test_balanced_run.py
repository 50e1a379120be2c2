"""Class-balanced passes inside the loop: which samples every net sees, and that nothing else changes."""

import pytest
import torch

from labelmend.config import make_config, resolve
from labelmend.ensemble import branches, train
from labelmend.ensemble import run as loop
from labelmend.ensemble.nets import MLP
from labelmend.ensemble.state import Problem, start
from labelmend.samples import VectorSamples

SIZES = (60, 24, 6)


def make_problem():
    truth = torch.repeat_interleave(torch.arange(3), torch.tensor(SIZES))
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(90, 6, generator=generator) * 0.3
    rows[torch.arange(90), truth] += 2
    given = truth.clone()
    given[0] = -1  # unlabelled
    trusted = torch.zeros(90, dtype=torch.bool)
    trusted[50:] = True
    return Problem(VectorSamples(rows), given, trusted, 3)


def passes_of(monkeypatch, balanced):
    """Classes of the samples of every pass: warm-up, branches (all subsets), corrected, noisy, fine-tuning."""
    problem, seen = make_problem(), []
    sizes = {"n_rounds": 1, "hidden": 8, "graph_k": 5, "batch_size": 16, "n_branches": 2, "warmup_passes": 1}
    sizes["scale_columns"] = False  # else votes change many labels, and passes are counted by the given ones
    config = resolve(make_config("paper", balanced=balanced, fine_tune_passes=1, **sizes), 90, 3)
    usual, usual_branches = train.train_pass, branches.train_branches_pass

    def train_pass(net, step, samples, indices, *rest):
        seen.append(problem.given_labels[indices])
        return usual(net, step, samples, indices, *rest)

    def train_branches(nets, step, samples, subsets, *rest):
        seen.append(problem.given_labels[torch.cat(list(subsets))])
        return usual_branches(nets, step, samples, subsets, *rest)

    monkeypatch.setattr(train, "train_pass", train_pass)
    monkeypatch.setattr(branches, "train_branches_pass", train_branches)
    state = start(problem, lambda: MLP(6, 8, 3), config)
    train.warm_up(state, problem, config)
    loop.play_round(state, problem, config)
    train.fine_tune(state, problem, config)
    return [torch.bincount(labels[labels >= 0], minlength=3).tolist() for labels in seen], [len(s) for s in seen]


def test_every_pass_sees_the_classes_equally_often(monkeypatch):
    counts, lengths = passes_of(monkeypatch, balanced=True)
    assert len(counts) == 5
    for classes in counts:
        assert max(classes) - min(classes) <= 2  # two subsets, or the unlabelled one, may add one each
    plain, plain_lengths = passes_of(monkeypatch, balanced=False)
    assert lengths == plain_lengths  # what a GPU has recorded fits every pass
    assert plain[0] == [59, 24, 6]
    assert plain[-1] == [10, 24, 6]


def test_balanced_is_true_or_false():
    with pytest.raises(ValueError, match="balanced must be of type bool"):
        make_config(balanced=1)
