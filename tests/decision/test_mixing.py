"""Mixing: pairs of near rows with different labels, against chance."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.neighbors import NearestNeighbors

import reference
from labelmend.decision import joining as stage
from labelmend.decision.joining import Space, best_space, cut, mixing, random_partition


def space_of(points, rows=None):
    near = NearestNeighbors(n_neighbors=min(stage.NEAREST, len(points) - 1)).fit(points)
    return Space(
        np.arange(len(points)) if rows is None else rows, points, near.kneighbors(return_distance=False), "ranks"
    )


def clouds(n=120, n_classes=3, distance=8.0, seed=0):
    rng = np.random.default_rng(seed)
    true = np.arange(n) % n_classes
    return rng.normal(size=(n, 4)) + distance * np.eye(n_classes, 4)[true], true


def test_different_pairs_are_counted_as_the_definition_says():
    points, _ = clouds(distance=1.0)
    points[5] = points[4]
    space, labels = space_of(points), np.random.default_rng(1).integers(0, 3, 120)
    assert cut(labels, space.near, space.apart) == pytest.approx(reference.different_pairs(labels, points, space.near))


def test_mixing_is_that_share_over_the_mean_of_random_partitions():
    points, true = clouds(distance=1.5)
    space = space_of(points)
    rng = np.random.default_rng(0)
    u, s, _ = np.linalg.svd(points - points.mean(axis=0), full_matrices=False)
    sizes = np.bincount(true).astype(float)
    partitions = [random_partition(u * s @ rng.normal(size=(4, 3)), sizes) for _ in range(stage.PARTITIONS)]
    chance = np.mean([reference.different_pairs(found, points, space.near) for found in partitions])
    expected = reference.different_pairs(true, points, space.near) / chance
    assert mixing(true, true, space) == pytest.approx(expected)


def test_classes_apart_do_not_mix_and_random_labels_mix_more_than_partitions():
    points, true = clouds()
    space = space_of(points)
    assert mixing(true, true, space) == 0
    assert mixing(np.random.default_rng(0).permutation(true), true, space) > 1


def test_it_proves_nothing_where_a_class_vanished_or_most_neighbours_are_duplicates():
    points, true = clouds()
    gone = np.where(true == 2, 0, true)
    assert mixing(gone, true, space_of(points)) == float("inf")
    assert mixing(gone, gone, space_of(points)) < float("inf")
    same = np.repeat(points[:10], 12, axis=0)
    assert mixing(np.repeat(true[:10], 12), np.repeat(true[:10], 12), space_of(same)) == float("inf")


def test_a_random_partition_has_the_sizes_asked_for():
    scores = np.random.default_rng(0).normal(size=(1000, 3)) * [1, 5, 2]
    found = np.bincount(random_partition(scores, np.array([700.0, 200, 100])), minlength=3)
    np.testing.assert_allclose(found, [700, 200, 100], atol=25)


def test_only_labelled_rows_are_looked_at_and_the_space_is_the_one_where_neighbours_meet_the_labels():
    points, true = clouds(90)
    given = true.copy()
    given[:30] = -1
    space = best_space(points.astype(np.float32), points, given)
    assert_array_equal(space.rows, np.arange(30, 90))
    assert space.name == "ranks", "where all are as good, ranks"
    # One column decides and is small among large ones of nothing but noise: standardised it is seen, raw it is not.
    rng = np.random.default_rng(0)
    raw = np.column_stack([0.001 * true, 100 * rng.normal(size=(90, 3))])
    assert best_space(raw, rng.normal(size=(90, 2)), true).name == "standardised"
    # Directions tell, lengths do not.
    axes = rng.normal(size=(3, 8))[true] + 0.7 * rng.normal(size=(90, 8))
    rays = np.exp(3 * rng.normal(size=(90, 1))) * axes * rng.choice([-1, 1], size=(90, 1))
    rays = np.concatenate([rays, -rays])  # around nought
    assert best_space(rays, rng.normal(size=(180, 2)), np.tile(true, 2)).name == "unit length"


def test_many_rows_are_looked_at_in_part(monkeypatch):
    monkeypatch.setattr(stage, "LOOKED_AT", 50)
    points, true = clouds(120)
    space = best_space(points, points, true)
    assert len(space.rows) == len(space.points) == len(space.near) == 50
    assert space.near.max() < 50
    assert mixing(true, true, space) == 0
