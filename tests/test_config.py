import dataclasses
import re

import pytest

from labelmend.config import PAPER, RunConfig, make_config, read_config, resolve, stored
from labelmend.errors import ConfigError, LabelmendWarning


def test_an_unknown_parameter_is_named_beside_the_known_ones():
    with pytest.raises(ConfigError, match="grapk_k is not a parameter; did you mean graph_k"):
        make_config(grapk_k=5)


def test_an_unknown_preset_is_refused():
    with pytest.raises(ConfigError, match=r"preset .*default, paper.*'best'"):
        make_config("best")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (entry.name, entry.metadata["minimum"] - 1)
        for entry in dataclasses.fields(RunConfig)
        if entry.metadata["minimum"] is not None
    ],
)
def test_a_value_below_its_minimum_is_refused(name, value):
    with pytest.raises(ConfigError, match=rf"{name} must be at least {value + 1}\. Got {value} instead\."):
        make_config(**{name: value})


@pytest.mark.parametrize("name", [entry.name for entry in dataclasses.fields(RunConfig) if entry.metadata["choices"]])
def test_a_word_that_is_no_choice_is_refused(name):
    with pytest.raises(ConfigError, match=rf"{name} must be one of .*\. Got 'none of these' instead\."):
        make_config(**{name: "none of these"})


@pytest.mark.parametrize("alpha", [0, 1, -0.5, 1.5, float("nan")])
def test_alpha_lies_strictly_between_zero_and_one(alpha):
    with pytest.raises(ConfigError, match=r"^alpha must be "):
        make_config(alpha=alpha)


@pytest.mark.parametrize(("low", "high"), [(0.5, 0.5), (0.6, 0.4), (-0.1, 1.0), (0.0, 1.1)])
def test_percentiles_are_ordered_and_inside_zero_to_one(low, high):
    with pytest.raises(ConfigError, match=r"(low|high)_percentile"):
        make_config(low_percentile=low, high_percentile=high)


def test_not_a_number_is_below_every_minimum():
    with pytest.raises(ConfigError, match="lr must be finite"):
        make_config(lr=float("nan"))


NUMBERS = [
    entry.name
    for entry in dataclasses.fields(RunConfig)
    if "float" in str(entry.type) and "tuple" not in str(entry.type)
]


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan"), 10**400])
def test_every_number_is_finite(name, value):
    with pytest.raises(ConfigError, match=f"^{name} |{name} must|low_percentile"):
        make_config(**{name: value})


def test_every_number_of_a_list_is_finite():
    with pytest.raises(ConfigError, match="lr_milestones must be finite"):
        make_config(lr_milestones=(0.5, float("nan")))


@pytest.mark.parametrize(
    ("name", "most"),
    [("n_branches", 100), ("held_out_folds", 100), ("hidden", 2**16), ("width", 2**12), ("n_rounds", 10**9)],
)
def test_what_is_counted_has_an_upper_bound(name, most):
    make_config(**{name: most})
    with pytest.raises(ConfigError, match=f"{name} must be at most {most:,}"):
        make_config(**{name: most + 1})


def test_a_configuration_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        make_config().seed = 1


def test_default_is_the_defaults_and_plus_is_its_former_name():
    assert make_config() == RunConfig()
    with pytest.warns(LabelmendWarning, match="default"):
        assert make_config("plus") == RunConfig()


def test_paper_is_the_text_and_a_change_wins_over_it():
    config = make_config("paper", alpha=0.5)
    assert (config.preset, config.decide, config.graph_k, config.alpha) == ("paper", "votes", 50, 0.5)
    assert {name: getattr(config, name) for name in PAPER} == {**PAPER, "alpha": 0.5}


@pytest.mark.parametrize("entry", dataclasses.fields(RunConfig), ids=lambda entry: entry.name)
def test_every_parameter_has_a_line_of_help(entry):
    assert len(entry.metadata["help"]) > 5


FOLLOWED = {entry.name for entry in dataclasses.fields(RunConfig) if getattr(RunConfig(), entry.name) is None}


THREE_SIZES = re.compile(r"follows the data: (\d+), (\d+) from ([\d,]+) rows, (\d+) above ([\d,]+)")
TWO_SIZES = re.compile(r"follows the data: (\d+), or (\d+) above ([\d,]+) rows")


def numbers_in_help(name, pattern):
    help_ = RunConfig.__dataclass_fields__[name].metadata["help"]
    return [int(number.replace(",", "")) for number in pattern.search(help_).groups()]


def test_small_middling_and_large_data_get_the_rounds_that_the_help_says():
    small, middling, first, large, last = numbers_in_help("n_rounds", THREE_SIZES)
    followed = [resolve(make_config(), n, 10).n_rounds for n in (first - 1, first, last, last + 1)]
    assert followed == [small, middling, middling, large]


@pytest.mark.parametrize("name", ["hidden", "held_out_passes"])
def test_small_and_large_data_get_what_the_help_says(name):
    small, large, limit = numbers_in_help(name, TWO_SIZES)
    assert getattr(resolve(make_config(), limit, 10), name) == small
    assert getattr(resolve(make_config(), limit + 1, 10), name) == large


@pytest.mark.parametrize(
    ("n_rows", "n_classes", "expected"),
    [
        (150, 3, {"batch_size": 64, "graph_k": 5, "alpha": 0.9}),
        (1257, 10, {"batch_size": 64, "graph_k": 10, "alpha": 0.9}),
        (3000, 10, {"batch_size": 150, "graph_k": 20}),
        (8_000, 10, {"batch_size": 256, "graph_k": 20}),
        (50_000, 10, {"batch_size": 256, "graph_k": 32, "alpha": 0.5}),
        (20_000, 1000, {"graph_k": 5, "alpha": 0.9}),
        (5, 60, {"graph_k": 5, "alpha": 0.9}),
    ],
)
def test_batches_and_graphs_follow_the_number_of_rows_and_the_size_of_classes(n_rows, n_classes, expected):
    config = resolve(make_config(), n_rows, n_classes)
    assert {name: getattr(config, name) for name in expected} == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize(
    ("n_rows", "expected"),
    [
        (300, {"n_rounds": 20, "batch_size": 32, "branch_batch_size": 32, "graph_k": 5, "average_decay": 0.957}),
        (2000, {"n_rounds": 20, "batch_size": 100, "graph_k": 17, "average_decay": 0.98}),
        (50_000, {"n_rounds": 64, "batch_size": 256, "graph_k": 50, "average_decay": 0.998, "width": 64}),
        (1_000_000, {"batch_size": 256, "branch_batch_size": 1280, "graph_k": 50, "average_decay": 0.998}),
    ],
)
def test_pictures_that_are_trained_on_have_rules_of_their_own(n_rows, expected):
    config = resolve(make_config(data="pictures"), n_rows, 10, "pictures")
    assert {name: getattr(config, name) for name in expected} == pytest.approx(expected, abs=1e-3)
    assert config.mixup
    assert config.consistency > 0


def test_the_paper_has_a_recipe_for_pictures():
    config = make_config("paper", "pictures", lr=0.1)
    assert (config.n_rounds, config.lr, config.lr_milestones, config.decide) == (200, 0.1, (0.75,), "votes")
    assert not config.mixup
    followed = resolve(config, 50_000, 10, "pictures")
    assert followed.branch_batch_size == followed.batch_size == 128
    assert not still_open(followed)


def still_open(config):
    return {entry.name for entry in dataclasses.fields(RunConfig) if getattr(config, entry.name) is None}


def test_packages_are_large_and_small_by_turns_unless_a_number_is_set():
    def packages(config, data="vectors"):
        followed = resolve(config, 1000, 10, data)
        return followed.packages_per_branch, followed.fine_packages

    assert packages(make_config()) == (4, 16)
    assert packages(make_config(packages_per_branch=7)) == (7, 7)
    assert packages(make_config(packages_per_branch=7, fine_packages=9)) == (7, 9)
    assert packages(make_config(data="pictures"), "pictures") == (4, 4)
    assert packages(make_config("paper")) == (4, 4)


def test_graphs_go_by_the_turns_of_the_packages():
    def graphs(config, n_rows=7_000, data="vectors"):
        followed = resolve(config, n_rows, 10, data)
        return followed.graph_k, followed.fine_graph_k, round(followed.alpha, 3), round(followed.fine_alpha, 3)

    assert graphs(make_config()) == (20, 10, 0.714, 0.9)
    assert graphs(make_config(), 1257) == (10, 10, 0.9, 0.9)
    assert graphs(make_config(), 500) == (5, 5, 0.9, 0.9)
    assert graphs(make_config(graph_k=15)) == (15, 15, 0.714, 0.9)
    assert graphs(make_config(alpha=0.6)) == (20, 10, 0.6, 0.6)
    assert graphs(make_config(fine_graph_k=3, fine_alpha=0.4)) == (20, 3, 0.714, 0.4)
    assert graphs(make_config(), 50_000) == (32, 32, 0.5, 0.5)
    steady = resolve(make_config("paper", graph_k=None, alpha=None), 10_000, 10)
    assert (steady.fine_graph_k, steady.fine_alpha) == (steady.graph_k, steady.alpha)
    pictures = resolve(make_config(data="pictures"), 10_000, 10, "pictures")
    assert (pictures.fine_graph_k, pictures.fine_alpha) == (pictures.graph_k, pictures.alpha)


def test_alpha_falls_as_classes_grow():
    alphas = [resolve(make_config(), 10 * size, 10).alpha for size in (50, 126, 200, 400, 1000, 5000, 50_000)]
    assert alphas == sorted(alphas, reverse=True)
    assert alphas[0] == 0.9
    assert alphas[-1] == 0.5
    assert 0.5 < alphas[3] < 0.9


@pytest.mark.parametrize("size", [(5, 2), (1000, 10), (1_000_000, 5000)])
def test_nothing_is_left_open_and_nothing_that_was_set_is_changed(size):
    followed = resolve(make_config(), *size)
    assert not still_open(followed)
    shares = {"alpha", "fine_alpha", "review_below"}
    numbers = dict.fromkeys(FOLLOWED - shares - {"noisy_branch"}, 7)
    chosen = make_config(**numbers, **dict.fromkeys(shares, 0.7), noisy_branch=True)
    assert dataclasses.asdict(resolve(chosen, *size)) == dataclasses.asdict(chosen)


def test_an_average_remembers_two_and_a_half_rounds_but_no_more_than_500_steps():
    for n_rows, decay in ((1_000, 0.98), (100, 0.9), (10**6, 0.998)):  # 50, 5 -> 10 and 9,766 -> 500 steps
        config = make_config(average_decay=None, batch_size=50 if n_rows < 10**6 else 256)
        assert resolve(config, n_rows, 10).average_decay == pytest.approx(decay)
    assert resolve(make_config(average_decay=0.5), 1_000, 10).average_decay == 0.5
    assert resolve(make_config(), 1_000, 10).average_decay == 0.0


@pytest.mark.parametrize("preset", ["default", "paper"])
def test_pictures_have_presets_of_their_own_and_every_none_is_filled(preset):
    config = make_config(preset, "pictures", seed=3)
    assert config != make_config(preset, seed=3)
    filled = dataclasses.asdict(resolve(config, 50_000, 10, "pictures"))
    assert None not in filled.values()
    assert filled["seed"] == 3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"consistency_threshold": 1.5}, r"consistency_threshold must be at most 1\. Got 1\.5 instead"),
        ({"evidence_kept": 2.0}, r"evidence_kept must be at most 1\. Got 2\.0 instead"),
        ({"average_decay": 1.0}, r"average_decay must be below 1\. Got 1 instead"),
        ({"soft_temperature": 0.0}, r"soft_temperature must be above 0\. Got 0 instead"),
        ({"corrected_loss": "semi-supervised"}, r"corrected_loss semi-supervised needs soft_labels"),
        ({"consistency": 1.0}, r"consistency needs an averaged net to ask: set average_decay above 0"),
    ],
)
def test_values_beyond_their_bounds_are_refused(changes, message):
    with pytest.raises(ConfigError, match=message):
        make_config(**changes)


def asked(preset="default", config=None, expert=None, former=None, **public):
    return read_config(preset, config, expert, public, former or {}, ("X", "y", "seed", "expert"))("vectors")


@pytest.mark.parametrize("tune", [True, False])
def test_tuning_is_accepted_for_one_release_and_does_nothing(tune):
    with pytest.warns(LabelmendWarning, match="tune"):
        assert asked(former={"tune": tune}) == make_config()


def test_what_was_an_argument_once_is_taken_with_a_warning_that_names_the_new_one():
    with pytest.warns(LabelmendWarning, match=r"expert=\{\"n_rounds\": 3\}"):
        assert asked(former={"n_rounds": 3}) == make_config(n_rounds=3)


def test_a_former_name_is_taken_with_a_warning():
    with pytest.warns(LabelmendWarning, match="cross_fits"):
        assert asked(expert={"examinations": 2}) == make_config(cross_fits=2)


@pytest.mark.parametrize(("name", "near"), [("n_round", "n_rounds"), ("sed", "seed"), ("exprt", "expert")])
def test_an_unknown_argument_gets_the_nearest_one(name, near):
    with pytest.raises(ConfigError, match=f"{name} is not a parameter; did you mean {near}"):
        asked(former={name: 1})


def test_settings_of_an_older_version_are_read():
    now = dataclasses.asdict(resolve(make_config(), 100, 3))
    before = {**now, "preset": "plus", "examinations": now["cross_fits"]}
    del before["cross_fits"]
    assert dataclasses.asdict(stored(before)) == now


def test_a_config_stands_for_all_parameters():
    config = make_config(n_rounds=3, seed=4)
    assert asked(config=config) is config
    for more in ({"expert": {"n_rounds": 4}}, {"seed": 2}, {"preset": "paper"}):
        with pytest.raises(ConfigError, match="config holds all parameters"):
            asked(config=config, **more)
    with pytest.raises(ConfigError, match="config must be a RunConfig"):
        asked(config={"n_rounds": 3})


def test_preset_paper_scales_columns_and_takes_the_votes():
    paper = make_config("paper")
    assert paper.scale_columns
    assert paper.decide == "votes"
    assert paper.outlier_share == 0


def test_what_is_assumed_of_the_classes_is_one_of_three():
    assert make_config().assume == "auto"
    assert make_config(assume="apart").assume == "apart"
    with pytest.raises(ConfigError, match="assume"):
        make_config(assume="mixed")
