"""The held-out nets: a sample's own label never reaches the net that judges it."""

import torch
from torch.testing import assert_close

from labelmend.decision.ensemble_evidence import held_out_probabilities
from labelmend.ensemble.nets import MLP
from labelmend.samples import VectorSamples


def judge(rows, labels, fold_of, n_folds=2, seed=0, mixup=False):
    torch.manual_seed(seed)
    nets = [MLP(rows.shape[1], 8, 2) for _ in range(n_folds)]
    generator = torch.Generator().manual_seed(seed)
    samples = VectorSamples(rows)
    return held_out_probabilities(nets, samples, labels, fold_of, 2, 8, 16, 0.1, 0.9, 0.0, generator, mixup)


def two_clusters(n=60):
    generator = torch.Generator().manual_seed(3)
    labels = torch.arange(n) % 2
    rows = torch.randn(n, 3, generator=generator) * 0.3 + torch.where(labels.unsqueeze(1) == 0, -1.0, 1.0)
    return rows, labels


def test_changing_the_labels_of_a_fold_does_not_change_what_is_said_about_it():
    rows, labels = two_clusters()
    fold_of = (torch.arange(60) // 2) % 2
    changed = torch.where(fold_of == 0, 1 - labels, labels)
    before, after = judge(rows, labels, fold_of), judge(rows, changed, fold_of)
    assert_close(before[fold_of == 0], after[fold_of == 0])
    assert not torch.allclose(before[fold_of == 1], after[fold_of == 1])


def test_it_learns_from_the_other_folds():
    rows, labels = two_clusters()
    answers = judge(rows, labels, (torch.arange(60) // 2) % 2)
    assert_close(answers.argmax(dim=1), labels)
    assert_close(answers.sum(dim=1), torch.ones(60))


def test_samples_without_a_label_are_judged_but_not_learned_from():
    rows, labels = two_clusters()
    fold_of = (torch.arange(60) // 2) % 2
    rows[-1] = 50.0  # would dominate its net if it were learned from
    gap = labels.clone()
    gap[-1] = -1
    answers = judge(rows, gap, fold_of)
    assert torch.isfinite(answers).all()
    assert_close(answers[:-1].argmax(dim=1), labels[:-1])


def test_nets_of_mixed_samples_say_the_same_and_are_less_sure():
    rows, labels = two_clusters()
    fold_of = (torch.arange(60) // 2) % 2
    plain, mixed = judge(rows, labels, fold_of), judge(rows, labels, fold_of, mixup=True)
    assert_close(mixed.argmax(dim=1), labels)
    assert mixed.amax(dim=1).mean() < plain.amax(dim=1).mean()
