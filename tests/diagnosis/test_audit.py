import dataclasses
import json

import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal
from torch.testing import assert_close

import labelmend
from blobs import QUICK, blobs, plant
from labelmend.config import as_arguments
from labelmend.decision.deciding import Decided
from labelmend.decision.posterior import posterior
from labelmend.diagnosis import audit as audits
from labelmend.diagnosis.audit import Plan, finish_audit, noise_in_question, plan_audit
from labelmend.diagnosis.reliability import audit_from
from labelmend.ensemble.state import Problem
from labelmend.errors import ConfigError, DataError
from labelmend.samples import ImageSamples, VectorSamples


def hazy(n=300, seed=0, spread=3.0):
    """Clouds that run into one another, so that neighbours object to some labels; a tenth is wrong."""
    features, true = blobs(n, spread=spread, seed=seed)
    return features, plant(true, 0.1)[0]


def problem(features, given, trusted=None):
    rows = torch.from_numpy(features).float()
    none = torch.zeros(len(given), dtype=torch.bool)
    return Problem(VectorSamples(rows), torch.from_numpy(given), none if trusted is None else trusted, 3)


def test_a_plan_plants_the_share_and_leaves_trusted_and_missing_labels_alone():
    features, given = hazy()
    given[::10] = -1
    trusted = torch.from_numpy((np.arange(300) % 4 == 1) & (given >= 0))
    plan = plan_audit(problem(features, given, trusted), 0.1, seed=3)
    changed = plan.problem.given_labels != plan.original.given_labels
    assert_close(torch.nonzero(changed).squeeze(1), plan.rows)
    assert len(plan.rows) == 27
    assert not (changed & trusted).any()
    assert (plan.original.given_labels[plan.rows] >= 0).all()
    assert_array_equal(plan.original.given_labels.numpy(), given)
    again = plan_audit(problem(features, given, trusted), 0.1, seed=3)
    assert_close(again.problem.given_labels, plan.problem.given_labels)


def test_what_has_no_vectors_or_no_clean_samples_is_refused():
    pixels = torch.zeros(20, 4, 4, 3, dtype=torch.uint8)
    pictures = ImageSamples(pixels, torch.zeros(3), torch.ones(3), 4, torch.device("cpu"))
    labels = torch.arange(20) % 2
    with pytest.raises(ConfigError, match="audit needs feature vectors or embedded pictures"):
        plan_audit(Problem(pictures, labels, labels < 0, 2), 0.1, 0)
    features, given = blobs(15)
    with pytest.raises(DataError, match=r"clean.* at least 10"):
        plan_audit(problem(features, given), 0.1, 0)


def decided(table, noise_rate):
    table = torch.tensor(table)
    n = len(table)
    return Decided(
        labels=table.argmax(dim=1),
        probabilities=table,
        predicted=table,
        score=torch.zeros(n),
        left_alone=torch.zeros(n, dtype=torch.bool),
        transition=torch.eye(2),
        noise_rate=noise_rate,
        interval=None,
    )


def made_up(probabilities, given, planted, rows, noise_rate, agreement=1.0):
    """A plan and what was decided where everything is known; the labels that were given change nothing."""
    n = len(given)
    samples = VectorSamples(torch.zeros(n, 1))
    original = Problem(samples, torch.tensor(given), torch.zeros(n, dtype=torch.bool), 2)
    with_errors = dataclasses.replace(original, given_labels=torch.tensor(planted))
    plan = Plan(with_errors, original, torch.tensor(rows), 0.5, agreement)
    return plan, decided(probabilities, noise_rate)


# Ten samples of class 0. Four are planted: 0 and 1 are mended, 2 is missed, 3 too. Of the rest 4 is changed.
GIVEN = [0] * 10
PLANTED = [1, 1, 1, 1, *[0] * 6]
SAYS = [[0.95, 0.05], [0.75, 0.25], [0.25, 0.75], [0.05, 0.95], [0.15, 0.85], *[[0.95, 0.05]] * 5]


def test_the_figures_of_an_audit_by_hand():
    plan, found = made_up(SAYS, GIVEN, PLANTED, [0, 1, 2, 3], noise_rate=0.2)
    final, audit = finish_audit(plan, found, found)
    assert audit.planted == 4
    assert (audit.found.value, audit.mended.value) == (0.5, 0.5)
    # Of the rest 1 / 6 is changed, of which 0.2 * 0.5 are errors that were found; good labels are 0.8 of all.
    assert audit.broken.value == pytest.approx((1 / 6 - 0.1) / 0.8)
    assert audit.broken.low == pytest.approx(max(0, (1 / 6 - 0.2 * audit.found.high) / 0.8))
    assert audit.broken.high == pytest.approx((1 / 6 - 0.2 * audit.found.low) / 0.8)
    # Wrong are the missed, 0.2 * 0.5, and the changes that mended nothing, 1 / 6 - 0.2 * 0.5.
    assert audit.right == pytest.approx(1 - 0.1 - (1 / 6 - 0.1))
    # Bins of the rest: .8 to .9 holds the change, .9 to 1 five kept ones, where 1 of 4 planted was missed, 1 mended.
    first, second = audit.curve
    assert (first.share, first.confidence, first.right) == pytest.approx((1 / 6, 0.85, 0.0))
    assert (second.share, second.confidence) == pytest.approx((5 / 6, 0.95))
    assert second.right == pytest.approx(1 - 0.2 * 0.25 / (5 / 6))
    assert audit.calibration_error == pytest.approx(0.85 / 6 + 5 / 6 * abs(0.95 - second.right))
    assert audit.temperature is None, "four errors are too few"
    assert_close(final.probabilities, found.probabilities)


def test_where_neighbours_are_often_wrong_mended_errors_stand_for_fewer():
    plan, found = made_up(SAYS, GIVEN, PLANTED, [0, 1, 2, 3], noise_rate=0.2, agreement=0.4)
    # Neighbours agree with 0.4 of the labels, of which 0.8 are right: they are right in half of the places.
    assert finish_audit(plan, found, found)[1].right == pytest.approx(1 - 0.1 - (1 / 6 - 0.2 * 0.5 * 0.5))


def test_with_enough_errors_confidence_is_calibrated_and_no_label_changes(monkeypatch):
    monkeypatch.setattr(audits, "ENOUGH", 4)
    plan, found = made_up(SAYS, GIVEN, PLANTED, [0, 1, 2, 3], noise_rate=0.2)
    final, audit = finish_audit(plan, found, found)
    assert audit.temperature is not None
    assert_close(final.probabilities.argmax(dim=1), found.probabilities.argmax(dim=1))
    assert float(final.probabilities.amax(dim=1).double().mean()) == pytest.approx(audit.right, abs=1e-3)


def test_what_is_certain_stays_certain(monkeypatch):
    monkeypatch.setattr(audits, "ENOUGH", 4)
    plan, found = made_up(SAYS, GIVEN, PLANTED, [0, 1, 2, 3], noise_rate=0.2)
    plan.original.trusted[9] = True
    final = finish_audit(plan, found, found)[0]
    assert_close(final.probabilities[9], found.probabilities[9])
    assert (final.probabilities[8] != found.probabilities[8]).all()


def test_the_noise_in_question_is_that_of_labels_that_are_not_trusted():
    features, true = blobs(6000, seed=1)
    trusted = np.arange(6000) % 2 == 0
    given = np.where(trusted, true, plant(true, 0.2)[0])
    stated = problem(features, given, torch.from_numpy(trusted))
    predicted = torch.full((6000, 3), 0.005)
    predicted[torch.arange(6000), torch.from_numpy(true)] = 0.99
    found = posterior(predicted, stated.given_labels, stated.trusted)
    wrong = float((given != true)[~trusted].mean())
    assert noise_in_question(found.noise_rate, stated) == pytest.approx(wrong, abs=0.02)


def test_what_is_decided_with_the_given_labels_is_what_comes_back():
    plan, restored = made_up(SAYS, GIVEN, PLANTED, [0, 1, 2, 3], noise_rate=0.2)
    found = decided([[0.05, 0.95]] * 4 + SAYS[4:], 0.5)
    final, audit = finish_audit(plan, found, restored)
    assert audit.found.value == 0, "with the errors in place all four were missed"
    assert final is restored


def test_an_audit_comes_back_from_json():
    plan, found = made_up(SAYS, GIVEN, PLANTED, [0, 1, 2, 3], noise_rate=0.2)
    audit = finish_audit(plan, found, found)[1]
    assert audit_from(json.loads(json.dumps(dataclasses.asdict(audit)))) == audit


@pytest.fixture(scope="module")
def audited():
    features, given = hazy()
    return features, given, labelmend.correct(features, given, audit=0.1, expert=QUICK)


def test_no_planted_label_is_in_the_result(audited):
    features, given, result = audited
    assert result.audit.planted == 30
    assert_array_equal(result.given.codes, given)
    assert (result.config.audit, result.audit.share) == (0.1, 0.1)
    plan = plan_audit(problem_of(features, given), 0.1, QUICK.get("seed", 0))
    planted = plan.problem.given_labels.numpy()[plan.rows]
    back = (result.corrected_codes[plan.rows] == given[plan.rows]).mean()
    assert back > 0.9, "in places that look clean the label that was given stands"
    assert (result.corrected_codes[plan.rows] == planted).mean() < 0.1


def problem_of(features, given):
    from labelmend.inputs.features import fit_scaler

    return problem(np.asarray(fit_scaler(features, 0)(features)), given)


def test_noise_rate_and_transitions_are_those_of_the_given_labels(audited, monkeypatch):
    features, given, result = audited
    seen = {}

    def note(plan, found, restored):
        seen.update(plan=plan, found=found, restored=restored)
        return finish_audit(plan, found, restored)

    monkeypatch.setattr("labelmend.runs.solve.finish_audit", note)
    labelmend.correct(features, given, audit=0.1, expert=QUICK)
    # Every sample gets what was decided with its own given label, the planted ones among them.
    expected = seen["restored"]
    fits = result.reason != "fits no class"  # those are left as they were given
    assert fits.mean() >= 0.98
    assert_array_equal(result.corrected_codes[fits], expected.labels.numpy()[fits])
    assert result.noise_rate == expected.noise_rate
    np.testing.assert_allclose(result.transition, expected.transition.numpy())
    assert seen["found"].noise_rate > result.noise_rate + 0.03, "a tenth of the labels more was wrong in the run"


def test_the_same_seed_gives_the_same_audit(audited):
    features, given, result = audited
    again = labelmend.correct(features, given, audit=0.1, expert=QUICK)
    assert again.audit == result.audit
    assert_array_equal(again.confidence, result.confidence)


def test_a_run_with_an_audit_is_saved_and_loaded(audited, tmp_path):
    result = audited[2]
    loaded = labelmend.load(result.save(tmp_path / "run"))
    assert loaded.audit == result.audit
    assert_array_equal(loaded.given_confidence, result.given_confidence)
    assert loaded.expected_broken == pytest.approx(result.expected_broken)
    assert loaded.review_gain() == result.review_gain()


def test_a_run_that_goes_on_plants_the_same_errors(tmp_path):
    features, given = hazy(120)
    whole = labelmend.correct(features, given, audit=0.1, expert=QUICK)

    def stop(record, state):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        labelmend.correct(
            features, given, audit=0.1, callback=stop, checkpoints=tmp_path, checkpoint_every=0, expert=QUICK
        )
    resumed = labelmend.correct(features, given, audit=0.1, checkpoints=tmp_path, checkpoint_every=0, expert=QUICK)
    assert resumed.audit == whole.audit
    assert_array_equal(resumed.confidence, whole.confidence)


def test_errors_that_always_go_the_same_way_are_planted_the_same_way():
    features, true = blobs(300, spread=1.0)
    given = np.where((np.arange(300) < 60) & (true == 0), 1, true)  # some of class 0 became 1
    plan = plan_audit(problem(features, given), 0.05, 0)
    before, after = plan.original.given_labels[plan.rows], plan.problem.given_labels[plan.rows]
    assert ((before == 0) & (after == 1)).double().mean() > 0.7


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"audit": 0.6}, "audit must be at most 0.5. Got 0.6 instead"),
        ({"audit": -0.1}, "audit must be at least 0. Got -0.1 instead"),
        ({"precision": 1.2}, "precision must be at most 1. Got 1.2 instead"),
        ({"budget": -1}, "budget must be at least 0. Got -1 instead"),
    ],
)
def test_wrong_values_are_refused(parameters, message):
    features, given = blobs(30)
    with pytest.raises(ConfigError, match=message):
        labelmend.correct(features, given, **as_arguments({**QUICK, **parameters}))


def test_a_run_whose_confidence_is_calibrated_asks_for_review_below_less(monkeypatch, tmp_path):
    features, given = hazy(spread=6.0)
    settings = {**QUICK, "outlier_share": 0.0, "assume": "overlapping"}
    plain = labelmend.correct(features, given, **as_arguments(settings))
    assert (plain.temperature, plain.config.review_below) == (None, 0.85)
    assert (plain.status[plain.confidence < 0.85] == "review").all()

    def calibrated(plan, found, restored):
        return restored, dataclasses.replace(finish_audit(plan, found, restored)[1], temperature=1.5, right=1.0)

    monkeypatch.setattr("labelmend.runs.solve.finish_audit", calibrated)
    settings["audit"] = 0.05
    result = labelmend.correct(features, given, **as_arguments(settings))
    assert (result.temperature, result.config.review_below) == (1.5, 0.7)
    assert (result.status[result.confidence < 0.7] == "review").all()
    assert 0 < result.count("review") < plain.count("review")
    assert labelmend.correct(features, given, **as_arguments(settings), review_below=0.9).config.review_below == 0.9
    result.save(tmp_path / "run")
    loaded = labelmend.load(tmp_path / "run")
    assert (loaded.temperature, loaded.config.review_below) == (1.5, 0.7)
