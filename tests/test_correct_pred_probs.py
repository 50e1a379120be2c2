"""`correct` with probabilities of the user's own models: beside features, alone, and with all that goes with labels."""

import warnings

import numpy as np
import pandas as pd
import pytest

import labelmend
from blobs import QUICK, blobs
from labelmend.config import as_arguments
from labelmend.errors import CheckpointError, ConfigError, DataError, LabelmendWarning

N, NAMES = 90, np.array(["cat", "dog", "eel"])
X, TRUE = blobs(N)
RNG = np.random.default_rng(0)
WRONG = RNG.permutation(N)[:9]
Y = TRUE.copy()
Y[WRONG] = (Y[WRONG] + 1) % 3
SURE = RNG.uniform(0.75, 0.95, N)
P = np.where(np.arange(3) == TRUE[:, None], SURE[:, None], (1 - SURE[:, None]) / 2)


def run(*args, **kwargs):
    return labelmend.correct(*args, **as_arguments({**QUICK, **kwargs}))


@pytest.fixture(scope="module")
def alone():
    return run(y=NAMES[Y], pred_probs=P)


def test_alone_the_errors_are_found_and_the_assumption_is_said(alone):
    assert (alone.labels == NAMES[TRUE]).mean() > 0.97
    assert alone.config.assume == alone.verdict.classes == "apart"
    assert alone.verdict.note
    assert alone.verdict.note in alone.summary()["verdict"]["reason"]
    assert "pred_probs=pred_probs" in alone.repeat
    assert "X" not in alone.repeat


def test_alone_the_user_may_assume_something_else():
    assert run(y=Y, pred_probs=P, assume="auto").config.assume == "auto"
    assert run(y=Y, pred_probs=P, assume="overlapping").verdict.classes == "overlapping"
    config = labelmend.RunConfig(assume="overlapping", n_rounds=1)
    assert labelmend.correct(y=Y, pred_probs=P, config=config).config.assume == "overlapping"


def test_beside_features_models_are_members_of_the_pool():
    result = run(X, Y, pred_probs={"net": P, "trees": P})
    assert {"net", "trees", "ridge"} <= set(result.verdict.members)
    assert result.config.assume == "auto"
    assert not result.verdict.note
    assert (result.labels == TRUE).mean() > 0.97


def test_a_class_that_only_a_column_names_can_win():
    y = np.where(TRUE == 2, 0, TRUE)
    frame = pd.DataFrame(P[:, ::-1], columns=NAMES[::-1])
    for result in (run(y=NAMES[y], pred_probs=frame), run(X, NAMES[y], pred_probs=frame)):
        assert result.classes.tolist() == NAMES.tolist()
        assert (result.labels[TRUE == 2] == "eel").mean() > 0.8
        assert result.noise_rate == pytest.approx(1 / 3, abs=0.1)
        assert result.transition[2, 2] < 0.2


def test_missing_labels_trusted_ones_and_annotators():
    y = [None if row % 15 == 4 else NAMES[code] for row, code in enumerate(Y)]
    trusted = np.isin(np.arange(N), WRONG[:2]) & np.array([value is not None for value in y])
    result = run(y=y, pred_probs=P, trusted=trusted)
    assert (result.status == "filled").sum() == y.count(None)
    assert (np.array(result.labels)[trusted] == NAMES[Y][trusted]).all()
    table = {"ann": NAMES[Y], "ben": NAMES[TRUE]}
    for given in ((), (X,)):
        result = run(*given, pred_probs=P, annotators=table)
        assert (np.array(result.labels) == NAMES[TRUE]).mean() > 0.95
        assert len(result.annotators) == 2


def test_the_fingerprint_tells_models_apart_and_runs_do_not_go_on_with_others(tmp_path):
    result = run(y=Y, pred_probs=P, checkpoints=tmp_path / "kept", checkpoint_every=0)
    again = run(y=Y, pred_probs=P, checkpoints=tmp_path / "kept", checkpoint_every=0)
    assert again.fingerprint == result.fingerprint
    assert (again.labels == result.labels).all()
    plain = run(X, Y, checkpoints=tmp_path / "beside", checkpoint_every=0)
    assert plain.fingerprint != result.fingerprint
    with pytest.raises(CheckpointError, match="pred_probs"):
        run(X, Y, pred_probs=P, checkpoints=tmp_path / "beside", checkpoint_every=0)


def test_in_sample_probabilities_are_warned_about():
    seen = np.where(np.arange(3) == Y[:, None], 0.98, 0.01)
    with pytest.warns(LabelmendWarning, match="pred_probs"):
        result = run(X, Y, pred_probs=seen)
    assert any("pred_probs" in note for note in result.warnings)
    with warnings.catch_warnings():
        warnings.simplefilter("error", LabelmendWarning)
        run(X, Y, pred_probs=P)


def test_what_cannot_be_done_is_refused():
    with pytest.raises(DataError, match="pred_probs"):
        labelmend.correct(y=Y)
    with pytest.raises(DataError, match="labels"):
        labelmend.correct(pred_probs=P)
    with pytest.raises(ConfigError, match="pred_probs"):
        run(X, Y, pred_probs=P, preset="paper")


def test_preset_paper_takes_them_as_features():
    assert run(y=Y, pred_probs=P, preset="paper").verdict is None


def test_what_was_left_alone_comes_back_from_the_run_folder(alone, tmp_path):
    alone.save(tmp_path / "run")
    loaded = labelmend.load(tmp_path / "run")
    assert (loaded.left_alone == alone.left_alone).all()
    assert loaded.label_score == pytest.approx(alone.label_score)
    assert loaded.verdict.note == alone.verdict.note


def test_labels_changed_add_up(alone):
    summary = alone.summary()
    assert summary["changed"] == summary["corrected"] + summary["changed_for_review"]
