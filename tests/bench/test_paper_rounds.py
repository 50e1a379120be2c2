"""What is written down of a round, by hand."""

import math
from types import SimpleNamespace

import pytest
import torch
from sklearn.metrics import roc_auc_score

from bench.paper.rounds import diagnose

TRUE = torch.tensor([0, 0, 1, 1, 1, 0])
GIVEN = torch.tensor([0, 1, 1, 0, 1, -1])  # two are wrong, one is missing
VOTED = torch.tensor([0, 0, 1, 0, 0, 0])  # one is mended, one right label is lost
OMEGA = torch.tensor([0.75, 0.5, 1.0, 0.5, 0.25, 1.0])


def state(answers=None, soft=None, branches=None, source=None):
    return SimpleNamespace(
        corrected_labels=VOTED,
        omega=OMEGA,
        branch_labels=branches,
        source_labels=source,
        targets=SimpleNamespace(answers=answers, soft=soft),
    )


def test_what_became_of_the_labels():
    found = diagnose(state(), GIVEN, TRUE)
    assert found["kept"] == 3 / 5
    assert found["kept_right"] == pytest.approx(2 / 3)
    assert found["changed_right"] == 1 / 2
    assert found["right_lost"] == pytest.approx(1 / 3)
    assert found["certainty_right"] == pytest.approx(2.25 / 3)
    assert found["certainty_wrong"] == pytest.approx(0.75 / 2)
    labelled = GIVEN >= 0
    expected = roc_auc_score((VOTED == TRUE)[labelled], OMEGA[labelled])
    assert found["certainty_auroc"] == pytest.approx(expected)


def test_what_nets_say():
    branches = torch.stack([TRUE, 1 - TRUE])
    source = torch.tensor([0, 1, 1, 0, 0, 1])
    found = diagnose(state(branches=branches, source=source), GIVEN, TRUE)
    assert found["branch_right"] == 1 / 2
    assert found["source_right"] == 2 / 5
    assert found["source_says_wrong_given"] == 1
    assert found["source_says_wrong_vote"] == 1


def test_what_soft_labels_are():
    soft = torch.tensor([[1.0, 0.0]] * 3 + [[0.5, 0.5]] * 3)
    found = diagnose(state(soft=soft, answers=soft), GIVEN, TRUE)
    assert found["soft_entropy"] == found["answers_entropy"] == pytest.approx(math.log(2) / 2)
    assert found["soft_largest_class"] == 1
    assert found["soft_right"] == 2 / 5


def test_a_share_of_nothing_is_left_out():
    found = diagnose(state(), VOTED, TRUE)
    assert "changed_right" not in found
    assert found["kept"] == 1
    assert "certainty_auroc" not in diagnose(state(), VOTED, VOTED)
