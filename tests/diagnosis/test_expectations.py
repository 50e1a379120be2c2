"""What a result expects of its own labels: good ones broken, wrong ones left, what a review gains."""

import dataclasses
import json

import numpy as np
import pytest

import labelmend
from blobs import QUICK, blobs, plant
from labelmend.config import RunConfig, as_arguments
from labelmend.labels import Labels
from labelmend.report.contents import trust_contents
from labelmend.result import STATUS_TYPE, ExpectedErrors

SETTLED = {**QUICK, "n_rounds": 6, "warmup_passes": 20}  # enough for net and graphs to agree


@pytest.fixture(scope="module")
def plain():
    features, true = blobs(90, spread=3.0)
    return labelmend.correct(features, plant(true, 0.1)[0], **as_arguments(SETTLED))


def with_values(plain, confidence, status, given_confidence=None, changed=(), **config):
    n = len(confidence)
    given = np.zeros(n, dtype=np.int64)
    corrected = given.copy()
    corrected[list(changed)] = 1
    return dataclasses.replace(
        plain,
        confidence=np.array(confidence, dtype=np.float32),
        status=np.array(status, dtype=STATUS_TYPE),
        given=Labels(given, plain.classes, lambda values: values),
        corrected_codes=corrected,
        given_confidence=None if given_confidence is None else np.array(given_confidence, dtype=np.float32),
        config=RunConfig(**config),
        left_alone=None,
    )


def test_broken_labels_are_the_probability_of_what_was_given_where_the_run_changed_it(plain):
    status = ["kept", "corrected", "review", "reviewed"]
    result = with_values(plain, [0.9] * 4, status, [0.9, 0.1, 0.25, 0.6], changed=[1, 2, 3])
    assert result.expected_broken == pytest.approx(0.35), "what a person decided is not the run's doing"
    assert result.summary()["expected_broken"] == pytest.approx(0.35)
    assert with_values(plain, [0.9], ["kept"]).expected_broken is None


def test_the_gain_of_a_review_by_hand(plain):
    result = with_values(plain, [0.5, 1.0, 0.9, 0.7], ["review", "kept", "corrected", "unreadable"])
    # What cannot be read is not looked at. Doubts .5, .1, 0: together .6.
    assert result.review_gain() == [ExpectedErrors(0, 0.6), ExpectedErrors(1, 0.1)]
    assert result.review_gain(2) == [ExpectedErrors(0, 0.6), ExpectedErrors(2, 0.0)]
    assert result.review_gain(50)[-1] == ExpectedErrors(3, 0.0)


def test_the_curve_goes_in_steps_of_ten_up_to_the_budget_and_in_longer_ones_where_they_are_many(plain):
    doubts = np.linspace(0, 0.5, 3000)
    result = with_values(plain, 1 - doubts, ["kept"] * 3000, budget=35)
    points = result.review_gain()
    assert [point.reviewed for point in points] == [0, 10, 20, 30, 35]
    expected = np.sort(doubts)[::-1]
    for point in points:
        assert point.left == pytest.approx(expected[point.reviewed :].sum(), abs=0.01)
    assert result.summary()["review_gain"][0]["reviewed"] == 0
    assert [point.reviewed for point in result.review_gain(2500)][:3] == [0, 30, 60]
    assert len(result.review_gain(2500)) <= 102


def test_the_figures_are_ready_for_json(plain):
    figures = json.loads(json.dumps(plain.summary()))
    assert figures["expected_broken"] == pytest.approx(plain.expected_broken, abs=1e-3)
    assert figures["audit"] is None
    assert figures["review_gain"] is None


def test_the_report_warns_where_confidence_is_not_calibrated(plain):
    assert "not calibrated" in trust_contents(plain).sentence
    assert "not calibrated" not in trust_contents(dataclasses.replace(plain, temperature=1.5)).sentence
    assert "were right before" in trust_contents(plain).sentence
    older = dataclasses.replace(plain, given_confidence=None)
    assert "were right before" not in trust_contents(older).sentence


@pytest.mark.parametrize("budget", [1, 12, 500])
def test_a_run_marks_as_many_for_review_as_the_budget_and_no_label_changes(plain, budget):
    features, true = blobs(90, spread=3.0)
    result = labelmend.correct(features, plant(true, 0.1)[0], budget=budget, **as_arguments(SETTLED))
    assert result.count("review") == min(budget, 90)
    np.testing.assert_array_equal(result.labels, plain.labels)
    looked_at = result.status == "review"
    assert (1 - result.confidence)[looked_at].min() >= (1 - result.confidence)[~looked_at].max(initial=0)


def test_a_run_at_a_precision_changes_fewer_labels_and_says_the_rest_is_for_review(plain):
    features, true = blobs(90, spread=3.0)
    given = plant(true, 0.1)[0]
    surest = np.sort(plain.confidence[plain.changed])[-1]
    result = labelmend.correct(features, given, precision=float(surest) - 1e-6, **as_arguments(SETTLED))
    assert result.changed.sum() == 1 < plain.changed.sum()
    assert (result.status[result.changed] == "corrected").all()
    refused = plain.changed & ~result.changed
    assert (result.status[refused] == "review").all()
    np.testing.assert_array_equal(result.corrected_codes[refused], given[refused])
    np.testing.assert_array_equal(result.runner_up[refused], np.asarray(plain.labels)[refused])
