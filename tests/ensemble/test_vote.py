import numpy as np
import pytest
import torch
from hypothesis import given as given_that
from hypothesis import strategies as st

import labelmend.ensemble.vote
import reference
from labelmend.ensemble.vote import stretch, vote
from strategies import suggestions


def count(suggested, omega, given, current, C, fixed=None, percentiles=(0.0, 1.0)):
    fixed = np.zeros(len(given), dtype=bool) if fixed is None else fixed
    suggested, given, current, fixed = map(torch.as_tensor, (suggested, given, current, fixed))
    return vote(suggested, torch.as_tensor(omega, dtype=torch.float64), given, current, C, fixed, percentiles)


def winner(suggested, omega, given=0, current=0, C=4):
    return int(count([suggested], [omega], [given], [current], C).labels)


def test_the_majority_wins_over_certainty():
    assert winner([2, 2, 1], [0.1, 0.1, 1.0]) == 2


def test_a_tie_goes_to_the_larger_sum_of_certainties():
    assert winner([1, 2, 1, 2], [0.25, 0.5, 0.25, 0.5], given=1, current=1) == 2


def test_a_full_tie_goes_to_the_current_label_then_to_the_given_one_then_to_the_lowest_class():
    tied, omega = [3, 2, 1], [0.5, 0.5, 0.5]
    assert winner(tied, omega, given=2, current=3) == 3
    assert winner(tied, omega, given=2, current=0) == 2
    assert winner(tied, omega, given=0, current=0) == 1
    assert winner(tied, omega, given=-1, current=-1) == 1


def test_no_label_is_not_mistaken_for_class_zero_in_a_tie():
    assert winner([0, 1], [0.5, 0.5], given=1, current=-1) == 1


def test_a_current_label_that_is_behind_does_not_win_the_tie_of_others():
    assert winner([3, 3, 2, 2, 1], [0.5] * 5, given=2, current=1) == 2


def test_abstentions_count_for_nobody():
    assert winner([-1, -1, -1, 2], [0.0, 0.0, 0.0, 0.1]) == 2
    assert winner([-1, 0, 2], [0.9, 0.1, 0.2]) == 2


def test_certainty_is_the_agreeing_sum_over_all_suggestions_stretched_by_hand():
    # Raw certainties (0.8 + 0.4) / 3, 0.3 / 3 and 0.6 / 3: low is 0.1, high is 0.4.
    got = count(
        [[0, 0, 1], [1, -1, -1], [1, 1, 1]], [[0.8, 0.4, 0.9], [0.3, 0, 0], [0.2, 0.2, 0.2]], [0] * 3, [0] * 3, 2
    )
    assert got.labels.tolist() == [0, 1, 1]
    np.testing.assert_allclose(got.certainty, [1, 0, 1 / 3], rtol=0, atol=1e-12)


def test_shares_are_counted_over_all_suggestions():
    got = count([[0, 0, 1, -1], [2, 2, 2, 2]], np.ones((2, 4)), [0, 0], [0, 0], 3)
    np.testing.assert_array_equal(got.share.to_dense(), [[0.5, 0.25, 0], [0, 0, 1]])


def test_where_everybody_abstains_the_given_label_stays_with_certainty_zero():
    got = count([[-1, -1], [1, 1]], [[0, 0], [0.5, 0.5]], [2, 0], [1, 0], 3)
    assert got.labels.tolist() == [2, 1]
    assert got.certainty.tolist() == [0, 1]


def test_where_everybody_abstains_everywhere_no_label_is_certain():
    got = count([[-1], [-1], [-1]], np.zeros((3, 1)), [0, 1, -1], [0, 0, 0], 2)
    assert got.labels.tolist() == [0, 1, -1]
    assert got.certainty.tolist() == [0, 0, 0]


def test_an_unlabelled_sample_gets_the_label_voted_for():
    got = count([[1, 1], [-1, -1]], [[0.5, 0.5], [0, 0]], [-1, -1], [-1, -1], 3)
    assert got.labels.tolist() == [1, -1]
    assert got.certainty[1] == 0


def test_equal_certainties_become_ones():
    got = count([[0], [1], [1]], [[0.25], [0.25], [0.25]], [0, 0, 0], [0, 0, 0], 2)
    assert got.certainty.tolist() == [1, 1, 1]


def test_trusted_samples_keep_their_label_with_certainty_one_and_do_not_set_the_scale():
    fixed = np.array([True, False, False, True])
    got = count([[1], [1], [1], [-1]], [[1.0], [0.5], [0.25], [0.0]], [0, 0, 0, 2], [0, 0, 0, 1], 3, fixed)
    assert got.labels.tolist() == [0, 1, 1, 2]
    assert got.certainty.tolist() == [1, 1, 0, 1]


def test_a_trusted_sample_without_a_label_stays_without_certainty():
    got = count([[1], [1]], [[0.5], [0.5]], [-1, 0], [-1, 0], 2, np.array([True, False]))
    assert got.labels.tolist() == [-1, 1]
    assert got.certainty.tolist() == [0, 1]


def test_percentiles_clip_an_outlier():
    raw = torch.tensor([0.0, 0.4, 0.5, 0.6, 1.0], dtype=torch.float64)
    got = stretch(raw, torch.ones(5, dtype=torch.bool), (0.25, 0.75))
    np.testing.assert_allclose(got, [0, 0, 0.5, 1, 1], rtol=0, atol=1e-12)


def test_stretching_without_counted_samples_gives_ones():
    assert stretch(torch.tensor([0.2, 0.7]), torch.tensor([False, False]), (0.0, 1.0)).tolist() == [1, 1]


@given_that(suggestions(), st.sampled_from([(0.0, 1.0), (0.2, 0.8)]))
def test_vote_is_that_of_the_reference(arguments, percentiles):
    got = count(**arguments, percentiles=percentiles)
    labels, omega = reference.vote(**arguments, percentiles=percentiles)
    np.testing.assert_array_equal(got.labels, labels)
    np.testing.assert_allclose(got.certainty, omega, rtol=0, atol=1e-12)


@given_that(suggestions(), st.randoms(use_true_random=False))
def test_the_order_of_the_suggestions_does_not_matter(arguments, random):
    order = random.sample(range(arguments["suggested"].shape[1]), arguments["suggested"].shape[1])
    shuffled = {**arguments, "suggested": arguments["suggested"][:, order], "omega": arguments["omega"][:, order]}
    first, second = count(**arguments), count(**shuffled)
    torch.testing.assert_close(first.labels, second.labels)
    torch.testing.assert_close(first.certainty, second.certainty, rtol=0, atol=1e-12)


@given_that(suggestions())
def test_shares_are_the_counts_of_the_suggestions(arguments):
    suggested = arguments["suggested"]
    counts = np.stack([(suggested == c).sum(axis=1) for c in range(3)], axis=1)
    np.testing.assert_allclose(count(**arguments).share.to_dense(), counts / suggested.shape[1], rtol=0, atol=1e-12)


@pytest.mark.parametrize("rows_at_once", [1, 3])
def test_blocks_of_rows_give_the_same_vote(monkeypatch, rows_at_once):
    rng = np.random.default_rng(0)
    labels = rng.integers(4, size=(2, 10))
    arguments = (rng.integers(-1, 4, size=(10, 6)), rng.random((10, 6)), labels[0], labels[1], 4)
    whole = count(*arguments)
    monkeypatch.setattr(labelmend.ensemble.vote, "BLOCK_ENTRIES", 4 * rows_at_once)
    blocked = count(*arguments)
    torch.testing.assert_close(blocked.labels, whole.labels)
    torch.testing.assert_close(blocked.certainty, whole.certainty)
    torch.testing.assert_close(blocked.share.to_dense(), whole.share.to_dense())
