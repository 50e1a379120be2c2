import numpy as np
import pytest

from labelmend.self_test.comparison import score, score_review


def test_figures_by_hand():
    true = np.array([0, 0, 0, 0, 1, 1, 1, 1, 1, 1])
    given = np.array([1, 1, 1, 0, 1, 1, 1, 1, 1, 1])  # three wrong
    final = np.array([0, 2, 1, 0, 0, 1, 1, 1, 1, 1])  # one right again, one changed to another wrong one, one broken
    assert score(true, given, final) == pytest.approx(
        {
            "given_accuracy": 0.7,
            "label_accuracy": 0.7,
            "f1": 2 * 2 / (3 + 3),
            "precision": 2 / 3,
            "recall": 2 / 3,
            "wrongly_changed": 0.1,
            "true_noise_rate": 0.3,
        }
    )


def test_finding_is_not_defined_where_nothing_is_wrong():
    labels = np.array(["a", "b", "c"])
    figures = score(labels, labels, np.array(["a", "b", "b"]))
    assert figures["f1"] is None
    assert figures["recall"] is None
    assert figures["precision"] == 0
    assert figures["wrongly_changed"] == pytest.approx(1 / 3)


def test_finding_nothing_scores_zero_where_something_is_wrong():
    figures = score([0, 1], [1, 1], [1, 1])
    assert (figures["f1"], figures["recall"], figures["precision"]) == (0, 0, None)


def test_review_is_measured_by_the_errors_it_holds():
    in_review = np.array([True, True, False, False])
    assert score_review([0, 0, 0, 0], [1, 0, 1, 0], in_review) == {"review_share": 0.5, "errors_in_review": 0.5}
    assert score_review([0, 0, 0, 0], [0, 0, 0, 0], in_review) == {"review_share": 0.5, "errors_in_review": None}
