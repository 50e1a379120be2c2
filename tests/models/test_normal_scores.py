import numpy as np
import pytest
import torch

from labelmend.evidence.preparation import fit_preparation
from labelmend.models.pooled import NormalScores


def layer_of(known):
    return NormalScores.of(known.columns, known.starts, known.values, known.scores, known.components)


def by_layer(known, matrix):
    return layer_of(known)(torch.from_numpy(matrix)).numpy()


@pytest.mark.parametrize("n", [7, 300, 2000])  # 2000: of more distinct values than a column has knots
def test_columns_of_all_kinds_come_out_as_the_preparation_brings_them(n):
    random = np.random.default_rng(0)
    columns = [
        random.normal(size=n),
        np.exp(4 * random.normal(size=n)),
        random.integers(0, 3, n),
        np.full(n, 7.0),
        1e6 + random.normal(size=n),
        (random.uniform(size=n) < 0.3),
    ]
    matrix = np.column_stack(columns).astype(np.float32)
    known = fit_preparation(matrix)
    others = (matrix[random.permutation(n)] + random.normal(size=matrix.shape)).astype(np.float32)
    far = np.float32(1e30) * random.choice([-1, 1], size=(5, matrix.shape[1])).astype(np.float32)
    for rows in (matrix, others, far):
        np.testing.assert_allclose(by_layer(known, rows), known(rows), atol=2e-5)


def test_wide_rows_end_in_principal_components():
    random = np.random.default_rng(0)
    matrix = (random.normal(size=(60, 20)) @ random.normal(size=(20, 300))).astype(np.float32)
    known = fit_preparation(matrix)
    assert known.components is not None
    np.testing.assert_allclose(by_layer(known, matrix), known(matrix), atol=1e-4)


def test_values_at_the_ends_of_float32():
    matrix = np.array([[3.4e38, 0.0], [-3.4e38, 1e-45], [0.0, 1e-40], [1.0, 1.0]], np.float32)
    known = fit_preparation(matrix)
    found = by_layer(known, matrix)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found[:, 0], known(matrix)[:, 0], atol=1e-4)


def test_it_is_built_again_from_its_tensors():
    matrix = np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32)
    layer = layer_of(fit_preparation(matrix))
    again = NormalScores(**layer.state_dict())
    torch.testing.assert_close(again(torch.from_numpy(matrix)), layer(torch.from_numpy(matrix)), rtol=0, atol=0)
