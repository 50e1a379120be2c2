import numpy as np
import pytest
import torch
from torch.testing import assert_close

from labelmend.diagnosis.reliability import Bin, bin_of, calibration_error, temper, temperature_for


def test_bins_and_their_error_by_hand():
    assert bin_of(torch.tensor([0.95, 0.91, 0.55, 0.51, 1.0])).tolist() == [9, 9, 5, 5, 9]
    curve = [Bin(0.4, 0.53, 1.0), Bin(0.6, 2.86 / 3, 2 / 3)]
    expected = 0.4 * (1 - 0.53) + 0.6 * (2.86 / 3 - 2 / 3)
    assert calibration_error(curve) == pytest.approx(expected, abs=1e-6)


def test_no_error_where_confidence_is_the_share_of_right_labels():
    assert calibration_error([Bin(0.5, 0.8, 0.8), Bin(0.5, 0.3, 0.3)]) == 0


def test_a_temperature_by_hand():
    probabilities = torch.tensor([[0.8, 0.2], [0.5, 0.5], [1.0, 0.0]])
    tempered = temper(probabilities, 2.0)
    # Square roots, made to sum to one: sqrt(.8) / (sqrt(.8) + sqrt(.2)) = 2 / 3.
    assert_close(tempered[:2], torch.tensor([[2 / 3, 1 / 3], [0.5, 0.5]]))
    assert_close(temper(probabilities, 1.0)[0], probabilities[0])


@pytest.mark.parametrize("temperature", [0.5, 1.7, 2.5])
def test_a_temperature_never_changes_the_most_probable_class(temperature):
    probabilities = torch.from_numpy(np.random.default_rng(0).dirichlet(np.full(6, 0.3), size=500)).float()
    tempered = temper(probabilities, temperature)
    assert_close(tempered.argmax(dim=1), probabilities.argmax(dim=1))
    order = probabilities.argsort(dim=1, stable=True)
    sorted_ = tempered.gather(1, order)
    assert (sorted_.diff(dim=1) >= 0).all(), "all classes keep their order"


def test_the_temperature_makes_the_mean_confidence_the_share_of_right_labels():
    probabilities = torch.from_numpy(np.random.default_rng(0).dirichlet(np.full(4, 0.3), size=400)).float()
    labels = probabilities.argmax(dim=1)
    sure = float(probabilities.amax(dim=1).mean())
    for right in (sure - 0.15, sure + 0.05):
        found = temper(probabilities, temperature_for(probabilities, labels, right))
        assert float(found.amax(dim=1).mean()) == pytest.approx(right, abs=1e-4)
    assert temperature_for(probabilities, labels, sure) == pytest.approx(1, abs=1e-3)


def test_the_temperature_stays_within_bounds():
    probabilities = torch.tensor([[0.9, 0.1]]).expand(5, 2)
    labels = torch.zeros(5, dtype=torch.long)
    assert temperature_for(probabilities, labels, 0.0) == pytest.approx(2.5, abs=1e-3)
    assert temperature_for(probabilities, labels, 1.0) == pytest.approx(0.5, abs=1e-3)
