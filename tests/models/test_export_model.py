import copy
import json

import numpy as np
import pytest
import scipy.sparse
import torch

import labelmend
from blobs import QUICK, blobs
from coloured import COLOURS, TINY, TinyBackbone, coloured
from labelmend.config import as_arguments
from labelmend.errors import LabelmendError, MissingExtraError, RunFolderError
from labelmend.evidence.preparation import fit_preparation, seen_columns
from labelmend.inputs.features import fit_scaler, read_features
from labelmend.models import onnx as stage
from labelmend.models.onnx import export_model
from labelmend.models.vectors import fit_vector_model

onnx, onnxruntime = pytest.importorskip("onnx"), pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")


def picture_model(tmp_path, **named):
    pixels, true = coloured(n=30)
    settings = {**TINY, "n_rounds": 1}
    return labelmend.correct_images(
        pixels, np.array(COLOURS)[true], cache=tmp_path / "cache", **as_arguments({**named, **settings})
    ).model


def answers(path, inputs):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    (only,), (out,) = session.get_inputs(), session.get_outputs()
    assert out.name == "probabilities"
    return session.run(None, {only.name: inputs})[0], only


def metadata(path):
    return {entry.key: entry.value for entry in onnx.load(path).metadata_props}


@pytest.mark.parametrize(
    ("named", "kind"),
    [
        ({"mode": "train", "size": 72}, "pictures-trained"),
        ({"mode": "embed", "backbone": TinyBackbone(), "size": 8}, "pictures-embedded"),
    ],
)
def test_pictures_go_in_as_pixels_and_come_out_as_probabilities(tmp_path, named, kind):
    model = picture_model(tmp_path, **named)
    path = export_model(model, tmp_path / "model.onnx")
    pixels = np.random.default_rng(1).integers(0, 256, (5, *model.size, 3), dtype=np.uint8)
    for n in (1, 5):
        found, only = answers(path, pixels[:n])
        np.testing.assert_allclose(found, model.predict_proba(pixels[:n]), atol=1e-5)
    assert (only.name, only.type, only.shape[1:]) == ("pixels", "tensor(uint8)", [*model.size, 3])
    about = metadata(path)
    assert json.loads(about["classes"]) == sorted(COLOURS)
    assert (about["kind"], json.loads(about["size"])) == (kind, list(model.size))
    assert [entry.version for entry in onnx.load(path).opset_import if entry.domain == ""] == [stage.OPSET]


def test_vectors_go_in_unscaled(tmp_path):
    X, y = blobs(spread=2.0)
    model = labelmend.correct(1000 * X + 5, y, expert=QUICK).model
    path = export_model(model, tmp_path / "model.onnx")
    rows = (1000 * X + 5).astype(np.float32)
    found, only = answers(path, rows)
    assert only.name == "rows"
    np.testing.assert_allclose(found, model.predict_proba(rows), atol=1e-5)
    assert metadata(path) == {"classes": "[0, 1, 2]", "kind": "vectors"}


def test_the_projection_of_wide_rows_is_inside(tmp_path):
    X, y = blobs(n=60, n_columns=300)
    model = labelmend.correct(scipy.sparse.csr_array(X), y, expert=QUICK).model
    found, _ = answers(export_model(model, tmp_path / "model.onnx"), X.astype(np.float32))
    np.testing.assert_allclose(found, model.predict_proba(X), atol=1e-4)


@pytest.fixture(scope="module")
def vector_model():
    X, y = blobs()
    return labelmend.correct(X, y, expert=QUICK).model


def test_an_existing_file_is_replaced_only_by_force(vector_model, tmp_path):
    target = tmp_path / "model.onnx"
    target.write_text("years of work")
    with pytest.raises(RunFolderError, match=r"model\.onnx.*--force"):
        export_model(vector_model, target)
    assert target.read_text() == "years of work"
    export_model(vector_model, target, force=True)
    assert metadata(target)["kind"] == "vectors"
    with pytest.raises(RunFolderError, match="must not exist"):
        export_model(vector_model, tmp_path, force=True)
    with pytest.raises(RunFolderError, match="no such folder"):
        export_model(vector_model, tmp_path / "nowhere" / "model.onnx")


def test_a_file_that_answers_differently_is_not_put_in_place(vector_model, tmp_path, monkeypatch):
    target = tmp_path / "model.onnx"
    target.write_text("the old one")
    other = copy.deepcopy(vector_model)
    other.head.ridge.bias.data.add_(torch.tensor([5.0, 0, 0]))
    write = stage._write
    monkeypatch.setattr(stage, "_write", lambda model, path: write(other, path))
    with pytest.raises(LabelmendError, match=r"They differ by .*; nothing was written"):
        export_model(vector_model, target, force=True)
    assert [path.name for path in tmp_path.iterdir()] == ["model.onnx"]
    assert target.read_text() == "the old one"


def test_without_the_extra_the_line_to_install_it_is_given(vector_model, tmp_path, monkeypatch):
    find = stage.util.find_spec
    monkeypatch.setattr(stage.util, "find_spec", lambda name: None if name == "onnxscript" else find(name))
    with pytest.raises(MissingExtraError, match=r'needs onnxscript\. Install it with: pip install "labelmend\[onnx\]"'):
        export_model(vector_model, tmp_path / "model.onnx")


@pytest.mark.parametrize(("n_columns", "sparse"), [(4, False), (300, True)])
def test_a_fitted_model_goes_from_raw_rows_to_probabilities_in_one_graph(n_columns, sparse, tmp_path):
    X, y = blobs(n=80, n_columns=n_columns, spread=4.0)
    matrix = read_features(scipy.sparse.csr_array(X) if sparse else X)
    scaler = fit_scaler(matrix, 0)
    known = fit_preparation(seen_columns(matrix, scaler.projection))
    model = fit_vector_model(matrix, known, scaler, y, np.arange(3), torch.device("cpu"), 0)
    assert model.head.forest is not None
    found, only = answers(export_model(model, tmp_path / "model.onnx"), X.astype(np.float32))
    assert (only.name, only.shape[1:]) == ("rows", [n_columns])
    np.testing.assert_allclose(found, model.predict_proba(X), atol=1e-4)
    assert metadata(tmp_path / "model.onnx") == {"classes": "[0, 1, 2]", "kind": "vectors"}
