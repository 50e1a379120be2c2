import numpy as np
import pytest
import torch
from torch.testing import assert_close

from labelmend.diagnosis.reliability import Bin, calibration_error, reliability, temper, temperature_for

NOT_FIXED = torch.zeros(3, dtype=torch.bool)


def test_the_curve_and_its_error_by_hand():
    confidence = torch.tensor([0.95, 0.91, 0.55, 0.51, 1.0])
    right = torch.tensor([True, False, True, True, True])
    curve = reliability(confidence, right)
    assert [one.right for one in curve] == [1.0, pytest.approx(2 / 3)]
    assert [one.share for one in curve] == [0.4, 0.6]
    expected = 0.4 * (1 - 0.53) + 0.6 * (2.86 / 3 - 2 / 3)
    assert calibration_error(curve) == pytest.approx(expected, abs=1e-6)


def test_no_error_where_confidence_is_the_share_of_right_labels():
    assert calibration_error([Bin(0.5, 0.8, 0.8), Bin(0.5, 0.3, 0.3)]) == 0


def test_a_temperature_by_hand():
    probabilities = torch.tensor([[0.8, 0.2], [0.5, 0.5], [1.0, 0.0]])
    tempered = temper(probabilities, 2.0, NOT_FIXED)
    # Square roots, made to sum to one: sqrt(.8) / (sqrt(.8) + sqrt(.2)) = 2 / 3.
    assert_close(tempered[:2], torch.tensor([[2 / 3, 1 / 3], [0.5, 0.5]]))
    assert_close(temper(probabilities, 1.0, NOT_FIXED)[0], probabilities[0])


@pytest.mark.parametrize("temperature", [0.5, 1.7, 2.5])
def test_a_temperature_never_changes_the_most_probable_class(temperature):
    probabilities = torch.from_numpy(np.random.default_rng(0).dirichlet(np.full(6, 0.3), size=500)).float()
    fixed = torch.zeros(500, dtype=torch.bool)
    tempered = temper(probabilities, temperature, fixed)
    assert_close(tempered.argmax(dim=1), probabilities.argmax(dim=1))
    order = probabilities.argsort(dim=1, stable=True)
    sorted_ = tempered.gather(1, order)
    assert (sorted_.diff(dim=1) >= 0).all(), "all classes keep their order"


def test_what_is_certain_stays_certain():
    probabilities = torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]])
    tempered = temper(probabilities, 2.5, torch.tensor([True, False, True]))
    assert_close(tempered[[0, 2]], probabilities[[0, 2]])
    assert tempered[1, 0] < 0.75


def test_the_temperature_makes_the_mean_confidence_the_share_of_right_labels():
    probabilities = torch.from_numpy(np.random.default_rng(0).dirichlet(np.full(4, 0.3), size=400)).float()
    labels = probabilities.argmax(dim=1)
    sure = float(probabilities.amax(dim=1).mean())
    for right in (sure - 0.15, sure + 0.05):
        found = temper(probabilities, temperature_for(probabilities, labels, right), labels < 0)
        assert float(found.amax(dim=1).mean()) == pytest.approx(right, abs=1e-4)
    assert temperature_for(probabilities, labels, sure) == pytest.approx(1, abs=1e-3)


def test_the_temperature_stays_within_bounds():
    probabilities = torch.tensor([[0.9, 0.1]]).expand(5, 2)
    labels = torch.zeros(5, dtype=torch.long)
    assert temperature_for(probabilities, labels, 0.0) == pytest.approx(2.5, abs=1e-3)
    assert temperature_for(probabilities, labels, 1.0) == pytest.approx(0.5, abs=1e-3)
