import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch

from labelmend import labels_by_annotator
from labelmend.errors import DataError
from labelmend.inputs import annotators
from labelmend.inputs.annotators import annotations_by_name, read_table
from labelmend.inputs.containers import is_table
from labelmend.inputs.labels import read_labels
from labelmend.labels import Annotations

NAN = float("nan")
SAID = [[1, NAN], [2, 1], [NAN, NAN]]  # two annotators, three samples


def read(table, missing=None):
    found = read_table(table, missing)
    return found.annotations(found.classes()), found.classes()


def entries(found):
    return list(zip(found.sample.tolist(), found.annotator.tolist(), found.label.tolist(), strict=True))


@pytest.mark.parametrize(
    ("table", "names"),
    [
        (SAID, ["1", "2"]),
        (np.array(SAID), ["1", "2"]),
        (np.array([[1, None], [2, 1], [None, None]], dtype=object), ["1", "2"]),
        (torch.tensor(SAID), ["1", "2"]),
        (pd.DataFrame(SAID, columns=["ann", "ben"]), ["ann", "ben"]),
        (pd.DataFrame({"ann": [1, 2, None], "ben": pd.array([None, 1, None], dtype="Int64")}), ["ann", "ben"]),
        (pl.DataFrame({"ann": [1, 2, None], "ben": [None, 1, None]}), ["ann", "ben"]),
        ({"ann": [1, 2, None], "ben": [None, 1, None]}, ["ann", "ben"]),
    ],
)
def test_every_container_says_the_same(table, names):
    assert is_table(table)
    found, classes = read(table)
    assert found.names.tolist() == names
    assert classes.tolist() == [1, 2]
    assert classes.dtype.kind == "i"  # floats only because of NaN
    assert entries(found) == [(0, 0, 0), (1, 0, 1), (1, 1, 0)]


def test_a_declared_missing_value_is_no_label():
    found, classes = read({"ann": ["x", "?"], "ben": ["?", "y"]}, missing="?")
    assert classes.tolist() == ["x", "y"]
    assert entries(found) == [(0, 0, 0), (1, 1, 1)]


def test_names_beside_labels():
    assert not is_table(["ann", "ben"])
    assert not is_table(pd.Series(["ann"]))
    labels = read_labels(["x", None, "y", "x"])
    found = annotations_by_name(["ben", None, 7, "ben"], labels)
    assert found.names.tolist() == ["7", "ben"]
    assert entries(found) == [(0, 1, 0), (2, 0, 1), (3, 1, 0)]


def test_some_of_the_samples():
    found, _ = read(SAID)
    whole = Annotations(found.names, found.sample, found.annotator, found.label, np.array([0, 1, -1]), np.ones(3))
    some = whole.of_rows(np.array([2, 1]))
    assert entries(some) == [(1, 0, 1), (1, 1, 0)]
    assert some.consensus.tolist() == [-1, 1]


def test_the_digest_covers_names_and_labels():
    found, _ = read(SAID)
    assert found.digest() == read(SAID)[0].digest()
    renamed = Annotations(np.array(["1", "3"]), found.sample, found.annotator, found.label)
    changed = Annotations(found.names, found.sample, found.annotator, 1 - found.label)
    assert len({found.digest(), renamed.digest(), changed.digest()}) == 3


def test_triples_become_a_table():
    table = labels_by_annotator(["b", "a", "b"], ["ben", "ann", "ann"], [1, 2, 1], ids=["a", "b", "c"])
    assert {name: column.tolist() for name, column in table.items()} == {"ann": [2, 1, None], "ben": [None, 1, None]}
    assert labels_by_annotator(np.array([1]), ["ann"], ["x"], ids=2)["ann"].tolist() == [None, "x"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: labels_by_annotator(["z"], ["ann"], [1], ids=["a"]), r"among ids\. 'z' is not"),
        (lambda: labels_by_annotator(["a", "a"], ["ann"], [1], ids=["a"]), r"as many samples as .* \[2, 1, 1\]"),
        (
            lambda: labels_by_annotator(["a", "a"], ["ann", "ann"], [1, 2], ids=["a"]),
            r"one label\. ann gave 1 and 2 to 'a'",
        ),
        (lambda: read([[1, 2], [1]]), r"equally long\. Got lengths \[1, 2\]"),
        (lambda: read({"ann": [1, 2], "ben": [1]}), r"a place for every sample\. Got columns of \[1, 2\] rows"),
        (lambda: read(pd.DataFrame([[1, 2]], columns=["ann", "ann"])), r"different names\. Got ann, ann"),
        (lambda: read({"ann": [None], "ben": [None]}), r"must have given labels\. Got none"),
        (lambda: read({"ann": [1.5, 2.0]}), r"labels must be classes\. Got continuous numbers such as 1\.5"),
        (lambda: read({"ann": "text"}), r"labels of the annotator ann must be a list.* Got str"),
        (
            lambda: read_table({"ann": ["x", "zebra"]}).annotations(np.array(["x", "y"])),
            r"classes that y has\. ann gave 'zebra' to sample 1, which is no class of y; correct it, or leave y out",
        ),
        (
            lambda: annotations_by_name(["ann"], read_labels([1, 2])),
            r"one name per sample \(2\), or a table.* Got list of shape \(1,\)",
        ),
        (
            lambda: annotations_by_name(["ann", None], read_labels([1, 2])),
            r"name who gave every label\. Sample 1 has a label and no name \(1 in all\)",
        ),
    ],
)
def test_what_cannot_be_is_told(call, message):
    with pytest.raises(DataError, match=message):
        call()


def test_too_many_confusions_are_refused(monkeypatch):
    monkeypatch.setattr(annotators, "MOST_ENTRIES", 7)
    with pytest.raises(DataError, match=r"at most 7.*2 annotators.*2 classes \(8\)"):
        read(SAID)
