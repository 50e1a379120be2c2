"""A run whose numbers are none any more ends with what to change."""

import re

import numpy as np
import pytest
import torch
from torch import nn

import labelmend
from blobs import QUICK, blobs, plant
from labelmend.config import as_arguments
from labelmend.ensemble.torch_state import has_finite_weights, refuse_diverged
from labelmend.errors import DataError, TrainingError
from labelmend.inputs.features import LARGEST
from labelmend.report.drawings import nice_ticks


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("warmup_passes", [0, 2])
@pytest.mark.parametrize("lr", [1e30, 1e15])
def test_nets_that_diverge_end_the_run(tmp_path, lr, warmup_passes):
    features, true = blobs(60)
    settings = {**QUICK, "lr": lr, "warmup_passes": warmup_passes}
    with pytest.raises(TrainingError, match=re.escape(f"lr smaller (it is {lr:g}")):
        labelmend.correct(
            features,
            plant(true, 0.1)[0],
            **as_arguments(settings),
            checkpoints=tmp_path / "kept",
            checkpoint_every=0,
        )
    kept = [path.name for path in (tmp_path / "kept").glob("round-*")]
    assert kept == ([] if warmup_passes else ["round-000000.safetensors"])  # as the nets were before


@pytest.mark.parametrize("scale", [1e36, 1e-36])
def test_features_near_the_largest_numbers_are_corrected_or_refused(scale):
    features, true = blobs(60)
    given = plant(true, 0.1)[0]
    result = labelmend.correct(scale * features / abs(features).max(), given, expert=QUICK)
    assert np.isfinite(result.confidence).all()
    assert np.isfinite(result.noise_rate)


@pytest.mark.parametrize("largest", [3e38, -3e38, 2 * LARGEST])
def test_features_that_no_difference_fits_are_refused(largest):
    features, true = blobs(60)
    features[7, 1] = largest
    with pytest.raises(DataError, match="at most 1e"):
        labelmend.correct(features, true, expert=QUICK)


def test_a_model_refuses_them_too():
    features, true = blobs(60)
    model = labelmend.correct(features, true, expert=QUICK).model
    features[0, 0] = -3e38
    with pytest.raises(DataError, match="at most 1e"):
        model.predict(features)


def test_one_weight_or_one_loss_is_enough():
    net = nn.Linear(2, 2)
    assert has_finite_weights(net)
    refuse_diverged("a test", 0.1, [net], [0.5, None])
    for loss in (float("nan"), float("inf")):
        with pytest.raises(TrainingError, match="After a test"):
            refuse_diverged("a test", 0.1, [net], [loss])
    for value in (torch.inf, -torch.inf, torch.nan, -1e13):
        with torch.no_grad():
            net.bias[1] = value
        assert not has_finite_weights(net)


@pytest.mark.parametrize("ends", [(np.nan, np.nan), (0.0, np.inf)])
def test_a_report_of_an_older_run_with_such_losses_is_drawn(ends):
    assert nice_ticks(*ends) == [0.0, 1.0]
