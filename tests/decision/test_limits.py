import numpy as np
import pytest
import torch
from torch.testing import assert_close

from labelmend.decision.limits import at_precision, within_budget
from labelmend.decision.posterior import CORRECTED, FILLED, KEPT, REVIEW, decide

# Samples 0 to 5 have the label 0; 6 has none. The run would change 1, 2, 3 and 4.
PROBABILITIES = torch.tensor([[0.9, 0.1], [0.01, 0.99], [0.04, 0.96], [0.2, 0.8], [0.4, 0.6], [0.7, 0.3], [0.45, 0.55]])
GIVEN = torch.tensor([0, 0, 0, 0, 0, 0, -1])
NOBODY = torch.zeros(7, dtype=torch.bool)


def plain(probabilities=PROBABILITIES, given=GIVEN, left_alone=NOBODY):
    return decide(probabilities, probabilities.argmax(dim=1), given, left_alone, 0.85)


def limited(precision, left_alone=NOBODY):
    return at_precision(plain(left_alone=left_alone), PROBABILITIES, GIVEN, left_alone, precision, 0.85)


def test_the_plain_decision_by_hand():
    decision = plain()
    assert decision.labels.tolist() == [0, 1, 1, 1, 1, 0, 1]
    assert decision.status.tolist() == [KEPT, CORRECTED, CORRECTED, REVIEW, REVIEW, REVIEW, FILLED]
    assert_close(decision.given_confidence, torch.tensor([0.9, 0.01, 0.04, 0.2, 0.4, 0.7, 0.0]))


@pytest.mark.parametrize(
    ("precision", "made"),
    [(0.995, []), (0.98, [1]), (0.9749, [1, 2]), (0.9166, [1, 2, 3]), (0.84, [1, 2, 3]), (0.83, [1, 2, 3, 4])],
)
def test_the_largest_set_of_changes_is_made_whose_mean_confidence_is_the_precision(precision, made):
    # Means of .99, .96, .8, .6: .99, .975, .9167, .8375
    decision = limited(precision)
    assert torch.nonzero((decision.labels != GIVEN) & (GIVEN >= 0)).squeeze(1).tolist() == made
    assert torch.nonzero(decision.status == CORRECTED).squeeze(1).tolist() == made


def test_a_change_not_made_keeps_the_given_label_for_review_and_names_the_other_class():
    decision = limited(0.98)
    assert decision.labels.tolist() == [0, 1, 0, 0, 0, 0, 1]
    assert decision.status.tolist() == [KEPT, CORRECTED, REVIEW, REVIEW, REVIEW, REVIEW, FILLED]
    assert decision.runner_up.tolist() == [1, 0, 1, 1, 1, 1, 0]
    assert_close(decision.confidence, torch.tensor([0.9, 0.99, 0.04, 0.2, 0.4, 0.7, 0.55]))


def test_what_is_left_alone_stays_so():
    decision = limited(0.83, left_alone=torch.arange(7) == 1)
    assert decision.labels.tolist() == [0, 0, 1, 1, 0, 0, 1]
    assert decision.status[1] == REVIEW


def test_precision_at_random_is_what_was_asked_and_no_change_more_would_do():
    random = np.random.default_rng(0)
    probabilities = torch.from_numpy(random.dirichlet(np.full(4, 0.2), size=500)).float()
    given = torch.from_numpy(random.integers(4, size=500))
    none = torch.zeros(500, dtype=torch.bool)
    before = plain(probabilities, given, none)
    decision = at_precision(before, probabilities, given, none, 0.95, 0.85)
    made = decision.status == CORRECTED
    would = before.labels != given
    assert 0 < made.sum() < would.sum()
    assert decision.confidence[made].double().mean() >= 0.95
    best_refused = before.confidence[would & ~made].max()
    assert (decision.confidence[made].double().sum() + best_refused) / (made.sum() + 1) < 0.95
    assert best_refused <= decision.confidence[made].min()


def test_the_budget_is_spent_on_the_labels_most_probably_wrong_and_on_no_other():
    decision = within_budget(plain(), GIVEN, NOBODY, 2)
    # Doubts: .1, .01, .04, .2, .4, .3; the seventh had no label and stays filled.
    assert decision.status.tolist() == [KEPT, CORRECTED, CORRECTED, CORRECTED, REVIEW, REVIEW, FILLED]
    assert decision.labels.tolist() == plain().labels.tolist()


def test_a_budget_beyond_the_samples_takes_all_but_trusted_and_filled_ones():
    trusted = torch.arange(7) == 4
    decision = within_budget(plain(), GIVEN, trusted, 100)
    assert decision.status.tolist() == [REVIEW, REVIEW, REVIEW, REVIEW, CORRECTED, REVIEW, FILLED]


def test_with_a_precision_and_a_budget_refused_changes_come_first():
    decision = within_budget(limited(0.98), GIVEN, NOBODY, 2)
    assert decision.status.tolist() == [KEPT, CORRECTED, REVIEW, REVIEW, KEPT, KEPT, FILLED]
