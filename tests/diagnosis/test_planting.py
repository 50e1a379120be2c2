import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal

from labelmend.diagnosis.planting import KINDS, looks_clean, neighbour_counts, plant, plant_like_suspects, plantable
from labelmend.errors import DataError

N = 200
FEATURES = np.random.default_rng(0).normal(size=(N, 3))
PROBABILITIES = np.random.default_rng(1).dirichlet(np.ones(4), size=N)
LABELS = np.arange(N) % 4
LABELS[::11] = -1
TRUSTED = np.arange(N) % 7 == 0
CLEAN = np.arange(N) % 3 != 0
MAY_CHANGE = plantable(LABELS, TRUSTED, CLEAN, 4)


def planted(kind, share=0.1, seed=0, may_change=MAY_CHANGE):
    return plant(kind, LABELS, may_change, share, FEATURES, PROBABILITIES, np.random.default_rng(seed))


@pytest.mark.parametrize("kind", KINDS)
def test_exactly_the_share_of_the_labelled_gets_another_class_and_only_where_it_may(kind):
    done = planted(kind)
    assert_array_equal(np.flatnonzero(done.labels != LABELS), done.rows)
    assert_array_equal(done.originals, LABELS[done.rows])
    assert len(done.rows) == round(0.1 * (LABELS >= 0).sum())
    assert (done.labels[done.rows] >= 0).all()
    assert CLEAN[done.rows].all()
    assert not TRUSTED[done.rows].any()
    assert (LABELS[done.rows] >= 0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_the_seed_decides(kind):
    one, again, other = planted(kind), planted(kind), planted(kind, seed=1)
    assert_array_equal(one.labels, again.labels)
    assert (one.labels != other.labels).any()


def test_confusing_errors_are_the_nearest_rivals_of_the_samples_nearest_to_a_boundary():
    done = planted("confusing")
    own = PROBABILITIES[np.arange(N), LABELS.clip(min=0)]
    others = PROBABILITIES.copy()
    others[np.arange(N), LABELS.clip(min=0)] = -1
    assert_array_equal(done.labels[done.rows], others.argmax(axis=1)[done.rows])
    margins = np.sort((own - others.max(axis=1))[MAY_CHANGE])
    assert (own - others.max(axis=1))[done.rows].max() <= margins[2 * len(done.rows) - 1]


def test_patches_are_neighbours_that_get_one_class_together():
    line = np.arange(60.0)[:, None]
    labels = np.repeat([0, 1], 30)
    done = plant("patch", labels, np.ones(60, dtype=bool), 0.2, line, np.full((60, 2), 0.5), np.random.default_rng(3))
    assert len(done.rows) == 12
    assert (np.diff(done.rows) == 1).all()
    assert len(set(done.originals)) == 1


def test_mixed_errors_are_a_third_of_each_on_different_samples():
    done = planted("mixed", share=0.15)
    assert len(done.rows) == round(0.15 * (LABELS >= 0).sum())
    alone = {kind: set(planted(kind, share=0.15).rows) for kind in ("random", "confusing", "patch")}
    assert all(set(done.rows) != rows for rows in alone.values())


def test_classes_with_few_samples_and_labels_that_are_missing_or_trusted_are_left_alone():
    labels = np.array([0] * 12 + [1] * 9 + [-1] * 3)
    trusted = np.arange(24) == 0
    assert_array_equal(np.flatnonzero(plantable(labels, trusted, np.ones(24, dtype=bool), 2)), np.arange(1, 12))


def test_at_most_half_of_what_looks_clean_is_planted():
    few = np.zeros(N, dtype=bool)
    few[np.flatnonzero(LABELS >= 0)[:6]] = True
    assert len(planted("random", share=0.5, may_change=few).rows) == 3


def test_without_samples_that_look_clean_nothing_can_be_planted():
    with pytest.raises(DataError, match="Got 0 among"):
        planted("random", may_change=np.zeros(N, dtype=bool))


def test_neighbours_are_counted_by_hand():
    rows = torch.tensor([[1.0, 0.0], [1, 0.1], [1, 0.2], [1, 0.3], [0, 1], [0.1, 1]])
    rows = torch.nn.functional.normalize(rows, dim=1)
    given = torch.tensor([0, 1, 1, -1, 2, 2])
    counts = neighbour_counts(rows, given, torch.tensor([0, 4, 2]), 3, k=2)
    # The nearest of 0 are 1 and 2; of 4 they are 5 and 3, which has no label; of 2 they are 1 and 3.
    assert counts.tolist() == [[0, 2, 0], [0, 0, 1], [0, 1, 0]]


def test_a_sample_looks_clean_where_its_label_is_ahead_of_every_other():
    counts = np.array([[3, 2, 0], [2, 2, 1], [0, 5, 0]])
    assert looks_clean(np.array([0, 0, 0]), counts).tolist() == [True, False, False]


def test_errors_like_suspects_go_where_the_suspects_label_came_from():
    # Neighbours of the suspects (the last five) say class 0, their label is 2: so samples of class 0 become 2.
    labels = np.array([0] * 20 + [1] * 20 + [2] * 20)
    counts = np.zeros((60, 3))
    counts[np.arange(60), labels] = 9
    counts[:20, 2] = np.arange(20) % 4
    counts[55:] = [6, 0, 1]
    done = plant_like_suspects(labels, np.ones(60, dtype=bool), np.arange(60), counts, 4, np.random.default_rng(0))
    assert len(done.rows) == 4
    assert (done.originals == 0).all()
    assert (done.labels[done.rows] == 2).all()
    assert (counts[done.rows, 2] == 1).all(), "the label is as frequent around them as around the suspects"


def test_errors_like_suspects_keep_away_from_what_may_not_change():
    random = np.random.default_rng(0)
    labels = random.integers(3, size=300)
    counts = random.multinomial(10, np.ones(3) / 3, size=300)
    counts[np.arange(300), labels] += 3
    may_change = random.random(300) < 0.5
    asked = np.arange(0, 300, 2)
    done = plant_like_suspects(labels, may_change, asked, counts[asked], 20, np.random.default_rng(1))
    assert len(done.rows) == 20
    assert may_change[done.rows].all()
    assert set(done.rows) <= set(asked)
    assert looks_clean(labels[done.rows], counts[done.rows]).all()
    again = plant_like_suspects(labels, may_change, asked, counts[asked], 20, np.random.default_rng(1))
    assert_array_equal(done.labels, again.labels)


def test_without_suspects_any_other_class_is_planted_in_what_looks_clean():
    labels, rng = np.arange(40) % 4, np.random.default_rng(0)
    counts = 10 * np.eye(4)[labels]
    may_change = np.arange(40) % 2 == 0
    done = plant_like_suspects(labels, may_change, np.arange(40), counts, 6, rng)
    assert len(done.rows) == 6
    assert may_change[done.rows].all()
    assert len(set(zip(done.originals, done.labels[done.rows], strict=True))) > 2
    nothing = plant_like_suspects(labels, np.zeros(40, dtype=bool), np.arange(40), counts, 6, rng)
    assert len(nothing.rows) == 0
