import numpy as np
import pytest
import torch

from blobs import blobs, plant
from labelmend.evidence.preparation import fit_preparation
from labelmend.models.fit import fit_classifier

torch.set_num_threads(1)


def fitted(X, decided, n_classes=3, seed=0):
    columns = X.astype(np.float32)
    return fit_classifier(columns, fit_preparation(columns), decided, n_classes, seed)


def probabilities(classifier, X):
    with torch.inference_mode():
        return classifier(torch.from_numpy(X.astype(np.float32))).double().softmax(dim=1).numpy()


def halves(n=300, **named):
    X, y = blobs(n=2 * n, **named)
    return X[:n], y[:n], X[n:], y[n:]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_new_rows_are_told_and_the_probabilities_are_calibrated(n_classes):
    X, y, others, true = halves(n_classes=n_classes, spread=3.0)
    found = probabilities(fitted(X, y, n_classes), others)
    right = found.argmax(axis=1) == true
    assert right.mean() > 0.85
    assert found.max(axis=1).mean() == pytest.approx(right.mean(), abs=0.05)
    np.testing.assert_allclose(found.sum(axis=1), 1)


def test_rows_without_a_label_teach_nothing():
    X, y, others, _ = halves(n=60)
    unlabelled = np.concatenate([y[:40], np.full(20, -1)])
    columns = X.astype(np.float32)
    known = fit_preparation(columns)
    with_them = fit_classifier(columns, known, unlabelled, 3, 0)
    without = fit_classifier(columns[:40], known, y[:40], 3, 0)
    np.testing.assert_array_equal(probabilities(with_them, others), probabilities(without, others))


def test_a_class_without_rows_is_never_named():
    X, y, others, true = halves(n=60)
    found = probabilities(fitted(X, 2 * y, 6), others)
    np.testing.assert_array_equal(found.argmax(axis=1), 2 * true)
    assert found[:, [1, 3, 5]].max() < 1e-6


def test_one_class_alone():
    X, y, others, _ = halves(n=20)
    found = probabilities(fitted(X, np.zeros_like(y), 2), others)
    assert (found.argmax(axis=1) == 0).all()


@pytest.mark.parametrize("n", [5, 8])
def test_a_handful_of_rows(n):
    X, y = blobs(n=n, n_classes=2)
    found = probabilities(fitted(X, y, 2), X)
    assert np.isfinite(found).all()


def test_copies_do_not_make_it_sure_of_wrong_labels():
    X, y, others, true = halves(n=150, spread=2.0)
    given, _ = plant(y, 0.3)
    found = probabilities(fitted(np.vstack([X, X]), np.concatenate([given, given])), others)
    assert (found.argmax(axis=1) == true).mean() > 0.9
    assert found.max(axis=1).mean() < 0.85


def test_the_same_seed_gives_the_same_numbers():
    X, y, others, _ = halves(n=60, spread=3.0)
    np.testing.assert_array_equal(*(probabilities(fitted(X, y), others) for _ in range(2)))


def test_many_rows_have_a_net_too_which_is_weighed_by_rows_it_has_not_seen(monkeypatch):
    monkeypatch.setattr("labelmend.models.fit.NET_ROWS", 100)
    X, y, others, true = halves(n=400, spread=3.0)
    given, _ = plant(y, 0.2)
    classifier = fitted(X, given)
    assert classifier.net is not None
    found = probabilities(classifier, others)
    assert (found.argmax(axis=1) == true).mean() > 0.85
    assert found.max(axis=1).mean() < 0.9
    np.testing.assert_array_equal(probabilities(fitted(X, given), others), found)


def test_a_class_that_only_other_rows_have_than_the_net_is_weighed_by_is_known(monkeypatch):
    monkeypatch.setattr("labelmend.models.fit.NET_ROWS", 20)
    X, y, _, _ = halves(n=40, n_classes=2)
    decided = y.copy()
    decided[0], X[0] = 2, 50.0
    assert probabilities(fitted(X, decided), X)[0, 2] > 1e-4  # an unknown class has e^-30
