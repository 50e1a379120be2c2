"""Clothing1M, its hybrid set and Food101-N of `python -m bench paper`, on tiny copies of their layouts."""

import dataclasses
import json
import shutil

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from bench.paper import photo_play, photos
from bench.paper.command import main
from bench.paper.experiment import Options
from bench.paper.photo_task import clothes, clothes_and_clean, food, photo_task
from bench.paper.photos import EXPERIMENTS, cells, play, settings
from bench.paper.rows import CROSS_ENTROPY, DEFAULT, PLUS, SOFT, WITH_MIXUP, WITHOUT
from labelmend.ensemble.nets import ResNet50
from labelmend.errors import ConfigError, DataError
from labelmend.runs.pictures import IMAGENET
from photo_sets import CLOTHES, FOODS, change, clothing1m, food101, food101n

NO_FILE = {"name": "none", "digest": ""}
NAMES = {
    "clothing1m": (CROSS_ENTROPY, DEFAULT, WITHOUT, WITH_MIXUP, SOFT, PLUS),
    "clothing1m-hybrid": (CROSS_ENTROPY, DEFAULT, PLUS),
    "food101n": (CROSS_ENTROPY, DEFAULT, PLUS),
}


@pytest.fixture(scope="module")
def sets(tmp_path_factory):
    """A folder with all three, not to be changed."""
    root = tmp_path_factory.mktemp("sets")
    clothing1m(root / "clothing1M")
    food101n(root / "Food-101N_release")
    food101(root / "food-101")
    return root


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


def options_for(data, cache, **changes):
    return Options(**{"data": data, "cache": cache, "quick": True, "device": "cpu", "limit": 100, **changes})


def say(text):
    pass


@pytest.mark.parametrize("name", NAMES)
def test_every_name_runs_and_prints_the_papers_figures_beside_ours(name, sets, cache, tmp_path, capsys):
    out = tmp_path / "paper.jsonl"
    asked = [name, "--data", str(sets), "--cache", str(cache), "--out", str(out), "--quick", "--device", "cpu"]
    assert main(asked) == 0
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [line["row"] for line in lines] == list(NAMES[name])
    assert all(0 <= line["figures"]["test_last"] <= 1 for line in lines)
    assert all(line["more"]["unreadable"] == 0 and line["more"]["test_pictures"] == 6 for line in lines)
    assert len(lines[1]["curves"]["test"]) == lines[1]["epochs"] == 2
    page = (tmp_path / "paper.md").read_text()
    section = page.partition(f"<!-- begin {name} -->")[2].partition("<!-- end")[0]
    assert section.strip() in capsys.readouterr().out
    for figures in EXPERIMENTS_PAPER[name]:
        assert figures in section
    assert section.count("| ours ") == len(NAMES[name])
    assert "not run" not in section
    assert page.count("not run") > 5  # the other tables
    assert main(asked) == 0  # finished cells are not run again
    assert len(out.read_text().splitlines()) == len(lines)


EXPERIMENTS_PAPER = {
    "clothing1m": ("69.21", "75.17", "73.91", "73.87", "73.9 ", "DivideMix 74.76"),
    "clothing1m-hybrid": ("| 75.67 ", "| 80.32 ", "| 78.01 ", "| 81.13 ", "DataCoef 77.21"),
    "food101n": ("81.97", "85.13", "NoiseRank 85.79", 'Without the "additional 50k clean set"', "F1 / precision"),
}


@pytest.mark.parametrize("name", NAMES)
def test_without_the_data_the_table_says_not_run(name, tmp_path):
    shown = EXPERIMENTS[name].show([], tmp_path)
    columns = 2 if name == "clothing1m-hybrid" else 1
    assert shown.count("not run") == columns * len(NAMES[name])
    assert "Nothing of it has been run" in shown
    assert EXPERIMENTS[name].missing(Options()) == "--data is not given"


def test_the_recipe_is_that_of_the_paper(sets, cache):
    options = Options(data=sets, cache=cache, device="cpu", weights="none")
    cell = next(cell for cell in cells("clothing1m", options) if cell.row == WITHOUT)
    changes = {**cell.settings["changes"], "n_rounds": cell.epochs}
    task = photo_task(clothes(options), 0, cell.settings["preset"], changes, options, say).task
    config = task.settings
    assert (config.n_rounds, config.batch_size, config.lr, config.momentum) == (15, 64, 0.01, 0.9)
    assert (config.weight_decay, config.warmup_passes) == (5e-3, 0)
    assert [15 * milestone for milestone in config.lr_milestones] == [5, 10]
    assert (config.n_branches, config.packages_per_branch) == (5, 4)
    assert (config.graph_k, config.alpha, config.decide) == (50, 0.99, "votes")
    assert (config.ce_factor, config.mae_factor, config.noisy_branch) == (1, 1, False)
    assert task.problem.samples.pixels.shape[1:] == (256, 256, 3)
    assert task.problem.samples.crop == 224
    assert isinstance(task.make_net(), ResNet50)
    soft, plus = (settings(row, options, NO_FILE) for row in (SOFT, PLUS))
    assert soft["changes"]["soft_mse_factor"] == 1
    assert (plus["preset"], plus["changes"]) == ("plus", {})


def test_another_batch_size_takes_a_rate_in_proportion():
    changes = settings(DEFAULT, Options(batch_size=256), NO_FILE)["changes"]
    assert changes == {"scale_columns": True, "batch_size": 256, "lr": 0.04}


def test_weights_are_asked_for_and_used(sets, cache, tmp_path):
    with pytest.raises(ConfigError, match=r"--weights FILE .*--weights none"):
        cells("clothing1m", Options(data=sets))
    assert cells("clothing1m", Options(data=sets, weights="none"))[0].settings["common"]["weights"] == "none"
    torch.manual_seed(5)
    trained = ResNet50(7, 4)
    save_file(
        {name: value.contiguous() for name, value in trained.state_dict().items()}, tmp_path / "resnet50.safetensors"
    )
    options = options_for(sets, cache, weights=str(tmp_path / "resnet50.safetensors"))
    before = cells("clothing1m", options)[0].settings
    assert before["common"]["weights"] == "resnet50.safetensors"
    found = photo_task(clothes(options), 0, "paper", {}, options, say)
    net = found.task.make_net()
    assert torch.equal(net.layer4[0].conv2.weight, trained.layer4[0].conv2.weight)
    assert net.fc.out_features == len(CLOTHES)
    for samples in (found.task.problem.samples, found.truth.test_samples):
        torch.testing.assert_close(samples.mean.flatten(), IMAGENET[0])
    save_file({"conv1.weight": torch.zeros(1)}, tmp_path / "resnet50.safetensors")
    with pytest.raises(ConfigError, match="weights must be those of a ResNet50"):
        photo_task(clothes(options), 0, "paper", {}, options, say)
    assert cells("clothing1m", options)[0].settings != before  # another file of the same name is another run
    (tmp_path / "resnet50.safetensors").unlink()
    with pytest.raises(ConfigError, match=r"--weights .*none.*resnet50\.safetensors"):
        cells("clothing1m", options)


def test_hybrid_trusts_the_clean_list_and_fine_tunes_on_it_alone(sets, cache, monkeypatch):
    options = options_for(sets, cache)
    photo_set = clothes_and_clean(options)
    assert photo_set.trusted.tolist() == [False] * 24 + [True] * 6
    plain, tasks = photo_play.train_plainly, []

    def train_plainly(task, *rest):
        tasks.append(task)
        return plain(task, *rest)

    monkeypatch.setattr(photo_play, "train_plainly", train_plainly)
    kept = []
    usual = photos.corrected

    def corrected(found, say):
        outcome = usual(found, say)
        kept.append((found.task.problem, outcome))
        return outcome

    monkeypatch.setattr(photos, "corrected", corrected)
    cell = next(cell for cell in cells("clothing1m-hybrid", options) if cell.row == DEFAULT)
    measured = play("clothing1m-hybrid", cell, options, say)
    (problem, outcome), (task,) = kept[0], tasks
    assert problem.trusted.sum() == 6
    np.testing.assert_array_equal(outcome.labels[24:], [2, 0, 1] * 2)  # names in the order of the alphabet
    assert problem.given_labels[24:].tolist() == [2, 0, 1] * 2
    assert task.problem.given_labels.tolist() == [-1] * 24 + [2, 0, 1] * 2
    assert task.settings.lr == pytest.approx(0.001)
    assert task.make_net() is outcome.net
    assert len(measured.curves["test_fine_tuned"]) == 1
    assert measured.figures["test_final_fine_tuned"] == measured.curves["test_fine_tuned"][-1]


def test_a_picture_in_both_lists_is_clean(tmp_path):
    folder = clothing1m(tmp_path / "clothing1M")
    shared = "images/0/0/clean_train,0.jpg"
    change(folder / "noisy_train_key_list.txt", 25, shared)
    change(folder / "noisy_label_kv.txt", 26, f"{shared} 2")
    photo_set = clothes_and_clean(Options(data=folder))
    assert photo_set.train.keys.tolist().count(shared) == 1
    assert len(photo_set.train) == 30
    assert photo_set.train.labels[photo_set.train.keys == shared].tolist() == [0]


def test_food_trains_a_new_net_on_the_corrected_labels(sets, cache, monkeypatch):
    options, tasks, plain = options_for(sets, cache), [], photo_play.train_plainly

    def train_plainly(task, *rest):
        tasks.append(task)
        return plain(task, *rest)

    def corrected(found, say):
        labels = (found.task.problem.given_labels.numpy() + 1) % 3
        return photo_play.Outcome({"seconds": 1.0, "test_last": 0.25}, {}, labels, None)

    monkeypatch.setattr(photo_play, "train_plainly", train_plainly)
    monkeypatch.setattr(photos, "corrected", corrected)
    cell = next(cell for cell in cells("food101n", options) if cell.row == PLUS)
    measured = play("food101n", cell, options, say)
    (task,) = tasks
    assert task.problem.given_labels.tolist() == [1, 2, 0] * 8
    assert task.settings.preset == "paper"
    assert not task.settings.mixup
    assert measured.figures["own_test_last"] == 0.25
    assert measured.figures["seconds"] > 1
    assert measured.figures["changed"] == 1
    assert (measured.figures["recall"], measured.figures["precision"]) == (1, 4 / 14)  # 14 verified, 4 of them wrong
    assert food(options).verified.tolist().count(-1) == 10


def test_figures_of_what_people_verified():
    verified = np.array([0, 0, 0, 1, 1, -1, -1])
    given, labels = np.zeros(7, int), np.array([1, 1, 0, 1, 0, 1, 0])
    found = photo_play.verified_figures(verified, given, labels)
    assert found == {"precision": 2 / 3, "recall": 2 / 3, "f1": 4 / 6, "true_noise_rate": 3 / 5}
    nothing = photo_play.verified_figures(verified[3:5], given[3:5], given[3:5])
    assert nothing == {"precision": None, "recall": None, "f1": None, "true_noise_rate": 0}


def test_balanced_and_limit(sets, cache):
    options = options_for(sets, cache, balanced=True, limit=3)
    cell = cells("clothing1m", options)[0]
    assert cell.settings["common"] == {"batch_size": None, "limit": 3, "weights": "none", "balanced": True}
    found = photo_task(clothes(options), 0, "paper", {}, options, say)
    assert (found.more["pictures"], found.more["test_pictures"]) == (9, 6)
    assert found.task.settings.balanced
    uneven = torch.tensor([0, 0, 0, 0, 0, 1, 1, 2, -1])
    task = dataclasses.replace(found.task, problem=dataclasses.replace(found.task.problem, given_labels=uneven))
    drawn = photo_play._draw(task)(torch.Generator().manual_seed(0))
    assert sorted(torch.bincount(uneven[drawn]).tolist()) == [2, 3, 3]
    unbalanced = dataclasses.replace(task.settings, balanced=False)
    assert photo_play._draw(dataclasses.replace(task, settings=unbalanced)) is None


def test_pictures_that_are_not_there_are_listed(sets, tmp_path):
    folder = tmp_path / "clothing1M"
    shutil.copytree(sets / "clothing1M", folder)
    (folder / "images/3/3/noisy_train,3.jpg").unlink()
    (folder / "images/0/0/clean_test,0.jpg").write_bytes(b"no picture")
    options, told = options_for(tmp_path, tmp_path / "cache"), []
    found = photo_task(clothes(options), 0, "paper", {}, options, told.append)
    assert (found.more["pictures"], found.more["test_pictures"], found.more["unreadable"]) == (23, 5, 2)
    lost = found.more["unreadable_pictures"]
    assert lost["images/3/3/noisy_train,3.jpg"] == "there is no such file"
    assert "not a picture" in lost["images/0/0/clean_test,0.jpg"]
    assert any("2 picture(s) could not be read" in text for text in told)
    assert found.truth.test_labels.tolist() == [0, 1, 2, 0, 1]  # Down Coat, Dress and so on, without the first


def test_a_bad_list_ends_the_command_with_its_line(sets, tmp_path):
    shutil.copytree(sets / "Food-101N_release", tmp_path / "Food-101N_release")
    shutil.copytree(sets / "food-101", tmp_path / "food-101")
    change(tmp_path / "Food-101N_release/meta/imagelist.tsv", 5, "pizza/1.jpg")
    asked = ["food101n", "--data", str(tmp_path), "--quick", "--device", "cpu", "--out", str(tmp_path / "out.jsonl")]
    with pytest.raises(DataError, match=r"imagelist\.tsv, line 5.*'pizza'.*meta/classes\.txt"):
        main(asked)


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("clothing1m", "food-101", r"must be the folder of Clothing1M, .*Got: images, meta"),
        ("food101n", "food-101", "must be the folder of Food-101N, .*Got that of Food-101, .*exchange them"),
        ("food101n", "Food-101N_release", r"must be the folder of Food-101, .*meta/test.txt"),
        ("food101n", "clothing1M", "must be the folder of Food-101N"),
    ],
)
def test_wrong_folders(name, data, message, sets):
    with pytest.raises(ConfigError, match=f"{name} needs .*{message}"):
        main([name, "--data", str(sets / data), "--quick"])


def test_food101_in_a_place_of_its_own(sets):
    noisy, clean = sets / "Food-101N_release", sets / "food-101"
    assert EXPERIMENTS["food101n"].missing(Options(data=noisy, food101=clean)) is None
    assert food(Options(data=noisy, food101=clean)).test.classes == FOODS
    swapped = EXPERIMENTS["food101n"].missing(Options(data=noisy, food101=noisy))
    assert "must be the folder of Food-101, with meta/test.txt. Got that of Food-101N" in swapped


def test_from_good_weights_wrong_labels_are_found(sets, cache, tmp_path):
    """A net that knows colours from the clothes finds the foods that show another class."""
    options = options_for(sets, cache)
    clothing = photo_task(clothes(options), 0, "paper", {"n_rounds": 20, "lr": 0.02}, options, say)
    outcome = photo_play.as_they_are(clothing, say)
    assert outcome.figures["test_final"] > 0.6
    weights = {name: value.contiguous() for name, value in outcome.net.state_dict().items()}
    save_file(weights, tmp_path / "resnet50.safetensors")
    options = options_for(sets, cache, weights=str(tmp_path / "resnet50.safetensors"))
    cell = next(cell for cell in cells("food101n", options) if cell.row == DEFAULT)
    figures = play("food101n", cell, options, say).figures
    assert figures["recall"] >= 0.75  # of 4 wrong ones
    assert figures["precision"] >= 0.75
    assert figures["changed"] <= 6 / 24
