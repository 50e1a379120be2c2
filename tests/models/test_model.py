import json

import numpy as np
import pytest
import scipy.sparse
import torch
from safetensors.torch import load_file, save_file
from torch import nn

import labelmend
from blobs import QUICK, blobs
from labelmend.errors import DataError, RunFolderError
from labelmend.evidence.preparation import fit_preparation, seen_columns
from labelmend.inputs.features import fit_scaler, read_features
from labelmend.models.saved import load_model
from labelmend.models.vectors import fit_vector_model


@pytest.fixture(scope="module")
def model():
    X, y = blobs(spread=2.0)
    return labelmend.correct(X, np.array(["cat", "dog", "owl"])[y], expert=QUICK).model


@pytest.fixture(scope="module")
def net_of_run():
    X, y = blobs(spread=2.0)
    return labelmend.correct(X, np.array(["cat", "dog", "owl"])[y], preset="paper", expert=QUICK).model


class Tied(nn.Module):
    """A net of the user's: two layers that share their weights."""

    def __init__(self, n_inputs, n_classes):
        super().__init__()
        self.first = nn.Linear(n_inputs, n_inputs)
        self.second = nn.Linear(n_inputs, n_inputs)
        self.second.weight = self.first.weight
        self.head = nn.Linear(n_inputs, n_classes)

    def forward(self, x):
        features = torch.relu(self.second(torch.relu(self.first(x))))
        return features, self.head(features)


def test_probabilities_of_a_net_of_the_run_are_the_softmax_of_it_on_scaled_rows(net_of_run):
    X, _ = blobs(n=12, seed=5)
    model = net_of_run
    rows = (torch.from_numpy(X.astype(np.float32)) - model.head.scale.mean) / model.head.scale.scale
    with torch.no_grad():
        expected = model.head.net(rows)[1].double().softmax(dim=1)
    np.testing.assert_allclose(model.predict_proba(X), expected, rtol=1e-5)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1, rtol=1e-12)


def test_prediction_is_the_most_probable_class_in_the_users_words(model):
    X, y = blobs(spread=2.0)
    best = model.predict_proba(X).argmax(axis=1)
    assert set(best) == {0, 1, 2}
    np.testing.assert_array_equal(model.predict(X), np.array(["cat", "dog", "owl"])[best])
    assert (best == y).mean() > 0.8


def test_no_rows_give_no_predictions(model):
    assert model.predict_proba(np.empty((0, 4))).shape == (0, 3)
    assert model.predict(np.empty((0, 4))).shape == (0,)


def test_saving_and_loading_gives_the_same_probabilities_without_pickle(model, tmp_path, no_pickle):
    X, _ = blobs(n=9, seed=5)
    model.save(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.json", "model.safetensors"]
    again = load_model(tmp_path, model.classes, None)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_the_projection_of_wide_sparse_rows_is_saved_too(tmp_path, no_pickle):
    X, y = blobs(n=60, n_columns=300)
    X = scipy.sparse.csr_array(X)
    model = labelmend.correct(X, y, expert=QUICK).model
    model.save(tmp_path)
    again = load_model(tmp_path, model.classes, None)
    assert again.head.n_columns == 300
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_a_net_of_the_users_is_saved_and_needs_its_factory_to_load(tmp_path, no_pickle):
    X, y = blobs()
    model = labelmend.correct(X, y, net=Tied, expert=QUICK).model
    model.save(tmp_path)
    with pytest.raises(RunFolderError, match=r"test_model\.Tied.*factory"):
        load_model(tmp_path, model.classes, None)
    again = load_model(tmp_path, model.classes, Tied)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


class MLP(nn.Module):
    """A net of the user's with a name that ours has too."""

    def __init__(self, n_inputs, n_classes):
        super().__init__()
        self.hidden, self.head = nn.Linear(n_inputs, 5), nn.Linear(5, n_classes)

    def forward(self, x):
        features = torch.tanh(self.hidden(x))
        return features, self.head(features)


def test_a_net_named_like_ours_is_not_taken_for_ours(tmp_path):
    X, y = blobs()
    model = labelmend.correct(X, y, net=MLP, expert=QUICK).model
    model.save(tmp_path)
    with pytest.raises(RunFolderError, match=r"is a test_model\.MLP, which this library cannot build"):
        load_model(tmp_path, model.classes, None)
    again = load_model(tmp_path, model.classes, MLP)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("module", ["labelmend.nets.mlp", "labelmend.ensemble.nets.mlp"])
def test_our_nets_are_found_by_the_names_of_runs_saved_before(net_of_run, tmp_path, module):
    net_of_run.save(tmp_path)
    about = json.loads((tmp_path / "model.json").read_text())
    assert about["net"] == "labelmend.nets.mlp.MLP"  # wherever the class is
    (tmp_path / "model.json").write_text(json.dumps({**about, "net": f"{module}.MLP"}))
    X, _ = blobs()
    again = load_model(tmp_path, net_of_run.classes, None)
    np.testing.assert_array_equal(again.predict_proba(X), net_of_run.predict_proba(X))


@pytest.mark.parametrize("n_columns", [1, 3, 5])
def test_rows_with_another_number_of_columns_are_refused(model, n_columns):
    with pytest.raises(DataError, match=rf"features must have 4 columns\. Got {n_columns} instead\."):
        model.predict(np.zeros((2, n_columns)))


def test_rows_that_are_not_finite_are_refused(model):
    X, _ = blobs(n=6)
    X[2, 1] = np.nan
    with pytest.raises(DataError, match=r"Got NaN or infinity in 1 of 6 rows instead \(rows 2\)"):
        model.predict_proba(X)


def test_weights_of_another_net_are_refused(net_of_run, tmp_path):
    model = net_of_run
    model.save(tmp_path)
    description = json.loads((tmp_path / "model.json").read_text())
    (tmp_path / "model.json").write_text(json.dumps({**description, "shape": {**description["shape"], "n_hidden": 5}}))
    with pytest.raises(RunFolderError, match=r"must hold the weights of its net\. Got this instead"):
        load_model(tmp_path, model.classes, None)


def test_a_damaged_file_of_weights_is_refused(model, tmp_path):
    model.save(tmp_path)
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-10])
    with pytest.raises(RunFolderError, match=r"must hold the weights of its net\. Got this instead"):
        load_model(tmp_path, model.classes, None)


# Fitted to the decided labels


def fitted(X, decided, n_classes=3):
    matrix = read_features(X)
    scaler = fit_scaler(matrix, 0)
    known = fit_preparation(seen_columns(matrix, scaler.projection))
    names = np.array(["cat", "dog", "owl", "yak"])[:n_classes]
    return fit_vector_model(matrix, known, scaler, decided, names, torch.device("cpu"), 0)


@pytest.mark.parametrize(
    ("n_columns", "sparse", "n_classes"), [(4, False, 3), (4, True, 2), (300, False, 3), (300, True, 3), (4, False, 4)]
)
def test_a_fitted_model_tells_new_rows_and_comes_back_as_it_was(n_columns, sparse, n_classes, tmp_path, no_pickle):
    X, y = blobs(n=300, n_columns=n_columns, n_classes=min(n_classes, 3), spread=2.0)  # the fourth class has no rows
    decided = np.where(np.arange(150) < 10, -1, y[:150])
    as_given = scipy.sparse.csr_array if sparse else np.asarray
    model = fitted(as_given(X[:150]), decided, n_classes)
    others = as_given(X[150:])
    assert (model.predict(others) == model.classes[y[150:]]).mean() > 0.9
    np.testing.assert_allclose(model.predict_proba(others).sum(axis=1), 1, rtol=1e-12)
    model.save(tmp_path)
    assert json.loads((tmp_path / "model.json").read_text()) == {"kind": "vectors-pooled", "n_classes": n_classes}
    again = load_model(tmp_path, model.classes, None)
    np.testing.assert_array_equal(again.predict_proba(others), model.predict_proba(others))
    with pytest.raises(DataError, match=rf"features must have {n_columns} columns\. Got 7 instead\."):
        again.predict(np.zeros((2, 7)))
    assert again.predict_proba(np.empty((0, n_columns))).shape == (0, n_classes)


def test_more_rows_than_are_judged_at_once(monkeypatch):
    X, y = blobs(n=60)
    model = fitted(X, y)
    expected = model.predict_proba(X)
    monkeypatch.setattr("labelmend.models.vectors.MOST_AT_ONCE", 7)
    np.testing.assert_allclose(model.predict_proba(X), expected, rtol=1e-4)


def test_a_damaged_fitted_model_is_refused(tmp_path):
    X, y = blobs()
    model = fitted(X, y)
    model.save(tmp_path)
    kept = {name: value for name, value in load_file(tmp_path / "model.safetensors").items() if "ridge" not in name}
    save_file(kept, tmp_path / "model.safetensors")
    with pytest.raises(RunFolderError, match="must hold the weights of its net"):
        load_model(tmp_path, model.classes, None)
