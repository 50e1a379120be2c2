import numpy as np
import pytest
from scipy.stats import binomtest, ttest_1samp

from labelmend.diagnosis.reliability import over_repetitions, wilson


@pytest.mark.parametrize(("part", "whole"), [(0, 10), (3, 10), (10, 10), (1, 1), (170, 200)])
def test_wilsons_interval_is_that_of_scipy(part, whole):
    found = wilson(part, whole)
    reference = binomtest(part, whole).proportion_ci(0.90, method="wilson")
    np.testing.assert_allclose([found.low, found.high], reference, rtol=1e-9, atol=1e-12)
    assert found.value == part / whole
    assert found.count == whole


def test_over_repetitions_is_students_interval_of_the_mean():
    shares = [0.5, 0.6, 0.55, 0.7]
    found = over_repetitions(shares, 400)
    reference = ttest_1samp(shares, 0).confidence_interval(0.90)
    np.testing.assert_allclose([found.value, found.low, found.high], [0.5875, *reference], rtol=1e-9)
    assert found.count == 400


def test_an_interval_stays_between_none_and_all():
    found = over_repetitions([0.0, 0.0, 0.3], 30)
    assert found.low == 0.0
    assert 0.1 < found.high <= 1.0
