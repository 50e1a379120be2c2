import numpy as np
import pytest
import torch

from bench import gpu_round
from bench.picture_data import PictureSet
from labelmend.errors import ConfigError

SHAPE = (50_000, 32, 32, 3)


def cifar_shaped():
    """The shape of CIFAR-10 without its memory."""
    pixels = np.broadcast_to(np.uint8(0), SHAPE)
    return PictureSet(pixels, np.arange(50_000) % 10, pixels[:0], np.arange(0))


def test_the_round_of_the_specification():
    config = gpu_round.round_config(cifar_shaped(), 256, quick=False)
    assert (config.width, config.n_branches, config.batch_size, config.correct_every) == (64, 5, 256, 1)
    assert (config.mixup, config.consistency, config.average_decay) == (False, 0, 0)
    assert (config.branch_samples, config.round_labels) == ("all", "vote")
    assert gpu_round.arithmetic(cifar_shaped(), config) == pytest.approx(0.83e15, rel=0.01)


def test_stages_and_whole_rounds_are_timed_after_others():
    found = gpu_round.measure_round(None, 32, 2, True, lambda text: None)
    by_name = {}
    for trial in found.trials:
        by_name.setdefault(trial.name.strip(), []).append(trial.figures["round_seconds"])
    assert len(by_name.pop("one round")) == 2
    assert list(by_name) == ["embed", "split", "branches", "graphs", "propagate", "vote", "train"]
    assert {len(values) for values in by_name.values()} == {2}
    arithmetic = found.facts["arithmetic"]
    assert arithmetic["floor_seconds"] == pytest.approx(arithmetic["flop"] / arithmetic["product_flop_per_second"])
    assert "random pictures (no --data)" in found.facts["notes"][0]
    assert "40 columns propagated" in found.facts["notes"][0]  # 2 sources, 2 branches, 10 classes


def test_the_rate_is_that_of_a_product():
    assert gpu_round.product_rate(torch.device("cpu"), 32) > 0


def test_no_round_is_no_measurement():
    with pytest.raises(ConfigError, match="--rounds must be at least 1"):
        gpu_round.measure_round(None, 32, 0, True, lambda text: None)
