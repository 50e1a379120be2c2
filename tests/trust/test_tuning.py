"""Trials before a run: what is tried, on what, when a setting is taken, and that the run says so."""

import dataclasses
import json
from dataclasses import replace

import numpy as np
import pytest
import torch

import labelmend
from blobs import QUICK, blobs, plant
from labelmend.config import follow, make_config
from labelmend.data.samples import VectorSamples
from labelmend.nets.mlp import MLP
from labelmend.state import Problem
from labelmend.terminal import summary_lines
from labelmend.trust import tuning
from labelmend.trust.annotators import Opinions
from labelmend.trust.tuning_record import RULES, tuning_from

SMALL = {"n_branches": 2, "hidden": 8, "device": "cpu"}


def problem(n=600):
    features, true = blobs(n, spread=2.0)
    given = torch.from_numpy(plant(true, 0.1)[0])
    return Problem(VectorSamples(torch.tensor(features).float()), given, torch.zeros(n, dtype=torch.bool), 3)


def make_net():
    return MLP(4, 8, 3)


def tuned(subject=None, **asked):
    subject = subject or problem()
    config = make_config(**SMALL, **asked)
    followed = follow(config, len(subject.given_labels), 3)
    return followed, *tuning.tune(subject, make_net, followed, tuning.open_fields(config), lambda _: None)


def answers(monkeypatch, right):
    """Trials whose graphs are right about these samples, by what the candidate changes."""
    asked = []

    def found(plan, _make_net, config):
        asked.append(config)
        watched = len(plan.rows) + len(plan.good)
        return (torch.arange(watched) < right(config) * len(plan.rows)).double()

    monkeypatch.setattr(tuning, "_right", found)
    return asked


def test_a_setting_that_is_clearly_better_is_taken_and_said(monkeypatch):
    asked = answers(monkeypatch, lambda config: 0.9 if config.noisy_branch else 0.3)
    followed, config, found = tuned()
    assert config == replace(followed, noisy_branch=True)
    assert (found.chosen, found.changes) == ("a noisy branch", {"noisy_branch": True})
    assert f"its graphs found {found.trials[4].gain:.1%} more of the planted errors" in found.why
    assert found.trials[4].gain == pytest.approx(0.6, abs=0.03)
    assert [trial.name for trial in found.trials] == [RULES, *(c.name for c in tuning.CANDIDATES)]
    assert len(asked) == 7
    assert {config.n_rounds for config in asked} == {2}


def test_a_setting_that_may_be_better_by_chance_is_not_taken(monkeypatch):
    answers(monkeypatch, lambda config: 0.5 if config.noisy_branch else 0.4)
    followed, config, found = tuned()
    assert config == followed
    assert (found.chosen, found.changes) == (RULES, {})
    assert found.why == "none of 6 other settings was better by more than 4 standard errors"


def test_candidates_are_relative_to_the_rules_of_the_whole_and_of_the_trial(monkeypatch):
    asked = answers(monkeypatch, lambda config: 0.9 if config.graph_k > 20 else 0.3)
    followed, config, found = tuned(problem(600))
    wider = [one.graph_k for one in asked]
    assert wider[1] == 2 * wider[0]
    assert wider[0] < followed.graph_k  # fewer samples a class
    assert config.graph_k == 2 * followed.graph_k
    assert found.samples == 600 * 10 // (7 * 2)


def test_what_the_user_has_set_is_not_tried(monkeypatch):
    asked = answers(monkeypatch, lambda _: 0.5)
    _, _, found = tuned(graph_k=9, alpha=0.7, batch_size=40)
    assert {(config.graph_k, config.alpha, config.batch_size) for config in asked} == {(9, 0.7, 40)}
    assert [trial.name for trial in found.trials[1:]] == [
        "a noisy branch",
        "large packages only",
        "small packages only",
    ]
    everything = {"graph_k": 9, "alpha": 0.7, "noisy_branch": False, "packages_per_branch": 4, "fine_packages": 8}
    followed, config, found = tuned(**everything)
    assert config == followed
    assert found.why == "everything that could be tuned is set"


def test_where_no_trial_can_be_made_the_rules_stay_and_the_reason_is_given():
    assert "200 labelled samples" in tuned(problem(90))[2].why
    several = problem()
    said = Opinions(
        torch.arange(600), torch.zeros(600, dtype=torch.long), several.given_labels, 1, several.given_labels
    )
    assert tuned(replace(several, opinions=said))[2].why == "with several annotators no errors are planted"
    one_class = replace(problem(), given_labels=torch.arange(600) // 3, n_classes=200)
    assert "classes of at least" in tuned(one_class)[2].why


def test_trials_are_the_same_every_time_and_count_what_the_graphs_say():
    first, again = tuned()[2], tuned()[2]
    assert first == again
    rules = first.trials[0]
    assert rules.named > 0.8  # clouds that can be told apart
    assert rules.contradicted < 0.1
    assert (rules.gain, rules.error) == (0.0, 0.0)


@pytest.fixture(scope="module")
def result():
    features, true = blobs(600, spread=2.0)
    return labelmend.correct(features, plant(true, 0.1)[0], n_branches=2, hidden=8, device="cpu")


def test_a_run_says_what_it_chose_and_keeps_it(result, tmp_path):
    assert result.tuning is not None
    assert any(
        line.startswith("setting") and result.tuning.why in line for line in summary_lines(result.summary(), None)
    )
    result.save(tmp_path / "run")
    assert labelmend.load(tmp_path / "run").tuning == result.tuning
    assert tuning_from(json.loads(json.dumps(dataclasses.asdict(result.tuning)))) == result.tuning


def test_without_tuning_nothing_is_tried(result):
    features, true = blobs(600, spread=2.0)
    given = plant(true, 0.1)[0]
    plain = labelmend.correct(features, given, n_branches=2, hidden=8, device="cpu", tune=False)
    assert plain.tuning is None
    if not result.tuning.changes:
        np.testing.assert_array_equal(plain.labels, result.labels)
    assert labelmend.correct(features, given, preset="paper", **QUICK).tuning is None


def test_the_reach_that_was_tried_is_the_one_that_is_taken(monkeypatch):
    asked = answers(monkeypatch, lambda config: 0.9 if config.alpha == config.fine_alpha == 0.9 else 0.3)
    followed, config, found = tuned(problem(10_000), alpha=None)
    assert followed.alpha < 0.7 <= asked[0].alpha  # a trial has fewer samples, and by the rules a longer reach
    assert found.chosen == "another reach"
    assert (config.alpha, config.fine_alpha) == (0.9, 0.9)
