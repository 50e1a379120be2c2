import pytest

from bench.paper.experiment import Cell, Measured, Result, identity
from bench.paper.results import append_result, read_results
from labelmend.errors import DataError


def result(seed=0, row="default", **settings):
    cell = Cell(row, "symmetric 50 %", "digits", seed, 15, settings)
    return Result("resplit", cell, Measured({"test_last": 0.5}, {"test": [0.25, 0.5]}), {"cpu": "x"}, {}, "2025-01-01")


def test_results_come_back_as_they_were_written(tmp_path):
    path = tmp_path / "deep" / "paper.jsonl"
    written = [result(0, preset="paper"), result(1, row="žluťoučký")]
    for one in written:
        append_result(path, one)
    assert read_results(path) == written
    assert read_results(tmp_path / "nothing.jsonl") == []


@pytest.mark.parametrize("kept", [1, 60, -2])
def test_a_torn_last_line_is_ignored_and_cut_away(tmp_path, kept):
    path = tmp_path / "paper.jsonl"
    append_result(path, result(0))
    whole = path.read_bytes()
    append_result(path, result(1))
    path.write_bytes(whole + path.read_bytes()[len(whole) :][:kept])
    assert read_results(path) == [result(0)]
    append_result(path, result(2))
    assert read_results(path) == [result(0), result(2)]
    assert path.read_bytes().startswith(whole)


def test_a_whole_last_line_without_its_end_counts(tmp_path):
    path = tmp_path / "paper.jsonl"
    append_result(path, result(0))
    path.write_bytes(path.read_bytes()[:-1])
    assert read_results(path) == [result(0)]
    append_result(path, result(1))
    assert read_results(path) == [result(0), result(1)]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"version": 1', "line 2 of .* must be a result .* It is not JSON"),
        (b"\xff\xfe", "line 2 of .* It is not JSON"),
        (b"[1]", "line 2 of .*version 1. Got '\\[1\\]' instead"),
        (b'{"version": 7}', "line 2 of .*version 1. Got"),
        (b'{"version": 1, "row": 3}', "experiment, row, column, .* is missing or of another type"),
    ],
)
def test_a_line_that_is_no_result_is_an_error(tmp_path, line, message):
    path = tmp_path / "paper.jsonl"
    append_result(path, result(0))
    path.write_bytes(path.read_bytes() + line + b"\n")
    with pytest.raises(DataError, match=message):
        read_results(path)


def test_a_folder_is_no_file_of_results(tmp_path):
    with pytest.raises(DataError, match="must be a file of results"):
        read_results(tmp_path)


def test_runs_that_would_measure_the_same_have_one_identity():
    one = identity("resplit", result(milestones=(0.5,), preset="paper").cell, False)
    assert one == identity("resplit", result(preset="paper", milestones=[0.5]).cell, False)
    others = [
        identity("patches", result().cell, False),
        identity("resplit", result().cell, True),
        identity("resplit", result(1).cell, False),
        identity("resplit", result(preset="plus").cell, False),
    ]
    assert len({one, identity("resplit", result().cell, False), *others}) == 6
