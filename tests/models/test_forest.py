import numpy as np
import pytest
import torch
from sklearn.ensemble import ExtraTreesClassifier

from labelmend.models.pooled import Forest, Tree


def forest_of(model):
    trees = [each.tree_ for each in model.estimators_]
    return Forest.of(
        [Tree(t.feature, t.threshold, t.children_left, t.children_right, t.value[:, 0, :] / len(trees)) for t in trees]
    )


@pytest.mark.parametrize("n_classes", [1, 2, 7])
def test_answers_are_those_of_scikit_learn(n_classes):
    random = np.random.default_rng(0)
    rows = random.normal(size=(200, 6)).astype(np.float32)
    model = ExtraTreesClassifier(15, min_samples_leaf=2, random_state=0).fit(rows, np.arange(200) % n_classes)
    forest = forest_of(model)
    others = np.concatenate([rows, 3 * random.normal(size=(50, 6)).astype(np.float32)])
    np.testing.assert_allclose(forest(torch.from_numpy(others)), model.predict_proba(others), atol=1e-6)
    assert forest.steps == max(each.tree_.max_depth for each in model.estimators_)


def test_rows_at_a_threshold_go_where_they_went_in_double_precision():
    between = 1 + 2.0**-30  # no float32 number: 1 is below, the next one above
    values = np.array([[0.0], [1.0], [2.0]])
    tree = Tree(
        np.array([0, -2, -2]), np.array([between, -2, -2]), np.array([1, -1, -1]), np.array([2, -1, -1]), values
    )
    rows = torch.tensor([[1.0], [np.nextafter(np.float32(1), np.float32(2))]])
    assert Forest.of([tree])(rows).ravel().tolist() == [1.0, 2.0]


def test_it_is_built_again_from_its_tensors():
    rows = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
    forest = forest_of(ExtraTreesClassifier(5, random_state=0).fit(rows, np.arange(50) % 3))
    again = Forest(**forest.state_dict())
    assert again.steps == forest.steps
    torch.testing.assert_close(again(torch.from_numpy(rows)), forest(torch.from_numpy(rows)), rtol=0, atol=0)
