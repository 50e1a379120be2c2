import json

import numpy as np
import pytest
import scipy.stats
from made_outputs import by_hand, clusters, outputs_of
from numpy.testing import assert_allclose
from test_kinds import plant

from labelmend.diagnosis import profile
from labelmend.diagnosis.profile import (
    NO_ERRORS,
    TOO_FEW,
    NoiseProfile,
    kinds_text,
    noise_profile,
    profile_from,
    rate_text,
    sentences,
)
from labelmend.diagnosis.reliability import jeffreys


def made(kind="random", count=180, seed=0):
    true, at, near, shares = clusters(seed=seed)
    given = plant(kind, true, at, count, np.random.default_rng(seed)) if count else true.copy()
    outputs = outputs_of(true, near, shares, given)
    return noise_profile(outputs, np.random.default_rng(0)), true, given


def test_rate_classes_and_pairs_hold_what_was_planted():
    found, true, given = made()
    rate = (true != given).mean()
    assert found.rate.low <= rate <= found.rate.high
    assert found.rate.value == pytest.approx(rate, abs=0.02)
    assert found.labelled == len(true)
    assert found.suspects == (true != given).sum()
    for entry in found.classes:
        members = given == entry.name
        assert entry.labels == members.sum()
        assert entry.wrong.low <= (true[members] != entry.name).mean() <= entry.wrong.high
    for pair in found.pairs:
        count = ((given == pair.given) & (true == pair.true)).sum()
        assert pair.count.low <= count <= pair.count.high
    sizes = [pair.count.value for pair in found.pairs]
    assert sizes == sorted(sizes, reverse=True)


def test_transition_intervals_hold_the_planted_ones_and_are_in_order():
    found, true, given = made()
    counts = np.zeros((4, 4))
    np.add.at(counts, (true, given), 1)
    truth = counts / counts.sum(axis=1, keepdims=True)
    assert (found.transition_low <= truth).all()
    assert (truth <= found.transition_high).all()


def test_expected_counts_are_sums_of_the_posterior():
    outputs = by_hand([0, 0, 1], [0, 0, 1], np.full((3, 2), 0.5), posterior=[[0.9, 0.1], [0.4, 0.6], [0.2, 0.8]])
    outputs = type(outputs)(**{**vars(outputs), "posterior": np.array(outputs.posterior)})
    assert_allclose(profile._expected_counts(outputs, np.arange(3)), [[1.3, 0.7], [0.2, 0.8]])


def test_ends_are_quantiles_of_jeffreys_posterior_and_less_than_one_may_be_none():
    low, high = jeffreys(np.array([3.0, 0.4]), np.array([20.0, 20.0]))
    exact = scipy.stats.beta(3.5, 17.5)
    assert_allclose([low[0], high[0]], [exact.ppf(0.05), exact.ppf(0.95)], rtol=1e-9)
    assert low[1] == 0
    assert 0 < high[1] < 0.2


def test_clean_labels_have_no_kind_and_the_words_say_so():
    found, _, _ = made(count=0)
    assert found.clean
    assert found.suspects == 0
    assert found.kinds is None
    assert found.kind is None
    assert found.rate.high < 0.01
    assert sentences(found) == [NO_ERRORS]


def test_few_errors_have_no_kind_but_a_rate():
    found, _, _ = made(count=15)
    assert found.kinds is None
    assert not found.clean
    assert sentences(found) == [TOO_FEW]
    assert kinds_text(found) == "unknown: too few errors"


@pytest.mark.parametrize(
    ("kind", "words"), [("random", "spread"), ("confusing", "borders"), ("patch", "neighbourhood")]
)
def test_words_name_the_kind_its_pairs_and_what_to_do(kind, words):
    found, _, _ = made(kind)
    said = " ".join(sentences(found.named(["cat", "dog", "owl", "ant"])))
    assert words in said
    assert (" given as " in said) == (kind != "random")
    assert kinds_text(found).startswith(("mostly " + kind, kind))
    assert " to " in rate_text(found.rate)


def test_a_profile_comes_back_from_json():
    found = made("patch")[0].named(["cat", "dog", "owl", "ant"])
    read = profile_from(json.loads(json.dumps(found.plain())), *found.ends().values())
    assert isinstance(read, NoiseProfile)
    assert read.plain() == found.plain()
    assert read.kind == "patch"
    assert_allclose(read.transition_low, found.transition_low)


def test_trusted_and_missing_labels_are_not_counted():
    true, at, near, shares = clusters()
    given = plant("random", true, at, 100, np.random.default_rng(0))
    outputs = outputs_of(true, near, shares, given)
    given = given.copy()
    given[:10] = -1
    fixed = np.zeros(len(given), dtype=bool)
    fixed[10:30] = True
    outputs = type(outputs)(**{**vars(outputs), "given": given, "fixed": fixed})
    found = noise_profile(outputs, np.random.default_rng(0))
    assert found.labelled == len(given) - 30
    assert found.suspects == (given[30:] != true[30:]).sum()
    assert sum(entry.labels for entry in found.classes) == found.labelled
