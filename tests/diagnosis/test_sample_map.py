import dataclasses

import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal

import labelmend
from blobs import QUICK, blobs, plant
from labelmend.config import as_arguments
from labelmend.diagnosis import projection as sample_map
from labelmend.diagnosis.projection import _places, choose_samples
from labelmend.ensemble.fit import embed
from labelmend.ensemble.nets import MLP
from labelmend.samples import VectorSamples


def choose(labels, status, most):
    return choose_samples(np.asarray(labels), np.asarray(status), most, np.random.default_rng(0))


def test_few_samples_are_all_on_the_map():
    assert_array_equal(choose([0, 1, 0], [0, 0, 1], 3), [0, 1, 2])


def test_of_many_samples_the_rare_statuses_are_shown_more_and_classes_evenly():
    status = np.repeat([0, 1, 2], [9_900, 80, 20])
    labels = np.arange(10_000) % 4
    chosen = choose(labels, status, 500)
    assert len(set(chosen.tolist())) == 500
    assert_array_equal(chosen, np.sort(chosen))
    counts = np.bincount(status[chosen])
    assert_array_equal(counts, [442, 39, 19])  # 500 in the proportion of the roots, 99.5 : 8.9 : 4.5
    kept = np.bincount(labels[chosen[status[chosen] == 0]])
    assert kept.max() - kept.min() <= 1


def test_places_by_hand():
    assert_array_equal(_places(np.array([100, 25]), 30), [20, 10])  # roots 10 and 5
    assert_array_equal(_places(np.array([100, 4]), 50), [46, 4])  # no more than there are
    assert_array_equal(_places(np.array([3, 3, 3]), 4), [2, 1, 1])


def test_some_samples_are_embedded_like_all():
    samples = VectorSamples(torch.from_numpy(blobs(20)[0]).float())
    net = MLP(4, 8, 3)
    some = torch.tensor([3, 17])
    torch.testing.assert_close(embed(net, samples, indices=some)[0], embed(net, samples)[0][some])


def corrected(**more):
    features, true = blobs(60)
    return labelmend.correct(features, plant(true, 0.1)[0], **as_arguments({**QUICK, **more}))


def test_a_run_draws_its_map_and_the_folder_gives_it_back(tmp_path):
    result = corrected()
    assert_array_equal(result.map.indices, np.arange(60))
    again = labelmend.load(result.save(tmp_path / "run"))
    assert_array_equal(again.map.indices, result.map.indices)
    assert_array_equal(again.map.positions, result.map.positions)
    assert again.versions == result.versions
    assert_array_equal(corrected().map.positions, result.map.positions)


def test_a_run_folder_without_a_map_loads(tmp_path):
    folder = dataclasses.replace(corrected(), map=None).save(tmp_path / "run")
    assert not (folder / "map.npz").exists()
    assert labelmend.load(folder).map is None


def test_a_map_of_other_samples_is_a_damaged_folder(tmp_path):
    folder = corrected().save(tmp_path / "run")
    np.savez(folder / "map.npz", indices=np.array([60]), positions=np.zeros((1, 2), np.float32))
    with pytest.raises(labelmend.errors.RunFolderError, match=r"map\.npz"):
        labelmend.load(folder)


def test_a_map_that_cannot_be_drawn_costs_a_note_not_the_run(monkeypatch):
    def fail(*_):
        raise MemoryError("too large")

    monkeypatch.setattr(sample_map, "lay_out", fail)
    with pytest.warns(labelmend.errors.LabelmendWarning, match="no map was drawn"):
        result = corrected()
    assert result.map is None
    assert result.warnings == ["no map was drawn (MemoryError: too large)"]
