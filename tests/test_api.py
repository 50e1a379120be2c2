import copy

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
import torch
from torch import nn

import labelmend
from blobs import QUICK, blobs, plant
from labelmend.config import BRANCH_LOSSES, as_arguments
from labelmend.ensemble.nets import MLP
from labelmend.errors import ConfigError, DataError, LabelmendWarning

STATUS = {"kept", "corrected", "review", "filled"}


def quick(X, y, **changes):
    return labelmend.correct(X, y, **as_arguments({**QUICK, **changes}))


def check_sane(result, n, n_classes):
    """What must hold whatever the parameters."""
    assert len(result) == len(result.labels) == len(result.status) == len(result.runner_up) == n
    assert set(result.status) <= STATUS
    assert set(result.labels) <= set(result.classes)
    for share in (result.confidence, result.certainty):
        assert share.dtype == np.float32
        assert share.min() >= 0
        assert share.max() <= 1
    assert 0 <= result.noise_rate <= 1
    assert result.votes.shape == (n, n_classes)
    assert result.votes.data.min() > 0
    assert result.votes.sum(axis=1).max() <= 1 + 1e-6
    np.testing.assert_allclose(result.transition.sum(axis=1), np.ones(n_classes), rtol=1e-6)
    assert [record.round_index for record in result.history] == list(range(1, result.config.n_rounds + 1))


def weights(result):
    return torch.cat([value.flatten() for value in result.model.net.state_dict().values()])


class TwoLayers(nn.Module):
    """A net of the user's: another depth, BatchNorm and dropout."""

    def __init__(self, n_inputs, n_classes):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(n_inputs, 12), nn.BatchNorm1d(12), nn.ReLU(), nn.Dropout(0.2))
        self.head = nn.Linear(12, n_classes)

    def forward(self, x):
        features = self.body(x)
        return features, self.head(features)


# Right and wrong labels


def test_clean_labels_of_separable_data_come_back_untouched():
    X, y = blobs(n=150)
    result = labelmend.correct(X, y, device="cpu")
    np.testing.assert_array_equal(result.labels, y)
    assert set(result.status) == {"kept"}
    assert result.noise_rate < 0.01
    np.testing.assert_allclose(result.transition, np.eye(3), atol=0.02)


def test_planted_errors_in_separated_clouds_are_corrected():
    X, truth = blobs(n=300, n_classes=4, seed=1)
    given, wrong = plant(truth, 0.2)
    result = labelmend.correct(X, given, device="cpu")
    assert (result.labels == truth).mean() >= 0.95
    fits = result.reason != "fits no class"  # the others are left as they were given
    assert fits.mean() >= 0.98
    assert np.isin(result.status[wrong][fits[wrong]], ("corrected", "review")).mean() >= 0.95
    assert result.noise_rate == pytest.approx(0.2, abs=0.05)
    assert result.model.predict(X[fits]).tolist() == result.labels[fits].tolist()


def test_confused_pairs_name_the_most_frequent_change_first():
    X, truth = blobs(n=150)
    given = truth.copy()
    given[np.flatnonzero(truth == 0)[:9]] = 2
    given[np.flatnonzero(truth == 1)[:4]] = 0
    pairs = quick(X, given, n_rounds=3, outlier_share=0.0).confused_pairs()
    assert [(pair.given, pair.corrected, pair.count) for pair in pairs] == [(2, 0, 9), (0, 1, 4)]


def test_sixty_classes_of_four_rows_keep_their_labels_and_are_mentioned():
    X, y = blobs(n=240, n_classes=60, n_columns=16)
    with pytest.warns(LabelmendWarning, match=r"60 class.* branches"):
        result = labelmend.correct(X, y, device="cpu", expert={"n_rounds": 2})
    check_sane(result, 240, 60)
    assert (result.labels == y).mean() >= 0.98


def test_a_tiny_class_keeps_its_labels_for_review():
    X, y = blobs(n=62)
    names = np.array(["a", "b", "c"])[y].astype(object)
    names[-2:] = "rare"
    with pytest.warns(LabelmendWarning, match=r"1 class.* 3 samples .*rare"):
        result = quick(X, names)
    assert list(result.labels[-2:]) == ["rare", "rare"]
    assert result.status[-2:].tolist() == ["review", "review"]
    assert result.warnings[0].startswith("1 class(es)")


def test_identical_rows_with_different_labels_are_listed_and_warned_about():
    X, y = blobs()
    X[3] = X[0]
    y[3] = 1
    with pytest.warns(LabelmendWarning, match=r"1 group.*identical.*rows 0, 3"):
        result = quick(X, y)
    assert result.duplicates == [[0, 3]]


# Containers


def text(classes):
    return [("cat", "dog", "owl")[c] for c in classes]


LABELS = {
    "list": (text, lambda a, b: a == b),
    "numpy strings": (lambda c: np.array(text(c)), lambda a, b: a.dtype == b.dtype and (a == b).all()),
    "numpy bools": (lambda c: np.asarray(c) > 0, lambda a, b: a.dtype == b.dtype and (a == b).all()),
    "pandas": (lambda c: pd.Series(text(c), index=range(9, 9 + len(c)), name="pet"), lambda a, b: a.equals(b)),
    "pandas categories": (lambda c: pd.Series(text(c), dtype="category"), lambda a, b: a.equals(b)),
    "pandas nullable": (lambda c: pd.Series(c, dtype="Int64"), lambda a, b: a.equals(b) and a.dtype == b.dtype),
    "polars": (lambda c: pl.Series("pet", text(c)), lambda a, b: a.equals(b, check_dtypes=True, check_names=True)),
    "torch": (lambda c: torch.tensor(c, dtype=torch.uint8), lambda a, b: a.dtype == b.dtype and torch.equal(a, b)),
}


@pytest.mark.parametrize("name", LABELS)
def test_corrected_labels_come_in_the_container_of_the_given_ones(name):
    make, equal = LABELS[name]
    X, truth = blobs()
    given = truth.copy()
    given[[4, 5]] = 0, 1
    result = quick(X, make(given), outlier_share=0.0)
    assert not equal(make(given), make(truth)), "something has to be put right"
    assert type(result.labels) is type(make(truth))
    assert equal(result.labels, make(truth))


X_MAKERS = {
    "float32": lambda X: X.astype(np.float32),
    "list": lambda X: X.tolist(),
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "torch": torch.tensor,
    "csr": scipy.sparse.csr_array,
    "csc": scipy.sparse.csc_matrix,
}


@pytest.mark.parametrize("name", X_MAKERS)
def test_the_container_of_the_features_does_not_matter(name):
    X, y = blobs(n=40, spread=2.0)
    expected, result = quick(X, y), quick(X_MAKERS[name](X), y)
    np.testing.assert_array_equal(result.confidence, expected.confidence)
    probabilities = result.model.predict_proba(X_MAKERS[name](X))
    np.testing.assert_array_equal(probabilities, expected.model.predict_proba(X))


def test_a_wide_sparse_matrix_is_corrected_and_its_model_reads_dense_rows_too():
    X, truth = blobs(n=80, n_columns=300)
    X[np.abs(X) < 3] = 0
    given, _ = plant(truth, 0.1)
    result = quick(scipy.sparse.csr_array(X), given, outlier_share=0.0)
    assert (result.labels == truth).mean() > (given == truth).mean()
    np.testing.assert_allclose(
        result.model.predict_proba(X), result.model.predict_proba(scipy.sparse.csr_matrix(X)), atol=1e-5
    )


@pytest.mark.parametrize("sparse", [False, True])
def test_what_the_user_passes_is_never_written_to(sparse):
    X, y = blobs()
    X = X.astype(np.float32)
    if sparse:
        # Unsorted indices: the kind of matrix that gets tidied up in place.
        X = scipy.sparse.csr_array((X.ravel(), np.tile([3, 1, 0, 2], 60), np.arange(0, 241, 4)), shape=(60, 4))
    trusted = y == 0
    before = copy.deepcopy((X, y, trusted))
    for array in (X.data, X.indices, X.indptr, y, trusted) if sparse else (X, y, trusted):
        array.flags.writeable = False
    quick(X, y, trusted=trusted, missing=2).model.predict(X)
    parts = zip((X.data, X.indices), (before[0].data, before[0].indices), strict=True) if sparse else [(X, before[0])]
    for after, old in [*parts, (y, before[1]), (trusted, before[2])]:
        np.testing.assert_array_equal(after, old)


# Missing and trusted labels


@pytest.mark.parametrize(
    ("make", "missing"),
    [
        (lambda y: [None if c < 0 else int(c) for c in y], None),
        (lambda y: np.where(y < 0, np.nan, y), None),
        (lambda y: pd.Series([pd.NA if c < 0 else c for c in y], dtype="Int64"), None),
        (lambda y: y, -1),
    ],
    ids=["None", "NaN", "pandas.NA", "-1"],
)
def test_missing_labels_are_filled_and_start_no_vote(make, missing):
    X, truth = blobs()
    y = truth.copy()
    y[::7] = -1
    result = quick(X, make(y), missing=missing)
    assert [int(label) for label in result.labels] == truth.tolist()
    np.testing.assert_array_equal(result.status, np.where(y < 0, "filled", "kept"))
    assert {sum(record.correction.subset_sizes) for record in result.history} == {(y >= 0).sum()}
    assert result.noise_rate < 0.05
    assert result.profile.rate.low < 0.01
    assert result.summary()["labelled"] == (y >= 0).sum()


def test_a_filled_label_does_not_vote_in_later_rounds():
    """Two unlabelled rows far from everything see only each other: nobody ever suggests a label to them."""
    X, y = blobs(n=40, n_classes=2)
    X[:2] = [[100.0, -100, 0, 0], [100.0, -100, 0, 1]]
    result = quick(X, np.where(np.arange(40) < 2, -1, y), missing=-1, graph_k=1, n_rounds=4)
    assert result.votes[:2].nnz == 0
    np.testing.assert_array_equal(result.certainty[:2], 0)
    assert result.status[:2].tolist() == ["filled", "filled"]


def test_trusted_rows_keep_their_label_with_certainty_one():
    X, truth = blobs(n=90)
    given, wrong = plant(truth, 0.1)
    trusted = np.zeros(90, dtype=bool)
    trusted[wrong[:5]] = True
    result = quick(X, given, trusted=trusted, outlier_share=0.0)
    np.testing.assert_array_equal(result.labels[trusted], given[trusted])
    assert set(result.status[trusted]) == {"kept"}
    np.testing.assert_array_equal(result.certainty[trusted], 1)
    np.testing.assert_array_equal(result.confidence[trusted], 1)
    others = np.setdiff1d(np.arange(90), wrong[:5])
    assert (result.labels == truth)[others].mean() >= (given == truth)[others].mean()


@pytest.mark.parametrize("make", [list, pd.Series, torch.tensor, lambda mask: mask.astype(int), pl.Series])
def test_a_trusted_mask_may_come_in_any_container(make):
    X, y = blobs()
    mask = np.arange(60) < 10
    np.testing.assert_array_equal(quick(X, y, trusted=make(mask)).certainty[mask], 1)


@pytest.mark.parametrize("trusted", [[True], np.full(60, 2), ["yes"] * 60, [None] * 60, np.ones((60, 1))])
def test_what_is_no_mask_is_refused(trusted):
    X, y = blobs()
    with pytest.raises(DataError, match=r"trusted .*60\)"):
        quick(X, y, trusted=trusted)


@pytest.mark.parametrize("decay", [0.0, 0.9])
def test_fine_tuning_moves_the_model_towards_the_trusted_labels_and_leaves_the_correction_alone(decay):
    X, truth = blobs(n=90)
    given, wrong = plant(truth, 0.1)
    trusted = np.isin(np.arange(90), wrong[:3])  # certainly these labels, though they look like others
    settings = {"trusted": trusted, "average_decay": decay, "outlier_share": 0.0}  # who fits is asked of the tuned net
    plain, tuned = quick(X, given, **settings), quick(X, given, **settings, fine_tune_passes=20)
    np.testing.assert_array_equal(tuned.labels, plain.labels)
    rows, places = X[trusted], np.searchsorted(plain.classes, given[trusted])
    before, after = (result.model.predict_proba(rows)[np.arange(3), places] for result in (plain, tuned))
    assert (after > before).all()


def test_fine_tuning_without_trusted_samples_is_refused():
    X, y = blobs()
    with pytest.raises(ConfigError, match=r"fine_tune_passes needs trusted samples"):
        quick(X, y, fine_tune_passes=1)


def test_a_trusted_row_needs_a_label():
    X, y = blobs()
    with pytest.raises(DataError, match=r"trusted rows must have a label\. Row 2 has none"):
        quick(X, y, trusted=np.ones(60), missing=2)


def test_the_model_is_the_averaged_net():
    X, y = blobs()
    states = []
    result = quick(X, y, preset="paper", average_decay=0.9, callback=lambda record, state: states.append(state))
    assert torch.equal(result.model.net.head.weight, states[-1].average.net.head.weight)
    assert not torch.equal(result.model.net.head.weight, states[-1].corrected_net.head.weight)


# Determinism


def test_the_same_seed_gives_the_same_result_bit_for_bit():
    X, y = blobs(spread=3.0)
    first = quick(X, y, seed=3, held_out_passes=2)
    torch.rand(7)
    again = quick(X, y, seed=3, held_out_passes=2)
    for name in ("labels", "status", "confidence", "certainty", "runner_up", "transition", "neighbors"):
        np.testing.assert_array_equal(getattr(first, name), getattr(again, name), err_msg=name)
    assert first.noise_rate == again.noise_rate
    assert (first.votes != again.votes).nnz == 0
    assert torch.equal(weights(first), weights(again))


def test_another_seed_gives_another_result():
    X, y = blobs(spread=3.0)
    first, other = quick(X, y, seed=3), quick(X, y, seed=4)
    assert (first.confidence != other.confidence).any()
    assert not torch.equal(weights(first), weights(other))


def test_the_global_generator_of_torch_is_left_as_it_was():
    X, y = blobs()
    before = torch.random.get_rng_state()
    quick(X, y, net=TwoLayers, held_out_passes=2)
    assert torch.equal(torch.random.get_rng_state(), before)


# The result


def test_doubtful_labels_can_be_left_as_they_were():
    X, truth = blobs(n=120, spread=1.5)
    given, _ = plant(truth, 0.2)
    given[:5] = -1
    first = quick(X, given, missing=-1, review_below=0)
    middle = float(np.median(first.confidence[first.status == "corrected"]))
    result = quick(X, given, missing=-1, review_below=middle)
    doubtful = result.status == "review"
    assert (doubtful & (result.labels != given)).any(), "some changed labels are doubtful"
    assert (result.status == "corrected").any(), "others are not"
    np.testing.assert_array_equal(result.labels_for(review="given"), np.where(doubtful, given, result.labels))
    np.testing.assert_array_equal(result.labels_for(), result.labels)
    np.testing.assert_array_equal(result.labels_for(review="corrected"), result.labels)
    with pytest.raises(ConfigError, match=r'review must be "corrected" or "given"\. Got \'both\' instead'):
        result.labels_for(review="both")


def test_the_threshold_of_review_never_changes_a_label():
    X, truth = blobs(n=120, spread=4.0)
    given, _ = plant(truth, 0.3)
    none, most = quick(X, given, review_below=0.0), quick(X, given, review_below=1.0)
    np.testing.assert_array_equal(none.labels, most.labels)
    held = (none.reason == "fits no class").sum()
    assert none.count("review") <= none.verdict.waiting + held, "what is left alone, whatever the threshold"
    assert most.count("review") > none.count("review")
    assert (most.status[most.confidence < 1] == "review").all()


def test_status_says_what_became_of_the_given_label():
    X, truth = blobs(n=120, spread=1.5)
    given, _ = plant(truth, 0.2)
    result = quick(X, given)
    assert result.count("kept") > 0
    assert result.count("corrected") > 0
    assert (result.labels[result.status == "kept"] == given[result.status == "kept"]).all()
    assert (result.labels[result.status == "corrected"] != given[result.status == "corrected"]).all()
    assert (result.runner_up != result.labels).all()
    assert sum(result.count(status) for status in STATUS) == 120


def test_summary_counts_add_up():
    X, truth = blobs(n=90)
    given, wrong = plant(truth, 0.1)
    summary = quick(X, given).summary()
    assert (summary["rows"], summary["classes"], summary["changed"]) == (90, 3, len(wrong))
    assert summary["kept"] + summary["corrected"] + summary["review"] + summary["filled"] == 90
    assert sum(pair["count"] for pair in summary["confused_pairs"]) <= summary["changed"]


def test_rounds_and_stages_are_reported_as_they_happen():
    X, y = blobs()
    rounds, stages = [], []
    result = quick(
        X, y, callback=lambda record, state: rounds.append((record, state.round_index)), progress=stages.append
    )
    assert [record for record, _ in rounds] == result.history
    assert [index for _, index in rounds] == [1, 2]
    one_round = ["embed", "split", "branches", "graphs", "propagate", "vote", "train"]
    assert stages == ["warm-up", *one_round, *one_round, "decide", "profile", "map"]
    assert set(result.history[0].seconds) == set(one_round)


def test_ids_name_the_rows_and_must_be_unique():
    X, y = blobs()
    names = [f"row {i}" for i in range(60)]
    assert quick(X, y, ids=names).ids.tolist() == names
    assert quick(X, y).ids.tolist() == list(range(60))
    with pytest.raises(DataError, match=r"ids must be one per row \(60\)"):
        quick(X, y, ids=names[:-1])
    with pytest.raises(DataError, match=r"ids must be unique\. Got 1 repeated ones instead"):
        quick(X, y, ids=[*names[:-1], names[0]])


def test_the_fingerprint_tells_data_apart():
    X, y = blobs(n=10, n_classes=2)
    moved = X.copy()
    moved[0, 0] += 1
    prints = {quick(X, y).fingerprint, quick(moved, y).fingerprint, quick(X, y[::-1]).fingerprint}
    assert len(prints) == 3
    assert quick(X, y, seed=1).fingerprint in prints


# Nets


def test_a_net_of_the_users_takes_the_place_of_ours():
    X, truth = blobs(n=90)
    given, _ = plant(truth, 0.1)
    sizes = set()

    def factory(n_inputs, n_classes):
        sizes.add((n_inputs, n_classes))
        return TwoLayers(n_inputs, n_classes)

    result = quick(X, given, net=factory, n_rounds=3)
    check_sane(result, 90, 3)
    assert sizes == {(4, 3)}
    assert type(result.model.net) is TwoLayers
    assert (result.labels == truth).mean() >= 0.95
    again = quick(X, given, net=factory, n_rounds=3)
    assert torch.equal(weights(result), weights(again)), "dropout too follows the seed"


@pytest.mark.parametrize(
    "net",
    [
        lambda n_inputs, n_classes: nn.Linear(n_inputs, n_classes),
        lambda n_inputs, n_classes: MLP(n_inputs, 8, n_classes + 1),
    ],
    ids=["no features", "too many logits"],
)
def test_a_net_of_another_shape_is_refused(net):
    X, y = blobs()
    with pytest.raises(ConfigError, match=r"net .*\(features, logits\)"):
        quick(X, y, net=net)


def test_the_default_net_has_the_width_asked_for():
    X, y = blobs()
    assert quick(X, y, hidden=7, preset="paper").model.net.hidden.out_features == 7


# Refusals, before any work


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.zeros((6, 2)), [0, 1] * 4, r"same length\. Got 6 rows and 8 labels instead"),
        (np.eye(6), [0] * 6, r"at least two classes\. Got only the class 0 instead"),
        (np.eye(4), [0, 1, 0, 1], r"at least 5 rows\. Got 4 instead"),
        (np.ones((6, 2)), [0, 1] * 3, r"features must differ between rows"),
        (np.full((6, 2), np.nan), [0, 1] * 3, r"must be finite"),
        (np.eye(6), list("abcdef"), r"looks like an id"),
        (np.eye(6), np.linspace(0, 1, 6), r"Got continuous numbers"),
        (np.eye(6), np.zeros((6, 2)), r"labels must be one-dimensional"),
        (np.arange(6.0), [0, 1] * 3, r"features must be two-dimensional"),
        (pd.DataFrame({"a": range(6), "b": list("uvwxyz")}), [0, 1] * 3, r"instead: b\."),
    ],
)
def test_bad_data_are_refused_before_any_work(X, y, message):
    stages = []
    with pytest.raises(DataError, match=message):
        quick(X, y, progress=stages.append)
    assert stages == []


def test_an_unusable_device_is_refused():
    X, y = blobs()
    with pytest.raises(ConfigError, match=r"device must be usable here\. Got 'abacus'"):
        quick(X, y, device="abacus")


def test_an_unknown_parameter_is_refused():
    X, y = blobs()
    with pytest.raises(ConfigError, match="n_round is not a parameter; did you mean n_rounds"):
        quick(X, y, n_round=3)


# Variants of the method

VARIANTS = {
    "paper, a few rounds": {"preset": "paper"},
    "paper": {"preset": "paper", "n_rounds": 15, "graph_k": 50},
    "with the noisy branch": {"noisy_branch": True},
    "mixup": {"mixup": True},
    "soft labels": {"soft_labels": True},
    "soft labels from the net": {"soft_labels": True, "soft_source": "net"},
    "sharper soft labels": {"soft_labels": True, "soft_temperature": 0.5},
    "split losses": {"corrected_loss": "split"},
    "split losses, mixup": {"corrected_loss": "split", "mixup": True},
    "split losses, mixup of another shape": {"corrected_loss": "split", "mixup": True, "mixup_shape": 4},
    "split losses, soft labels": {"corrected_loss": "split", "mixup": True, "soft_labels": True},
    "split losses, a penalty": {"corrected_loss": "split", "class_penalty": 1.0},
    "semi-supervised": {
        "corrected_loss": "semi-supervised",
        "soft_labels": True,
        "soft_temperature": 0.5,
        "mixup": True,
        "mixup_shape": 4,
        "soft_mse_factor": 25.0,
        "class_penalty": 1.0,
    },
    "semi-supervised without mixup": {"corrected_loss": "semi-supervised", "soft_labels": True},
    "branches that persist": {"persistent_branches": True},
    "penalty in the warm-up": {"warmup_penalty": 1.0},
    "row 4 of the ablation": {
        "noisy_branch": False,
        "branch_loss": "cross-entropy-mae",
        "mae_factor": 10.0,
        "mixup": True,
        "soft_labels": True,
        "soft_mse_factor": 10.0,
    },
    **{f"branch loss {name}": {"branch_loss": name} for name in BRANCH_LOSSES},
    "all samples in the branches": {"branch_samples": "all"},
    "same round": {"corrected_source": "same-round"},
    "label delay": {"label_delay": 1},
    "without own subset": {"own_subset_votes": False},
    "no new packages": {"resplit": False},
    "every winning vote": {"decide": "votes"},
    "unscaled columns": {"scale_columns": False},
    "percentiles": {"low_percentile": 0.05, "high_percentile": 0.95},
    "neighbours by cells": {"exact_rows": 0},
    "held-out nets": {"held_out_passes": 3},
    "no warm-up": {"warmup_passes": 0},
    "learning rate in steps": {"lr_milestones": (0.5,)},
    "learning rate by cosine": {"lr_schedule": "cosine"},
    "a correction every second round": {"correct_every": 2},
    "average": {"average_decay": 0.9},
    "consistency": {"average_decay": 0.9, "consistency": 1.0, "consistency_threshold": 0.5},
    "consistency from any answer": {"average_decay": 0.9, "consistency": 1.0, "consistency_threshold": 0.0},
    "labels of the posterior": {"round_labels": "posterior"},
    "labels of the last round's posterior": {"round_labels": "posterior", "evidence_kept": 0.0},
    "evidence of the last round": {"evidence_kept": 0.0},
    "the net beside the graphs": {"net_power": 1.0},
    "five branches": {"n_branches": 5, "packages_per_branch": 4},
}


@pytest.mark.parametrize("name", VARIANTS)
def test_every_variant_runs_and_improves_labels(name):
    X, truth = blobs(n=150)
    given, _ = plant(truth, 0.1)
    result = quick(X, given, **VARIANTS[name])
    check_sane(result, 150, 3)
    assert (result.labels == truth).mean() >= 0.95
    np.testing.assert_allclose(result.model.predict_proba(X[:9]).sum(axis=1), 1)


def test_variants_are_not_all_the_same():
    X, truth = blobs(n=60, spread=3.0)
    given, _ = plant(truth, 0.2)

    def trained(changes):
        nets = []
        changes = {"decide": "votes", **changes}  # the nets are the same, and nothing is fitted beside them
        quick(X, given, **changes, callback=lambda record, state: nets.append(state.deployed_net))
        return torch.cat([value.flatten() for value in nets[-1].state_dict().values()])

    tried = {name: trained(changes) for name, changes in VARIANTS.items()}
    plain = trained({})
    same = {name for name, found in tried.items() if torch.equal(found, plain)}
    only_the_decision = {
        "every winning vote",
        "held-out nets",
        "evidence of the last round",
        "the net beside the graphs",
    }
    assert same == {*only_the_decision, "branch loss smoothness"}  # which is the default
    # Values that only matter together with another one.
    for name, without in {
        "consistency from any answer": "consistency",
        "labels of the last round's posterior": "labels of the posterior",
    }.items():
        assert not torch.equal(tried[name], tried[without]), name


def test_samples_no_label_reaches_are_left_alone_or_judged_by_the_net():
    """Two far clusters; the second has one labelled row and unlabelled ones, and no neighbours with a label."""
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.normal(size=(40, 4)) + 6, rng.normal(size=(40, 4)) - 6])
    labels: list[str | None] = ["a", "b"] * 20 + [None] * 40
    for i in range(20):
        rows[2 * i + 1] += [8, 0, 0, 0]
    result = labelmend.correct(rows, labels, expert={"n_rounds": 1, "hidden": 8, "graph_k": 3, "warmup_passes": 1})
    assert set(result.status[40:]) == {"filled"}
    assert set(result.labels[40:]) <= {"a", "b"}
    assert np.isfinite(result.confidence).all()


def test_the_paper_preset_takes_the_votes_and_still_says_how_probable_they_are():
    rows, labels = labelmend_blobs()
    result = labelmend.correct(rows, labels, preset="paper", expert={"n_rounds": 2, "hidden": 16})
    voted = np.asarray(result.votes.argmax(axis=1)).ravel()
    assert (result.corrected_codes == voted).mean() > 0.95  # ties aside
    assert 0 < result.confidence.min() < 1


def labelmend_blobs():
    rng = np.random.default_rng(1)
    truth = np.arange(120) % 3
    rows = rng.normal(size=(120, 4)) + 3 * np.eye(3, 4)[truth]
    labels = truth.copy()
    labels[:20] = (labels[:20] + 1) % 3
    return rows, labels
