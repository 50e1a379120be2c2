"""Runs to hand over. They are made without training: an export does not care how labels came about."""

from functools import partial
from pathlib import Path

import pytest

import labelmend
from blobs import QUICK, blobs
from handed_over import STATUS, SURE, result_of, tree, write_pictures, write_table
from labelmend.storage.source import picture_source, table_source


@pytest.fixture(scope="session")
def template():
    return labelmend.correct(*blobs(8, 2), expert=QUICK)


@pytest.fixture
def make(template):
    return partial(result_of, template)


@pytest.fixture(autouse=True)
def always_in_an_empty_folder(in_an_empty_folder):
    pass


@pytest.fixture
def table(make):
    """A run on a .csv with the columns x, kind, note; rows without names. The file must stay as it is."""
    note = ["007", "=1+1", "a;b", "line\nbreak", 'quo"te', "naïve", " ", ""]
    path = write_table(note=note)
    before = path.read_bytes()
    yield make(table_source(path, "kind"))
    assert path.read_bytes() == before


@pytest.fixture
def photos(make):
    """A run on class folders; sample 2 has no label, sample 7 is no picture. The folder must stay as it is."""
    names = write_pictures()
    Path("photos", names[7]).write_bytes(b"no picture")
    before = tree("photos")
    yield make(picture_source(Path("photos")), names, status=[*STATUS[:7], "unreadable"], sure=[*SURE[:7], 0.0])
    assert tree("photos") == before
