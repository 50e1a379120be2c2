import numpy as np
import pytest
import torch
from torch.testing import assert_close

import reference
from labelmend.decision import annotators
from labelmend.decision import posterior as decide
from labelmend.decision.annotators import annotated_posterior, confusions, consensus, shrunk, weigh
from labelmend.ensemble.state import Opinions


def opinions(triples, n_annotators, in_use):
    sample, annotator, label = torch.tensor(triples).T
    return Opinions(sample, annotator, label, n_annotators, torch.tensor(in_use))


def crowd(n=300, n_classes=3, accuracies=(0.9, 0.7, 0.4), seed=0, share=0.7):
    """(true classes, triples): everyone labels a share of the samples, wrong labels are any other class."""
    random = np.random.default_rng(seed)
    true = random.integers(n_classes, size=n)
    triples = []
    for sample in range(n):
        for a, accuracy in enumerate(accuracies):
            if random.random() < share:
                step = 0 if random.random() < accuracy else random.integers(1, n_classes)
                triples.append((sample, a, int((true[sample] + step) % n_classes)))
    return true, triples


def predicted_of(true, n_classes, error, seed=0):
    """Calibrated: names the true class with probability 1 - error, and says so."""
    random = np.random.default_rng(seed)
    said = np.where(
        random.random(len(true)) < error, (true + random.integers(1, n_classes, len(true))) % n_classes, true
    )
    out = np.full((len(true), n_classes), error / (n_classes - 1))
    out[np.arange(len(true)), said] = 1 - error
    return torch.tensor(out)


def nobody(n):
    return torch.zeros(n, dtype=torch.long), torch.zeros(n, dtype=torch.bool)


def test_two_people_against_each_other_by_hand():
    confusion = torch.tensor([[[0.8, 0.2], [0.3, 0.7]], [[0.9, 0.1], [0.4, 0.6]]])
    said = opinions([(0, 0, 0), (0, 1, 1), (1, 0, 0)], 2, [-1, -1, -1])
    found = weigh(torch.tensor([[0.5, 0.5], [0.5, 0.5], [0.9, 0.1]]), confusion, said)
    # 0.8 * 0.1 against 0.3 * 0.6; 0.8 against 0.3; nobody said anything of the third
    assert_close(found, torch.tensor([[0.08 / 0.26, 0.18 / 0.26], [0.8 / 1.1, 0.3 / 1.1], [0.9, 0.1]]))


def test_confusions_equal_the_slow_reference():
    true, triples = crowd(40)
    probabilities = predicted_of(true, 3, 0.2)
    found = confusions(probabilities, opinions(triples, 3, true.tolist()))
    priors = annotators.QUALITY_PRIOR, annotators.CONFUSION_PRIOR, decide.PRIOR_ROWS, decide.FLOOR
    assert_close(found.numpy(), reference.annotator_confusions(probabilities.numpy(), triples, 3, *priors))
    assert_close(found.sum(dim=2), torch.ones(3, 3, dtype=torch.float64))


def test_em_equals_the_slow_reference():
    true, triples = crowd(40)
    p = predicted_of(true, 3, 0.3).numpy()
    found = annotated_posterior(torch.tensor(p), opinions(triples, 3, true.tolist()), *nobody(40), n_passes=4)
    q = np.eye(3)[p.argmax(axis=1)]
    priors = annotators.QUALITY_PRIOR, annotators.CONFUSION_PRIOR, decide.PRIOR_ROWS, decide.FLOOR
    for _ in range(4):
        q = reference.annotated_posterior(p, reference.annotator_confusions(q, triples, 3, *priors), triples)
    assert_close(found.probabilities.numpy(), q, rtol=1e-6, atol=1e-9)
    assert_close(found.confusion.numpy(), reference.annotator_confusions(q, triples, 3, *priors), rtol=1e-6, atol=1e-9)


def test_one_annotator_is_the_plain_posterior():
    """But for what holds T: rows of the common confusion of one are its own, and nobody is sceptical."""
    true, triples = crowd(2000, accuracies=(0.8,), share=1.1)
    predicted, given = predicted_of(true, 3, 0.2), torch.tensor([said for _, _, said in triples])
    plain = decide.posterior(predicted, given, nobody(2000)[1])
    found = annotated_posterior(predicted, opinions(triples, 1, given.tolist()), *nobody(2000))
    assert_close(found.probabilities, plain.probabilities, rtol=0, atol=5e-3)
    assert_close(found.transition, plain.transition, rtol=0, atol=5e-3)
    assert found.noise_rate == pytest.approx(plain.noise_rate, abs=2e-3)


def test_good_and_bad_annotators_are_told_apart_where_the_features_say_something():
    true, triples = crowd(3000)
    found = annotated_posterior(predicted_of(true, 3, 0.2), opinions(triples, 3, true.tolist()), *nobody(3000))
    accuracy = found.confusion.diagonal(dim1=1, dim2=2).mean(dim=1)
    assert_close(accuracy, torch.tensor([0.9, 0.7, 0.4], dtype=torch.float64), rtol=0, atol=0.04)
    assert (found.probabilities.argmax(dim=1).numpy() == true).mean() > 0.86  # the features alone: 0.8


def test_noise_rate_and_transition_are_those_of_the_labels_in_use():
    true, triples = crowd(1500, accuracies=(0.95, 0.95, 0.95))
    in_use = np.where(np.arange(1500) % 5 == 0, (true + 1) % 3, true)  # a fifth is the next class
    in_use[7] = -1
    found = annotated_posterior(predicted_of(true, 3, 0.1), opinions(triples, 3, in_use.tolist()), *nobody(1500))
    assert found.noise_rate == pytest.approx(0.2, abs=0.02)
    assert_close(found.transition.diagonal(), torch.full((3,), 0.8, dtype=torch.float64), rtol=0, atol=0.06)
    assert found.transition[0, 1] > 0.12


def test_whoever_gave_no_label_is_like_all_and_few_labels_move_little():
    counts = torch.zeros(3, 2, 2, dtype=torch.float64)
    counts[0] = torch.tensor([[80.0, 20.0], [20.0, 80.0]])
    counts[2] = torch.tensor([[0.0, 1.0], [0.0, 0.0]])  # one label, wrong
    common = decide.transition_of(counts[:2].sum(dim=0))
    found = shrunk(counts, common)
    assert_close(found[1], common, rtol=0, atol=1e-6)
    assert found[2, 0, 1] > common[0, 1]
    # (1 + 10 * 0.2) / 11 wrong, then 30 such rows and the label itself: (1 + 30 * 3 / 11) / 31
    assert found[2, 0, 1] == pytest.approx((1 + 30 * 3 / 11) / 31, abs=2e-3)


def test_the_consensus_follows_those_who_are_good():
    true, triples = crowd(1200, 4, (0.95, 0.95, 0.35, 0.35, 0.35))
    said = opinions(triples, 5, true.tolist())
    best = consensus(said, 4, *nobody(1200)).argmax(dim=1).numpy()
    spoken = np.isin(np.arange(1200), [sample for sample, _, _ in triples])
    votes = np.zeros((1200, 4))
    for sample, _, label in triples:
        votes[sample, label] += 1
    plain = (votes + np.random.default_rng(0).random(votes.shape) / 2).argmax(axis=1)
    assert (best == true)[spoken].mean() > (plain == true)[spoken].mean() + 0.1


def test_the_consensus_of_single_labels_is_the_label_and_of_nobody_nothing():
    said = opinions([(0, 0, 1), (1, 1, 0), (2, 0, 0), (3, 1, 1)], 2, [-1] * 5)
    found = consensus(said, 2, *nobody(5))
    assert found.argmax(dim=1)[:4].tolist() == [1, 0, 0, 1]
    assert found[4].tolist() == [0, 0]


def test_trusted_samples_are_fixed_and_teach_who_is_right():
    triples = [(sample, a, (sample + a) % 2) for sample in range(40) for a in range(2)]  # always against each other
    given, fixed = torch.arange(40) % 2, torch.arange(40) < 20  # the first one is right wherever it is known
    found = consensus(opinions(triples, 2, given.tolist()), 2, given, fixed)
    assert_close(found[:20].argmax(dim=1), given[:20])
    assert float(found[:20].max(dim=1).values.min()) == 1
    assert_close(found[20:].argmax(dim=1), given[20:])
    assert float(found[20:].max(dim=1).values.min()) < 1


def test_blocks_of_labels_give_the_same_as_one_block(monkeypatch):
    true, triples = crowd(100)
    said, predicted = opinions(triples, 3, true.tolist()), predicted_of(true, 3, 0.2)
    whole = annotated_posterior(predicted, said, *nobody(100))
    monkeypatch.setattr(annotators, "BLOCK_ENTRIES", 7 * 3)
    parts = annotated_posterior(predicted, said, *nobody(100))
    assert_close(parts.probabilities, whole.probabilities)
    assert_close(parts.confusion, whole.confusion)
