"""Where nothing is to be gained, labels stay as they were given."""

import numpy as np
import pytest
import torch

import labelmend
from blobs import QUICK, blobs, plant
from labelmend.config import as_arguments
from labelmend.decision.limits import without_changes
from labelmend.decision.posterior import decide
from labelmend.errors import LabelmendWarning
from labelmend.runs import solve as stage

PROBABILITIES = torch.tensor([[0.9, 0.1], [0.2, 0.8], [0.4, 0.6], [0.7, 0.3]])
GIVEN = torch.tensor([0, 0, 0, -1])


def decision():
    nobody = torch.zeros(4, dtype=torch.bool)
    return decide(PROBABILITIES, PROBABILITIES.argmax(dim=1), GIVEN, nobody, 0.5)


def test_without_changes_every_given_label_stays_and_the_changes_are_for_review():
    found = without_changes(decision(), PROBABILITIES, GIVEN, 0.5)
    assert found.labels.tolist() == [0, 0, 0, 0]
    assert found.status.tolist() == [0, 2, 2, 3]
    assert found.runner_up.tolist()[1:3] == [1, 1]


@pytest.mark.parametrize(("right", "changed"), [(0.5, False), (1.0, True)])
def test_a_run_that_would_break_more_than_it_mends_changes_nothing_and_says_so(monkeypatch, right, changed):
    features, true = blobs(300)
    given = plant(true, 0.1)[0]
    finish = stage.finish_audit

    def audited(plan, found, restored):
        decided, audit = finish(plan, found, restored)
        return decided, audit.__class__(**{**audit.__dict__, "right": right})

    monkeypatch.setattr(stage, "finish_audit", audited)
    settings = {**QUICK, "n_rounds": 4, "audit": 0.05}
    if changed:
        assert labelmend.correct(features, given, **as_arguments(settings)).changed.any()
        return
    with pytest.warns(LabelmendWarning, match="labels stay as they were given"):
        result = labelmend.correct(features, given, **as_arguments(settings))
    np.testing.assert_array_equal(result.labels, given)
    assert (result.status[given != true] == "review").all()


def test_clean_labels_come_back_as_they_were_and_the_report_says_why(tmp_path):
    features, true = blobs(300)
    result = labelmend.correct(features, true, expert=QUICK)
    np.testing.assert_array_equal(result.labels, true)
    result.report(tmp_path / "report.html")
    assert "No label was changed" in (tmp_path / "report.html").read_text()
