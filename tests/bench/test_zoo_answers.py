from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from zoo_stub import nearest_mean, result_for

from bench.zoo import answers


def test_parts_are_read_from_the_evidence():
    given = np.array([0, 0, 1, 1, 2])
    pool = np.array([0, 1, 1, 1, 2])
    proposals = np.array([1, 1, 0, 1, 0])  # rows 0, 2 and 4 are disputed
    probs = np.array([[0.2, 0.8, 0], [0, 1, 0], [0.4, 0.6, 0], [0, 1, 0], [0.6, 0, 0.4]])
    found = answers.parts(None, given, result_for(given, pool, proposals, probs, pool), {"adopted": 0}, 0, "auto")
    assert {name: labels.tolist() for name, labels in found.items()} == {
        "pool": [0, 1, 1, 1, 2],
        "ensemble": [1, 1, 0, 1, 0],
        "best_guess": [1, 1, 1, 1, 0],
        "everything": [1, 1, 0, 1, 0],
        "preferred": [1, 1, 1, 1, 0],
    }


@pytest.mark.parametrize(
    ("adopted", "classes", "runs"), [(0, "overlapping", 0), (3, "apart", 1), (0, "cannot tell", 1)]
)
def test_without_evidence_the_pool_alone_is_a_second_run_only_where_it_differs(adopted, classes, runs, monkeypatch):
    calls = []

    def correct(X, y, seed, assume):
        calls.append(assume)
        return nearest_mean(X, y)

    monkeypatch.setattr(answers, "correct", correct)
    given, probs = np.array([0, 1, 0, 1]), np.full((4, 2), 0.5)
    result = result_for(given, given, 1 - given, probs, given, evidence=None)
    features = np.array([[0.0], [9.0], [0.1], [9.1]])
    found = answers.parts(features, given, result, {"adopted": adopted, "classes": classes}, 0, "auto")
    assert calls == ["overlapping"] * runs
    assert found["pool"].tolist() == given.tolist()
    assert found["ensemble"].tolist() == (1 - given).tolist()  # of the votes
    assert found["everything"].tolist() == (1 - given).tolist()
    assert set(found) == {"pool", "ensemble", "everything"}


def test_rows_without_suggestions_keep_their_label_and_nothing_is_read_from_a_bare_result():
    votes = csr_matrix(np.array([[0, 0], [0.2, 0.8], [0, 0]]))
    assert answers.voted(votes, np.array([1, 0, 0])).tolist() == [1, 1, 0]
    bare = SimpleNamespace()
    assert answers.read_verdict(bare, 3) == {}
    assert answers.read_interval(bare) is None


def test_a_mixing_that_proves_nothing_is_none():
    given, probs = np.array([0, 1]), np.full((2, 2), 0.5)
    result = result_for(given, given, 1 - given, probs, given)
    result.verdict.mixing = np.inf
    verdict = answers.read_verdict(result, 2)
    assert (verdict["mixing"], verdict["disputed"], verdict["linear"]) == (None, 1.0, 0.9)


def test_a_class_that_no_label_names_does_not_shift_the_others(monkeypatch):
    monkeypatch.setattr(answers, "correct", nearest_mean)
    rng = np.random.default_rng(0)
    given = np.repeat([1, 3], 20)
    found = answers.ask(rng.normal(size=(40, 2)) + given[:, None], given, 0, "auto")
    assert set(np.unique(np.concatenate(list(found.labels.values())))) == {1, 3}
