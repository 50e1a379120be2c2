from pathlib import Path

import numpy as np
from numpy.testing import assert_array_equal

from labelmend.cli import demo_data


def test_clothes_are_small_balanced_and_licensed():
    source = demo_data.clothes()
    assert source.pictures.shape == (3000, 14, 14)
    assert source.pictures.dtype == np.uint8
    assert_array_equal(np.bincount(source.true_labels), [375] * 8)
    assert len(source.class_names) == 8
    folder = Path(demo_data.__file__).parent
    assert (folder / "clothes.npz").stat().st_size < 700_000
    assert "2017 Zalando SE" in (folder / "clothes.LICENSE").read_text(encoding="utf-8")


def test_the_demo_plants_a_fifth_of_errors_among_the_pictures():
    data = demo_data.clothes_with_errors(seed=0, n_rows=200)
    assert data.features.shape == (200, 196)
    assert data.features.min() >= 0
    assert 0.9 < data.features.max() <= 1
    assert (data.given_labels != data.true_labels).sum() == 40
    assert_array_equal(data.true_labels, demo_data.clothes().true_labels[:200])
