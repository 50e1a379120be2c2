"""Nothing that torch keeps for the whole process is changed, and nothing that a user has set there stops a run."""

import threading
import warnings
from contextlib import contextmanager

import numpy as np
import pytest
import torch

import labelmend
from blobs import QUICK, blobs, plant
from labelmend.ensemble.torch_state import own_torch
from labelmend.errors import LabelmendWarning

FEATURES, TRUE = blobs(40)
GIVEN = plant(TRUE, 0.1)[0]
FAST = {**QUICK, "n_rounds": 1, "warmup_passes": 1}


def corrected(seed=0):
    return labelmend.correct(FEATURES, GIVEN, expert=FAST, seed=seed)


@contextmanager
def float64_by_default():
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


STATES = {
    "no_grad": torch.no_grad,
    "inference_mode": torch.inference_mode,
    "float64": float64_by_default,
    "meta device": lambda: torch.device("meta"),
    "autocast": lambda: torch.autocast("cpu", torch.bfloat16),
}


@pytest.mark.parametrize("name", STATES)
def test_a_run_is_the_same_whatever_the_user_has_set(name, tmp_path):
    expected = corrected()
    with STATES[name]():
        before = torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.get_default_dtype()
        found = corrected()
        loaded = labelmend.load(found.save(tmp_path / "run"))
        assert (torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.get_default_dtype()) == before
        assert torch.is_autocast_enabled("cpu") == (name == "autocast")
    assert (found.labels == expected.labels).all()
    np.testing.assert_array_equal(found.confidence, expected.confidence)
    np.testing.assert_allclose(loaded.model.predict_proba(FEATURES), expected.model.predict_proba(FEATURES), atol=1e-6)


def test_no_random_number_is_drawn(tmp_path):
    folder = tmp_path / "run"
    for act in (corrected, lambda: corrected().save(folder), lambda: labelmend.load(folder)):
        before = torch.get_rng_state()
        act()
        assert torch.equal(torch.get_rng_state(), before)


def test_runs_in_several_threads_give_what_each_gives_alone():
    alone = [corrected(seed).confidence for seed in range(4)]
    before, found = torch.get_rng_state(), [None] * 4

    def one(seed):
        found[seed] = corrected(seed).confidence

    threads = [threading.Thread(target=one, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert torch.equal(torch.get_rng_state(), before)
    for one_alone, together in zip(alone, found, strict=True):
        np.testing.assert_array_equal(one_alone, together)


def test_what_was_set_is_given_back_after_an_error():
    @own_torch()
    def fail():
        assert torch.is_grad_enabled()
        torch.rand(1)
        raise ZeroDivisionError

    before = torch.get_rng_state()
    with pytest.raises(ZeroDivisionError), torch.no_grad():
        fail()
    assert torch.is_grad_enabled()
    assert torch.equal(torch.get_rng_state(), before)


def test_a_warning_points_to_the_call():
    features = np.concatenate([FEATURES, FEATURES[:1]])
    labels = np.append(GIVEN, (GIVEN[0] + 1) % 3)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", LabelmendWarning)
        labelmend.correct(features, labels, expert=FAST)
    assert {warning.filename for warning in told if warning.category is LabelmendWarning} == {__file__}
