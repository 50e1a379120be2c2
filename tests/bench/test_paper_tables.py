import re

import pytest

from bench.paper.experiment import Cell, Measured, Result
from bench.paper.rows import (
    DEFAULT,
    FACTORS,
    NET,
    READINGS,
    ROWS,
    SOFT,
    WITH_MIXUP,
    WITHOUT,
    ablation_changes,
    paper_figures,
    paper_shares,
)
from bench.paper.tables import Shape, show_tables
from labelmend.config import make_config

MACHINE = {"cpu": "A CPU", "cores": 2, "threads": 1, "gpu": None, "jobs": 1}


def result(row, column, seed, last, best=None, epochs=15, settings=None, **machine):
    figures = {"test_last": last, "test_best": best, "seconds": 10.0 * (seed + 1)}
    cell = Cell(row, column, "digits", seed, epochs, settings or {})
    return Result("x", cell, Measured(figures), {**MACHINE, **machine}, {"torch": "2.0"}, "2025-01-01")


def cells_of(text, row):
    (line,) = (line for line in text.splitlines() if line.startswith(f"| {row} "))
    return [cell.strip() for cell in line.split("|")[1:-1]]


def shape(**others):
    return Shape(["a", "b"], {"digits": ["one", "two"]}, ("test_last", "test_best"), "Legend.", **others)


def test_means_spread_and_what_was_not_run():
    found = [result("a", "one", 0, 0.80, 0.9), result("a", "one", 1, 0.84, 0.92), result("a", "two", 0, 0.5)]
    text = show_tables(shape(), found)
    assert cells_of(text, "a") == ["a", "82.0 ± 2.8 / 91.0 ± 1.4", "50.0 / - (n = 1)", "13"]
    assert cells_of(text, "b") == ["b", "not run", "not run", "-"]
    assert "**digits, 15 epochs**" in text
    assert "Legend. n = digits 2." in text
    assert "No GPU; A CPU, cores 2, threads 1; torch 2.0." in text


def test_the_papers_figures_stand_below_or_beside_ours():
    text = show_tables(shape(paper={("a", "one"): (81.6, 81.8)}), [])
    assert cells_of(text, "a") == ["a", "ours", "not run", "not run", "-"]
    assert re.search(r"\|\s+\| paper \| 81.6 / 81.8 \| -\s+\|", text)
    text = show_tables(shape(paper_rows={"b": 75.17}, paper_data="Clothing1M"), [])
    assert cells_of(text, "b")[-1] == "75.17"
    assert "paper, Clothing1M" in text
    assert "Nothing of it has been run." in text


def test_runs_of_another_kind_have_a_table_of_their_own():
    other = {"common": {"batch_size": 256, "weights": None}}
    found = [result("a", "one", 0, 0.8), result("a", "one", 0, 0.7, epochs=60, settings=other, gpu="H200", jobs=4)]
    text = show_tables(shape(), found)
    first, _, second = text.partition("**digits, 60 epochs, batch size 256**")
    assert cells_of(first, "a")[1] == "80.0 / -"
    assert cells_of(second, "a")[1] == "70.0 / -"
    assert "H200; A CPU, cores 2, threads 1, 4 at a time" in second
    together = show_tables(
        shape(epochs_by_row=True), [result("a", "one", 0, 0.8), result("b", "one", 0, 0.7, epochs=8)]
    )
    assert cells_of(together, "a")[3] == "15"
    assert cells_of(together, "b")[3] == "8"


def test_of_two_runs_of_one_cell_the_later_one_counts():
    found = [result("a", "one", 0, 0.8), result("a", "one", 0, 0.7, settings={"changes": {"lr": 1}})]
    assert cells_of(show_tables(shape(), found), "a")[1] == "70.0 / -"


def test_the_papers_default_is_not_taken_for_the_preset():
    text = show_tables(
        Shape([DEFAULT], {"digits": ["one"]}, ("test_last",), "Legend."), [result(DEFAULT, "one", 0, 0.8)]
    )
    assert cells_of(text, "all nets (the paper's default)")[1] == "80.0"
    assert "| default" not in text


@pytest.mark.parametrize("name", FACTORS)
def test_every_row_of_the_papers_tables_is_a_configuration(name):
    for column, factors in FACTORS[name].items():
        for row in ROWS[:-1]:
            config = make_config("paper", "pictures", **ablation_changes(row, factors))
            if row in (SOFT, NET):
                assert (config.ce_factor, config.mae_factor, config.soft_ce_factor, config.soft_mse_factor) == factors
                assert config.soft_source == ("net" if row == NET else "vote")
            assert config.noisy_branch == (row in ("cross entropy", "mixup", "default")), column


@pytest.mark.parametrize("reading", READINGS)
def test_a_reading_changes_the_rows_it_is_about_and_no_other(reading):
    factors = FACTORS["cifar10"]["symmetric 80 %"]
    changed = {row for row in ROWS[:-1] if ablation_changes(row, factors, (reading,)) != ablation_changes(row, factors)}
    soft, all_but_the_plain = {SOFT, NET}, {DEFAULT, WITHOUT, WITH_MIXUP, SOFT, NET}
    expected = {"semi-supervised": soft, "sharp": soft}
    expected |= dict.fromkeys(("own-batches", "same-round"), all_but_the_plain)
    assert changed == expected.get(reading, all_but_the_plain - {DEFAULT})
    for row in changed:
        make_config("paper", "pictures", **ablation_changes(row, factors, (reading,)))


def test_readings_by_hand():
    factors = FACTORS["cifar10"]["symmetric 80 %"]  # cor_mse is 10
    kept = ablation_changes(WITH_MIXUP, factors, ("kept",))
    assert (kept["corrected_loss"], kept["soft_mse_factor"], kept["mixup"]) == ("split", 0.0, True)
    assert ablation_changes(SOFT, factors, ("kept",))["soft_mse_factor"] == 10.0
    assert ablation_changes(WITHOUT, factors, ("split",))["soft_mse_factor"] == 10.0
    both = ablation_changes(SOFT, factors, ("kept", "semi-supervised"))
    assert (both["corrected_loss"], both["soft_mse_factor"], both["mixup_shape"]) == ("semi-supervised", 10.0, 4)
    own = ablation_changes(WITHOUT, factors, ("own-batches",), 256)
    assert (own["branch_batch_size"], own["branch_loss"]) == (1280, "split")


def test_figures_of_the_paper():
    assert paper_figures("cifar10")["+ mixup + soft label", "symmetric 80 %"] == (92.3, 92.5)
    assert paper_figures("cifar100")["default", "symmetric 90 %"] == (8.2, 10.4)
    assert ("mixup", "asymmetric 40 %") not in paper_figures("cifar10")
    assert paper_figures("cifar10")["cross entropy", "asymmetric 40 %"] == (72.3, 85.0)
    assert paper_shares("cifar10", "default", "symmetric 50 %") == [0.816, 0.818]
