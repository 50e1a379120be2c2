import dataclasses

import pytest

from labelmend.cli.dry_run import BASE_BYTES, estimate
from labelmend.config import make_config, resolve


def cost(n_rows=50_000, n_columns=128, n_classes=10, **parameters):
    return estimate(resolve(make_config(**parameters), n_rows, n_classes), n_rows, n_columns, n_classes)


def test_memory_grows_in_step_with_the_rows():
    small, large = cost(n_rows=50_000), cost(n_rows=200_000)
    assert 3 < (large.n_bytes - BASE_BYTES) / (small.n_bytes - BASE_BYTES) <= 4


@pytest.mark.parametrize("rows", [600, 5_000, 50_000])
def test_everything_that_makes_a_run_larger_makes_it_dearer(rows):
    plain = cost(rows, n_rounds=3, alpha=0.5, graph_k=10, held_out_passes=6, batch_size=64)
    for change in (
        {"n_rounds": 6},
        {"graph_k": 20},
        {"n_branches": 10},
        {"hidden": 2048},
        {"held_out_passes": 12},
        {"cross_fits": 9},
        {"warmup_passes": 50},
        {"batch_size": 16},
    ):
        settings = {"n_rounds": 3, "alpha": 0.5, "graph_k": 10, "held_out_passes": 6, "batch_size": 64, **change}
        assert cost(rows, **settings).seconds > plain.seconds, change


def test_columns_and_classes_need_memory():
    assert cost(n_columns=1000).n_bytes - cost(n_columns=500).n_bytes == 50_000 * 500 * 8 * 3
    assert cost(n_classes=1000, graph_k=5).n_bytes > cost(n_classes=10, graph_k=5).n_bytes


def test_a_thousand_classes_are_expected_to_fit():
    assert cost(n_rows=20_000, n_classes=1000).n_bytes < 2 * 2**30


def test_searching_in_cells_is_cheaper_than_searching_everywhere():
    config = resolve(make_config(), 50_000, 10)
    everywhere = dataclasses.replace(config, exact_rows=50_000)
    assert estimate(config, 50_000, 128, 10).seconds < estimate(everywhere, 50_000, 128, 10).seconds / 3


def test_a_small_run_is_a_matter_of_seconds():
    assert 1 <= cost(600, 64).seconds < 5
