import dataclasses

import numpy as np
import pytest
import result_by_hand as by_hand
from numpy.testing import assert_allclose, assert_array_equal
from result_by_hand import Painted, Rows, round_record

from labelmend.diagnosis.projection import SampleMap
from labelmend.report.classes import class_noise, flow
from labelmend.report.contents import REST, make_contents, numbers, sentence, shown_rounds
from labelmend.report.map import STATUSES
from labelmend.result import STATUS_TYPE
from labelmend.storage.originals import Originals


def contents(originals=None, **changes):
    return make_contents(by_hand.result(**changes), originals or Originals("they moved"))


# The summary


def test_the_sentence_counts_labels_not_samples():
    said = sentence(by_hand.result())
    for part in (
        "2 of 7 labels (25.0%)",
        "2 were corrected",
        "2 were left for review",
        "2 of them",
        "3 were kept",
        "1 had",
    ):
        assert part in said


def test_what_a_person_decided_is_told():
    status = np.array([*by_hand.STATUS[:7], "reviewed"], dtype=STATUS_TYPE)
    said = by_hand.result(status=status)
    assert "1 was decided by a person" in sentence(said)
    assert ("reviewed", 1) in [(number.name, number.value) for number in numbers(said)]


def test_numbers_say_seldom_things_only_where_there_are_some():
    assert [(n.name, n.value) for n in numbers(by_hand.result())] == [
        ("samples", 8),
        ("estimated wrong", 2),
        ("corrected", 2),
        ("for review", 2),
        ("kept", 3),
        ("filled in", 1),
    ]


# Which labels became which


def test_the_flow_by_hand():
    found = flow(by_hand.result(), by_hand.CLASSES)
    assert found.names == by_hand.CLASSES
    assert_array_equal(found.counts, [[1, 2, 0], [1, 1, 1], [0, 0, 1]])
    assert (found.changes, found.changes_shown, found.n_classes) == (4, 4, 3)


def test_of_many_classes_those_with_most_changes_are_shown_in_their_order():
    found = flow(by_hand.result(), by_hand.CLASSES, most=2)  # dog takes part in 4 changes, cat in 3, owl in 1
    assert found.names == ("cat", "dog")
    assert_array_equal(found.counts, [[1, 2], [1, 1]])
    assert (found.changes, found.changes_shown, found.n_classes) == (4, 3, 3)


def test_pairs_show_the_surest_changes_and_typical_samples_to_compare():
    first = contents().pairs[0]
    assert (first.given, first.corrected, first.count) == ("cat", "dog", 2)
    assert [sample.id for sample in first.samples] == ["id-2", "id-1"]
    assert (first.typical_given.id, first.typical_corrected.id) == ("id-0", "id-3")
    assert sum(pair.count for pair in contents().pairs) == 4


def test_unreadable_pictures_take_no_part_in_the_flow():
    status = np.array(["unreadable", *by_hand.STATUS[1:]], dtype=STATUS_TYPE)
    found = contents(status=status, unreadable={"id-0": "it is empty"})
    assert found.flow.counts.sum() == 6
    assert found.unreadable == (("id-0", "it is empty"),)


# Noise


def test_noise_of_a_class_by_hand():
    found = {noise.name: noise for noise in class_noise(by_hand.result(), by_hand.CLASSES)}
    # After correction there are 2 cats, 3 dogs, 2 owls with a given label. Labels "cat" are expected
    # 2 * .8 from cats and 3 * .4 from dogs; "dog" 2 * .2, 3 * .6 and 2 * .5; "owl" only from owls.
    assert found["cat"].wrong == pytest.approx(1 - 1.6 / 2.8)
    assert found["dog"].wrong == pytest.approx(1 - 1.8 / 3.2)
    assert found["owl"].wrong == pytest.approx(0)
    assert found["owl"].missed == pytest.approx(0.5)
    assert (found["dog"].labels, found["dog"].changed, found["dog"].arrived) == (3, 2, 2)


def test_noise_is_ordered_by_the_number_of_wrong_labels():
    assert [noise.name for noise in contents().noise] == ["dog", "cat", "owl"]


def test_a_class_without_labels_has_no_noise():
    given = by_hand.labels([0, 0, 0, 1, 1, -1, -1, 1], by_hand.as_classes(by_hand.CLASSES))
    owl = next(noise for noise in contents(given=given).noise if noise.name == "owl")
    assert (owl.labels, owl.wrong) == (0, None)


def test_the_noise_of_the_classes_adds_up_to_that_of_the_run():
    """On a run of the real method: sizes times shares is what the run estimates for all labels."""
    import labelmend
    from blobs import QUICK, blobs, plant

    features, true = blobs(300, 4)
    result = labelmend.correct(features, plant(true, 0.2)[0], expert=QUICK)
    found = class_noise(result, tuple(map(str, range(4))))
    wrong = sum((noise.wrong or 0) * noise.labels for noise in found)
    assert wrong / len(result) == pytest.approx(result.noise_rate, abs=0.02)


# Rounds


def test_rounds_carry_the_history():
    rounds = contents().rounds
    assert [one.changes for one in rounds] == [5, 1, 0]
    assert [one.graph_similarity for one in rounds] == [pytest.approx(0.6), None, pytest.approx(0.8)]
    assert rounds[0].histogram[-1] == 8


def test_histograms_are_of_the_first_the_last_and_some_between_that_voted():
    history = [round_record(i, similarity=(0.5,) if i % 2 else None) for i in range(1, 72)]
    rounds = shown_rounds(contents(history=history).rounds)
    assert len(rounds) == 6
    assert (rounds[0].index, rounds[-1].index) == (1, 71)
    assert all(one.graph_similarity is not None for one in rounds)
    assert shown_rounds(()) == ()


# The map


def test_points_that_matter_most_are_drawn_last():
    found = contents().map
    assert [STATUSES[code] for code in found.status] == [
        *["kept"] * 3,
        "filled",
        "review",
        "review",
        *["corrected"] * 2,
    ]
    assert found.ids == ("id-0", "id-3", "id-5", "id-6", "id-4", "id-7", "id-1", "id-2")
    assert_allclose(found.x[:2], [0, 6 / 15], atol=1e-6)
    assert_array_equal(found.given, [0, 1, 2, -1, 1, 1, 0, 0])


def test_points_of_a_map_that_is_a_part_name_their_own_samples():
    part = SampleMap(np.array([4, 6]), np.zeros((2, 2), np.float32))
    found = contents(map=part).map
    assert found.ids == ("id-6", "id-4")
    assert found.n_samples == 8


def test_pictures_that_could_not_be_read_are_not_missed_on_the_map():
    status = np.array(["unreadable", *by_hand.STATUS[1:]], dtype=STATUS_TYPE)
    readable = SampleMap(np.arange(1, 8), np.zeros((7, 2), np.float32))
    assert contents(status=status, map=readable).map.n_samples == 7


def test_no_map_is_no_map():
    assert contents(map=None).map is None


def test_rows_of_the_map_leave_out_what_is_shown_anyhow():
    assert contents(Rows()).map.rows[0] == "width width0, height height0"


def test_pictures_of_the_map_are_those_of_its_points():
    found = contents(Painted()).map
    assert found.rows == ()
    assert [cell >= 0 for cell in found.atlas.cells] == [name != "id-4" for name in found.ids]


# Galleries


def test_galleries_follow_their_rules():
    surest, hardest, unfit = contents().galleries
    assert [sample.id for sample in surest.samples] == ["id-2", "id-1"]
    assert [sample.id for sample in hardest.samples] == ["id-7", "id-4"]
    # No half of the votes: 4 and 7. Around 4 lie a cat and an owl, around 7 a cat and an owl: no majority either.
    assert [sample.id for sample in unfit.samples] == ["id-7", "id-4"]
    assert (surest.total, hardest.total, unfit.total) == (2, 2, 2)


def test_a_sample_among_its_own_kind_fits_whatever_the_votes_say():
    neighbors = np.array(by_hand.NEIGHBORS, dtype=np.int32)
    neighbors[7] = [1, 2]  # two dogs
    neighbors[4] = [-1, -1]  # nobody
    unfit = contents(neighbors=neighbors).galleries[2]
    assert [sample.id for sample in unfit.samples] == ["id-4"]


def test_a_gallery_says_how_many_there_are_and_shows_some():
    gallery = make_contents(by_hand.large_result(500, 5, 50), Originals()).galleries[0]
    assert gallery.total > len(gallery.samples) == 18


def test_what_is_known_about_a_sample():
    sample = contents(Rows()).galleries[1].samples[1]
    assert (sample.id, sample.given, sample.corrected, sample.status) == ("id-4", "dog", "owl", "review")
    assert sample.votes == (("owl", pytest.approx(0.4)), ("cat", pytest.approx(0.3)), ("dog", pytest.approx(0.3)))
    assert sample.neighbors == ("cat", 1, 2)
    assert sample.cells == (("width", "width4"), ("height", "height4"))
    assert (sample.runner_up, sample.picture) == ("dog", None)


def test_many_columns_are_counted_not_shown():
    wide = Rows([f"column {i}" for i in range(40)])
    sample = contents(wide).galleries[0].samples[0]
    assert (len(sample.cells), sample.more_cells) == (12, 28)


def test_a_filled_sample_had_no_label():
    status = np.array([*by_hand.STATUS[:6], "review", "kept"], dtype=STATUS_TYPE)
    hardest = contents(status=status).galleries[1]
    assert [(sample.id, sample.given) for sample in hardest.samples] == [("id-4", "dog"), ("id-6", None)]


# How it was made


def test_stages_add_up_to_the_seconds_of_the_run():
    stages = contents().making.stages
    assert [stage.seconds for stage in stages] == [3.0, 1.5, 1.5]
    assert stages[-1].name == REST


def test_all_parameters_are_there_with_their_values():
    from labelmend.config import RunConfig

    made = contents().making
    named = {parameter.name: parameter.value for parameter in made.parameters}
    assert set(named) == {entry.name for entry in dataclasses.fields(RunConfig)}
    assert (named["seed"], named["mixup"], named["resplit"], named["weights"]) == ("7", "off", "on", "none")
    assert made.repeat.startswith("labelmend correct")
    assert made.versions == (("labelmend", "9.9"), ("torch", "1.2"))


def test_why_samples_cannot_be_shown_is_told():
    assert (contents().kind, contents().without) == ("none", "they moved")
