import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import reference
from labelmend.ensemble.graphs import normalize_rows
from labelmend.ensemble.split import split_into_packages
from strategies import labelled_features


def split(features, labels, n_branches, packages, seed=0, n_classes=3):
    rows = normalize_rows(torch.as_tensor(features, dtype=torch.float64))
    generator = torch.Generator().manual_seed(seed)
    return split_into_packages(rows, torch.as_tensor(labels), n_classes, n_branches, packages, generator)


def circle(degrees):
    angles = np.deg2rad(degrees)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


@pytest.mark.parametrize("seed", range(5))
def test_two_clusters_of_a_class_become_two_packages_in_two_branches(seed):
    got = split(circle([0, 90, 2, 88, 1, 91]), [0] * 6, n_branches=2, packages=1, seed=seed)
    package, branch = got.package_of.tolist(), got.branch_of.tolist()
    assert package[0] == package[2] == package[4] != package[1] == package[3] == package[5]
    assert branch[0] != branch[1]


def test_similarity_is_the_mean_cosine_to_the_seed_sample_with_the_seed_counted_as_one():
    got = split(circle([0, 60]), [0, 0], n_branches=1, packages=1)
    assert got.similarity == pytest.approx((1 + 0.5) / 2, abs=1e-12)


@given(labelled_features(), st.integers(1, 4), st.integers(1, 3), st.integers(0, 9))
def test_every_split_is_a_partition_into_local_packages_dealt_evenly(data, n_branches, packages, seed):
    features, labels = data
    got = split(features, labels, n_branches, packages, seed)
    package_of, seeds = got.package_of.numpy(), got.seed_indices.numpy()
    reference.check_split(got.branch_of.numpy(), package_of, seeds, labels, n_branches, packages)
    reference.check_packages_are_local(features, package_of, seeds, labels)
    np.testing.assert_allclose(
        got.similarity, reference.package_similarity(features, package_of, seeds), rtol=0, atol=1e-9
    )


@given(labelled_features(), st.integers(1, 4))
def test_members_of_the_branches_are_all_labelled_samples_once(data, n_branches):
    features, labels = data
    got = split(features, labels, n_branches, packages=2)
    members = torch.cat([got.members(m) for m in range(n_branches)])
    np.testing.assert_array_equal(np.sort(members.numpy()), np.flatnonzero(labels >= 0))


def test_exact_duplicates_still_leave_every_seed_sample_in_its_own_package():
    labels = np.zeros(20, dtype=np.int64)
    got = split(np.ones((20, 3)), labels, n_branches=2, packages=3)
    seeds = got.seed_indices.numpy()
    reference.check_split(got.branch_of.numpy(), got.package_of.numpy(), seeds, labels, M=2, B=3)
    assert len(np.unique(seeds)) == 6


def test_a_class_smaller_than_the_number_of_packages_gets_packages_of_one():
    got = split(circle([0, 10, 20]), [1, 1, 1], n_branches=2, packages=4)
    assert sorted(got.package_of.tolist()) == [0, 1, 2]
    assert sorted(torch.bincount(got.branch_of, minlength=2).tolist()) == [1, 2]
    assert got.similarity == 1.0


def test_a_class_smaller_than_the_number_of_branches_does_not_always_land_in_the_first_ones():
    branches = {int(split(circle([5]), [2], n_branches=3, packages=1, seed=seed).branch_of) for seed in range(30)}
    assert branches == {0, 1, 2}


def test_seed_samples_and_the_branches_of_packages_are_drawn_at_random():
    splits = [split(circle(range(8)), [0] * 8, n_branches=2, packages=2, seed=seed) for seed in range(30)]
    assert {int(got.seed_indices[0]) for got in splits} == set(range(8))
    assert len({tuple(got.branch_of[got.seed_indices].tolist()) for got in splits}) == 6, "two of four packages each"


def test_a_missing_class_and_unlabelled_samples_take_no_part():
    got = split(circle([0, 10, 20, 30]), [0, -1, 2, -1], n_branches=1, packages=1)
    assert got.package_of.tolist() == [0, -1, 1, -1]
    assert got.branch_of.tolist() == [0, -1, 0, -1]
    assert got.seed_indices.tolist() == [0, 2]


def test_without_any_label_there_are_no_packages():
    got = split(circle([0, 10]), [-1, -1], n_branches=2, packages=2)
    assert got.seed_indices.tolist() == []
    assert got.members(0).tolist() == []
    assert got.similarity == 0.0


def test_the_generator_decides_the_split():
    features, labels = np.random.default_rng(0).normal(size=(60, 4)), np.arange(60) % 3
    first, again, other = (split(features, labels, 3, 2, seed) for seed in (1, 1, 2))
    torch.testing.assert_close(first.package_of, again.package_of)
    torch.testing.assert_close(first.branch_of, again.branch_of)
    assert (first.branch_of != other.branch_of).any()


def test_fewer_packages_make_larger_neighbourhoods_stay_together():
    features, labels = circle(np.arange(0, 80)), np.zeros(80, dtype=np.int64)

    def neighbours_in_one_branch(packages):
        branch = split(features, labels, 2, packages).branch_of
        return float((branch[1:] == branch[:-1]).double().mean())

    assert neighbours_in_one_branch(1) > 0.9
    assert neighbours_in_one_branch(40) < 0.7
