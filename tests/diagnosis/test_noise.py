import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_digits

from labelmend.diagnosis import noise
from strategies import label_arrays

RATES = st.sampled_from([0.0, 0.1, 0.25, 0.5, 1.0])
DIGITS, DIGIT_LABELS = (part[:500] for part in load_digits(return_X_y=True))


def random_probabilities(n, n_classes, seed=0):
    return np.random.default_rng(seed).dirichlet(np.ones(n_classes), size=n)


def generators(labels, rate, seed=0, n_classes=3):
    """Every kind of noise that draws at random, by name."""
    n = len(labels)
    features = np.random.default_rng(99).normal(size=(n, 2))
    probabilities = random_probabilities(n, n_classes)
    return {
        "symmetric": lambda: noise.symmetric(labels, rate, n_classes, np.random.default_rng(seed)),
        "asymmetric": lambda: noise.asymmetric(labels, rate, {0: 1, 1: 2}, np.random.default_rng(seed)),
        "random": lambda: noise.random(labels, rate, n_classes, np.random.default_rng(seed)),
        "both": lambda: noise.both(labels, rate, probabilities, np.random.default_rng(seed)),
        "patch": lambda: noise.patch(labels, rate, features, np.random.default_rng(seed)),
    }


ALL = tuple(generators(np.zeros(3, dtype=int), 0.0))


@given(label_arrays(st.integers(1, 40), 4, unlabelled=False), RATES, st.integers(0, 9))
def test_random_noise_gives_exactly_its_share_another_class(labels, rate, seed):
    noisy = noise.random(labels, rate, 4, np.random.default_rng(seed))
    assert (noisy != labels).sum() == round(rate * len(labels))
    assert set(noisy) <= set(range(4))


def test_random_noise_reaches_every_other_class_alike():
    noisy = noise.random(np.ones(9000, dtype=int), 1.0, 4, np.random.default_rng(0))
    np.testing.assert_allclose(np.bincount(noisy, minlength=4) / 9000, [1 / 3, 0, 1 / 3, 1 / 3], rtol=0, atol=0.03)


def test_symmetric_noise_draws_the_true_class_too():
    labels = np.arange(20_000) % 10
    noisy = noise.symmetric(labels, 0.5, 10, np.random.default_rng(0))
    np.testing.assert_allclose((noisy != labels).mean(), 0.45, rtol=0, atol=0.01)
    redrawn = noise.symmetric(np.zeros(20_000, dtype=int), 1.0, 10, np.random.default_rng(0))
    np.testing.assert_allclose(np.bincount(redrawn) / 20_000, 0.1, rtol=0, atol=0.01)


def test_asymmetric_noise_moves_the_share_of_every_mapped_class_to_its_target_only():
    labels = np.repeat(np.arange(10), 50)
    noisy = noise.asymmetric(labels, 0.4, noise.CIFAR10_ASYMMETRIC, np.random.default_rng(0))
    for source in range(10):
        moved = noisy[(labels == source) & (noisy != labels)]
        assert len(moved) == (20 if source in noise.CIFAR10_ASYMMETRIC else 0)
        assert (moved == noise.CIFAR10_ASYMMETRIC.get(source)).all()


def test_asymmetric_noise_between_two_classes_swaps_and_does_not_chain():
    noisy = noise.asymmetric([0, 0, 1, 1], 1.0, {0: 1, 1: 0}, np.random.default_rng(0))
    assert noisy.tolist() == [1, 1, 0, 0]


def test_confusing_noise_gives_the_smallest_margins_their_rival_class_by_hand():
    probabilities = np.array([[0.9, 0.1, 0.0], [0.5, 0.1, 0.4], [0.4, 0.5, 0.1], [0.0, 0.3, 0.7]])
    # Margins 0.8, 0.1, -0.1 and 0.4: half of the samples are the third and the second.
    assert noise.confusing([0, 0, 0, 2], 0.5, probabilities).tolist() == [0, 2, 1, 2]


@given(label_arrays(st.integers(1, 30), 4, unlabelled=False), RATES, st.integers(0, 9))
def test_confusing_noise_never_gives_the_true_class_and_no_smaller_margin_is_left(labels, rate, seed):
    probabilities = random_probabilities(len(labels), 4, seed)
    noisy = noise.confusing(labels, rate, probabilities)
    flipped = noisy != labels
    assert flipped.sum() == round(rate * len(labels))
    others = np.where(np.eye(4, dtype=bool)[labels], -1, probabilities)
    margin = probabilities[np.arange(len(labels)), labels] - others.max(axis=1)
    assert margin[flipped].max(initial=-2) <= margin[~flipped].min(initial=2)
    np.testing.assert_array_equal(noisy[flipped], others.argmax(axis=1)[flipped])


@given(label_arrays(st.integers(1, 30), 4, unlabelled=False), st.sampled_from([0.1, 0.3, 0.5, 0.8]))
def test_both_adds_random_errors_to_samples_that_are_not_confusing(labels, rate):
    probabilities = random_probabilities(len(labels), 4)
    noisy = noise.both(labels, rate, probabilities, np.random.default_rng(0))
    confusing = noise.confusing(labels, rate, probabilities)
    assert (noisy != labels).sum() == min(2 * round(rate * len(labels)), len(labels))
    np.testing.assert_array_equal(noisy[confusing != labels], confusing[confusing != labels])


def test_patch_noise_by_hand():
    # Class 0 on a line from 0 to 9, class 1 at 20, class 2 at -100: a patch of three neighbours becomes class 1.
    features = np.array([[*range(10), 20, -100]]).T
    labels = np.array([0] * 10 + [1, 2])
    noisy = noise.patch(labels, 3 / 12, features, Choices(4), size=3)
    assert noisy.tolist() == [0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 1, 2]
    noisy = noise.patch(labels, 6 / 12, features, Choices(4, 6), size=3)
    assert noisy.tolist() == [0, 0, 0, 1, 1, 1, 1, 1, 1, 0, 1, 2], "the second patch goes around the first"


class Choices:
    """A random generator that chooses these samples, one after another."""

    def __init__(self, *samples):
        self.samples = list(samples)

    def choice(self, candidates):
        assert self.samples[0] in candidates
        return self.samples.pop(0)


@given(label_arrays(st.integers(8, 60), 3, unlabelled=False), st.sampled_from([0.0, 0.1, 0.3, 0.6, 1.0]))
def test_patch_noise_gives_exactly_its_share_another_class(labels, rate):
    labels[:2] = [0, 1]
    features = np.random.default_rng(1).normal(size=(len(labels), 2))
    noisy = noise.patch(labels, rate, features, np.random.default_rng(0), size=5)
    assert (noisy != labels).sum() == round(rate * len(labels))
    assert set(noisy) <= set(labels)


def test_patch_noise_is_local():
    rng = np.random.default_rng(0)
    noisy = noise.patch(DIGIT_LABELS, 15 / len(DIGITS), DIGITS, rng)
    inside = np.flatnonzero(noisy != DIGIT_LABELS)
    assert len(inside) == 15
    assert len(set(DIGIT_LABELS[inside])) == len(set(noisy[inside])) == 1
    same = np.flatnonzero(DIGIT_LABELS[inside[0]] == DIGIT_LABELS)
    distances = np.linalg.norm(DIGITS[same][:, None] - DIGITS[inside], axis=2)
    patches = [set(same[np.argsort(distances[:, at], kind="stable")[:15]]) for at in range(15)]
    assert set(inside) in patches, "the patch is the nearest neighbourhood of one of its samples"


def test_patch_noise_leaves_neighbours_wrong_together():
    noisy = noise.patch(DIGIT_LABELS, 0.2, DIGITS, np.random.default_rng(0))
    scattered = noise.random(DIGIT_LABELS, 0.2, 10, np.random.default_rng(0))

    def nearest_is_wrong_too(labels):
        wrong = np.flatnonzero(labels != DIGIT_LABELS)
        distances = np.linalg.norm(DIGITS[wrong][:, None] - DIGITS[None], axis=2)
        distances[np.arange(len(wrong)), wrong] = np.inf
        nearest = distances.argmin(axis=1)
        return (labels[nearest] != DIGIT_LABELS[nearest]).mean()

    assert nearest_is_wrong_too(noisy) > 0.6
    assert nearest_is_wrong_too(scattered) < 0.3


@pytest.mark.parametrize("kind", ALL)
def test_the_generator_decides_the_noise(kind):
    labels = np.arange(120) % 3
    first, again, other = (generators(labels, 0.4, seed)[kind]() for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


@pytest.mark.parametrize("kind", ALL)
def test_the_true_labels_stay_as_they_are(kind):
    labels = np.arange(120) % 3
    noisy = generators(labels, 0.4)[kind]()
    np.testing.assert_array_equal(labels, np.arange(120) % 3)
    assert noisy.dtype == np.int64
    assert (noisy != labels).any()


@pytest.mark.parametrize("kind", ALL)
def test_a_rate_of_zero_changes_nothing(kind):
    labels = np.arange(30) % 3
    np.testing.assert_array_equal(generators(labels, 0.0)[kind](), labels)


def test_forest_probabilities_are_out_of_fold_and_name_the_true_class_mostly():
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 3
    features = np.eye(3)[labels] + 0.3 * rng.normal(size=(60, 3))
    features[0] = np.eye(3)[1]  # a sample of class 0 in the middle of class 1: its own fold must not know it
    probabilities = noise.forest_probabilities(features, labels, seed=0)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=0, atol=1e-9)
    assert (probabilities.argmax(axis=1) == labels).mean() > 0.8
    assert probabilities[0].argmax() == 1


@pytest.mark.parametrize("kind", ["random", "confusing", "patch"])
def test_errors_keep_to_the_samples_that_may_be_changed(kind):
    labels, among = np.arange(120) % 3, np.arange(120) % 4 == 0
    features = np.random.default_rng(99).normal(size=(120, 2))
    generator = {
        "random": lambda rate: noise.random(labels, rate, 3, np.random.default_rng(0), among),
        "confusing": lambda rate: noise.confusing(labels, rate, random_probabilities(120, 3), among),
        "patch": lambda rate: noise.patch(labels, rate, features, np.random.default_rng(0), 4, among),
    }[kind]
    few, many = generator(0.1), generator(0.9)
    assert (few != labels).sum() == 12, "a rate is a share of all samples"
    assert among[few != labels].all()
    np.testing.assert_array_equal(many != labels, among)


def test_the_nearest_rival_by_hand():
    probabilities = np.array([[0.5, 0.1, 0.4], [0.2, 0.7, 0.1]])
    rival, margin = noise.nearest_rival(np.array([0, 0]), probabilities)
    assert rival.tolist() == [2, 1]
    np.testing.assert_allclose(margin, [0.1, -0.5])


def test_a_mixture_plants_every_kind_at_its_own_rate_on_different_samples():
    probabilities = random_probabilities(500, 10)
    rates = {"random": 0.1, "confusing": 0.06, "patch": 0.12}
    noisy = noise.mixture(DIGIT_LABELS, rates, probabilities, DIGITS, np.random.default_rng(0))
    assert (noisy != DIGIT_LABELS).sum() == 50 + 30 + 60
    confusing = noise.confusing(DIGIT_LABELS, 0.06, probabilities)
    changed = confusing != DIGIT_LABELS
    np.testing.assert_array_equal(noisy[changed], confusing[changed])


@pytest.mark.parametrize("kind", ["random", "confusing", "patch"])
def test_a_mixture_of_one_kind_plants_nothing_else(kind):
    noisy = noise.mixture(DIGIT_LABELS, {kind: 0.2}, random_probabilities(500, 10), DIGITS, np.random.default_rng(0))
    assert (noisy != DIGIT_LABELS).sum() == 100
    assert (
        noise.mixture(DIGIT_LABELS, {}, random_probabilities(500, 10), DIGITS, np.random.default_rng(0)) == DIGIT_LABELS
    ).all()
