import pickle

import pytest
import torch
from safetensors.torch import save_file
from torch.testing import assert_close

from labelmend.ensemble.nets import ResNet50
from labelmend.errors import ConfigError
from labelmend.inputs.backbones import load_weights, read_weights


@pytest.fixture
def trained():
    torch.manual_seed(1)
    return ResNet50(1000, width=2)


@pytest.mark.parametrize("kind", [".safetensors", ".pth"])
def test_all_layers_but_the_last_come_from_the_file(tmp_path, trained, kind):
    path = tmp_path / f"weights{kind}"
    tensors = {name: value.contiguous() for name, value in trained.state_dict().items()}
    save_file(tensors, path) if kind == ".safetensors" else torch.save(tensors, path)
    net = ResNet50(4, width=2)
    before = net.fc.weight.clone()
    load_weights(net, read_weights(path), str(path))
    assert_close(net.layer3[2].conv2.weight, trained.layer3[2].conv2.weight)
    assert_close(net.fc.weight, before)


def test_files_without_counters_fit(trained):
    weights = {k: v for k, v in trained.state_dict().items() if not k.endswith("num_batches_tracked")}
    load_weights(ResNet50(4, width=2), weights, "old")


@pytest.mark.parametrize("change", ["missing", "extra", "shape"])
def test_weights_of_another_net_are_refused_by_name(trained, change):
    weights = dict(trained.state_dict())
    if change == "missing":
        del weights["layer2.0.conv1.weight"]
    elif change == "extra":
        weights["layer2.0.conv1.weight2"] = torch.zeros(1)
    else:
        weights["layer2.0.conv1.weight"] = torch.zeros(1)
    with pytest.raises(ConfigError, match=r"ResNet50.*w\.pth.*layer2\.0\.conv1\.weight"):
        load_weights(ResNet50(4, width=2), weights, "w.pth")


def test_nothing_in_the_file_is_executed(tmp_path):
    class Trap:
        def __reduce__(self):
            return (open, (str(tmp_path / "sprung"), "w"))

    path = tmp_path / "trap.pth"
    path.write_bytes(pickle.dumps({"conv1.weight": Trap()}))
    with pytest.raises(ConfigError, match=r"\.safetensors .*\.pth .*tensors"):
        read_weights(path)
    torch.save({"conv1.weight": Trap()}, path)
    with pytest.raises(ConfigError, match=r"tensors alone"):
        read_weights(path)
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize("content", [b"", b"not weights"])
@pytest.mark.parametrize("kind", [".safetensors", ".pth"])
def test_damaged_and_absent_files_are_refused(tmp_path, content, kind):
    path = tmp_path / f"weights{kind}"
    with pytest.raises(ConfigError, match=r"weights must be a file"):
        read_weights(path)
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"weights must be a \.safetensors"):
        read_weights(path)
    torch.save([1, 2], tmp_path / "list.pth")
    with pytest.raises(ConfigError, match=r"something else"):
        read_weights(tmp_path / "list.pth")
