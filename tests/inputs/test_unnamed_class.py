"""Classes that no label names, but a model of the user does."""

import numpy as np
import pytest

from labelmend.decision.pool import never_given, transition_at
from labelmend.evidence.inputs import with_unnamed

UNNAMED = np.array([False, False, True])


def test_all_labels_of_an_unnamed_class_are_wrong_and_stand_outside_of_the_rate():
    counts = np.array([[80.0, 10, 0], [10, 80, 0], [30, 10, 0]])
    with_it, without = transition_at(0.1, counts, UNNAMED), transition_at(0.1, counts[:2, :2])
    assert with_it.sum(axis=1) == pytest.approx(1)
    assert (with_it[:, 2] == 0).all()
    assert with_it[2, 0] > with_it[2, 1] > 0
    assert with_it[:2, :2] == pytest.approx(without, abs=0.02)


def test_without_such_a_class_nothing_changes():
    transition = transition_at(0.1, np.diag([50.0, 40, 30]) + 2)
    assert (never_given(transition, np.zeros(3, dtype=bool)) == transition).all()


def test_members_take_its_odds_from_the_models_of_the_user():
    scores = np.log(np.array([[0.6, 0.4, 1e-6], [0.1, 0.9, 1e-6]], dtype=np.float32))
    theirs = np.log(np.array([[0.1, 0.1, 0.8], [0.5, 0.4, 0.1]], dtype=np.float32))
    found = np.exp(with_unnamed(scores, {"net": theirs}, UNNAMED).astype(float))
    shares = found / found.sum(axis=1, keepdims=True)
    assert shares[:, 2] == pytest.approx([0.8, 0.1], abs=1e-3)
    assert shares[0, 0] / shares[0, 1] == pytest.approx(1.5, abs=1e-3)
