import numpy as np
import pandas as pd
import polars as pl
import pytest

from labelmend.errors import DataError
from labelmend.evidence.inputs import looks_in_sample
from labelmend.inputs.labels import read_labels
from labelmend.inputs.pred_probs import read_pred_probs, with_classes

Y = np.array(["b", "a", "c", "a", "b", "c"])
P = np.array([[0.1, 0.8, 0.1], [0.7, 0.2, 0.1], [0, 0, 1], [0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.3, 0.3, 0.4]])


def only(given, y=Y):
    found, labels = read_pred_probs(given, read_labels(y))
    (one,) = found.models.values()
    return one, labels


def test_an_array_has_the_order_of_the_sorted_classes():
    one, labels = only(P)
    assert one == pytest.approx(P)
    assert labels.classes.tolist() == ["a", "b", "c"]


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_columns_name_the_classes_in_any_order(frame):
    one, _ = only(frame({"c": P[:, 2], "a": P[:, 0], "b": P[:, 1]}))
    assert one == pytest.approx(P)


def test_columns_that_read_like_the_classes_are_these():
    y = np.array([1.0, 0.0, 2.0, 0.0, 1.0, 2.0])
    for names in ([2, 0, 1], ["2", "0", "1"]):
        assert only(pd.DataFrame(P[:, [2, 0, 1]], columns=names), y)[0] == pytest.approx(P)


def test_a_class_that_no_label_names_becomes_one_and_codes_follow():
    y = np.array(["b", "c", "b", "c", "b", "c"])
    one, labels = only(pd.DataFrame(P, columns=["a", "b", "c"]), y)
    assert labels.classes.tolist() == ["a", "b", "c"]
    assert labels.codes.tolist() == [1, 2, 1, 2, 1, 2]
    assert labels.decode(labels.codes).tolist() == y.tolist()
    assert one == pytest.approx(P)


@pytest.mark.parametrize("kind", ["U", "category", "object"])
def test_a_longer_name_fits_into_the_container_of_the_labels(kind):
    y = Y if kind == "U" else pd.Series(Y, dtype=kind)
    labels = with_classes(read_labels(y), [["a", "b", "c", "dromedary"]])
    assert "dromedary" in list(labels.decode(np.array([3, 0, 1, 2, 3, 0])))


def test_several_models_as_dict_or_list():
    by_name, _ = read_pred_probs({"net": P, "trees": P[:, ::-1]}, read_labels(Y))
    assert list(by_name.models) == ["net", "trees"]
    assert by_name.features().shape == (6, 6)
    in_turn, _ = read_pred_probs([P, P], read_labels(Y))
    assert len(in_turn.models) == 2
    assert list(read_pred_probs(P.tolist(), read_labels(Y))[0].models) == ["pred_probs"]


def test_scores_are_finite_and_features_centred():
    found, _ = read_pred_probs(np.eye(3)[[1, 0, 2, 0, 1, 2]], read_labels(Y))
    assert np.isfinite(found.scores()["pred_probs"]).all()
    assert found.features().sum(axis=1) == pytest.approx(0, abs=1e-4)
    assert found.features().dtype == np.float32


def test_rounded_rows_are_renormalised():
    assert only(P.round(2) * 1.005)[0].sum(axis=1) == pytest.approx(1)


@pytest.mark.parametrize(
    ("given", "value"),
    [
        (P * 1.1, "1.1"),
        (np.where(P == 1, np.nan, P), "(2)"),
        (P - 0.2, "negative"),
        (np.ma.array(P, mask=P == 0.5), "NaN"),
        (P[:, :2], "3 classes"),
        (P[:4], "4"),
        (P[:, 0], "(6,)"),
        ([], "none"),
        (pd.DataFrame(P, columns=["a", "b", "z"]), "'c'"),
        (pd.DataFrame(P, columns=["a", "b", "b"]), "names"),
        (pd.DataFrame({"a": ["x"] * 6, "b": 0.5, "c": 0.5}), "number"),
    ],
)
def test_what_is_no_probability_is_refused(given, value):
    with pytest.raises(DataError) as refused:
        read_pred_probs(given, read_labels(Y))
    assert value.strip("'") in str(refused.value)


def test_a_column_that_cannot_be_a_class_is_refused():
    y = np.array([0, 1, 2, 0, 1, 2])
    frame = pd.DataFrame(np.hstack([P, np.zeros((6, 1))]), columns=[0, 1, 2, "weight"])
    with pytest.raises(DataError, match="weight"):
        read_pred_probs(frame, read_labels(y))


def test_the_digest_tells_models_apart():
    one, other = (read_pred_probs(given, read_labels(Y))[0].digest() for given in (P, P[:, ::-1]))
    assert one != other
    assert one == read_pred_probs(P.copy(), read_labels(Y))[0].digest()


def test_what_looks_in_sample_is_named():
    given = np.arange(1000) % 3
    seen, honest = given.copy(), np.where(np.arange(1000) % 10 == 0, (given + 1) % 3, given)
    everyone = np.ones(1000, dtype=bool)
    members = {"ridge": honest}
    assert ["net" in note for note in looks_in_sample({"net": seen, "other": honest}, members, given, everyone)] == [
        True
    ]
    assert looks_in_sample({"net": seen}, {"ridge": seen}, given, everyone) == []  # anyone can name these labels
    assert len(looks_in_sample({"net": seen}, {}, given, everyone)) == 1
    assert looks_in_sample({"net": seen}, {}, given, ~everyone) == []
