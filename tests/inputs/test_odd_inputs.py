"""A small fuzzer with fixed seeds; `make fuzz` is the long one."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odd_inputs import attack


@pytest.mark.slow
@settings(max_examples=400)
@given(seed=st.integers(0, 10**6))
def test_odd_and_damaged_inputs_are_refused_with_a_reason_or_read_as_they_are(tmp_path_factory, seed):
    attack(seed, tmp_path_factory.getbasetemp())
