import dataclasses
import io
from pathlib import Path

import pytest

from labelmend.cli import terminal
from labelmend.cli.dry_run import dry_run_lines
from labelmend.cli.terminal import ProgressLine, summary_lines
from labelmend.ensemble.records import RoundRecord
from labelmend.report.wording import printable, seconds_in_words, size_in_words

RECORD = RoundRecord(
    round_index=1,
    n_rounds=4,
    label_changes=1234,
    differ_from_given=0,
    mean_certainty=0.5,
    certainty_histogram=[],
    correction=None,
    corrected_loss=0.0,
    noisy_loss=None,
)
SUMMARY = {
    "rows": 12_345,
    "classes": 10,
    "labelled": 12_000,
    "noise_rate": 0.17,
    "estimated_wrong": 2040,
    "changed": 1900,
    "changed_for_review": 100,
    "kept": 9_900,
    "corrected": 1_800,
    "review": 300,
    "reviewed": 0,
    "filled": 345,
    "unreadable": 0,
    "confused_pairs": [{"given": "cat", "corrected": "dog", "count": 1_000}, {"given": 3, "corrected": 8, "count": 7}],
    "seconds": 75.0,
    "warnings": ["2 classes are tiny"],
}


class Terminal(io.StringIO):
    def isatty(self):
        return True

    def shown(self):
        """The line as it stands: what came after the last return to the start of the line."""
        return self.getvalue().split("\r\x1b[K")[-1]


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(terminal.time, "monotonic", lambda: now[0])
    return now


def test_a_terminal_shows_round_stage_changes_and_time_left(clock):
    screen = Terminal()
    line = ProgressLine(screen)
    line.stage("warm-up")
    assert screen.shown() == "warm-up"
    clock[0] += 1000  # the warm-up does not count
    line.stage("embed")
    assert screen.shown() == "round 1  embed"
    clock[0] += 20
    line.round(RECORD)
    line.stage("graphs")
    assert screen.shown() == "round 2/4  graphs      1,234 label changes  rounds end in about 1 min"
    clock[0] += 10
    line.round(dataclasses.replace(RECORD, round_index=3, label_changes=1))
    line.stage("vote")
    assert screen.shown() == "round 4/4  vote        1 label change  rounds end in about 10 s"


def test_after_the_last_round_no_time_is_promised(clock):
    screen = Terminal()
    line = ProgressLine(screen)
    line.stage("warm-up")
    line.stage("embed")
    line.round(dataclasses.replace(RECORD, round_index=4))
    line.stage("decide")
    assert screen.shown() == "decide"


def test_after_a_resume_the_time_left_follows_the_rounds_seen_since(clock):
    screen = Terminal()
    line = ProgressLine(screen)
    line.stage("decoding pictures")
    clock[0] += 1000
    line.stage("resuming after round 60 of 80")
    assert screen.shown() == "resuming after round 60 of 80"
    line.stage("embed")
    assert screen.shown() == "resuming after round 60 of 80  embed"
    clock[0] += 10
    line.round(dataclasses.replace(RECORD, round_index=61, n_rounds=80))
    line.stage("embed")
    assert screen.shown() == "round 62/80  embed       1,234 label changes  rounds end in about 3 min"


def test_a_file_says_where_a_run_goes_on(clock):
    log = io.StringIO()
    line = ProgressLine(log)
    line.stage("resuming after round 2 of 4")
    line.stage("embed")
    line.round(dataclasses.replace(RECORD, round_index=3))
    assert log.getvalue() == "resuming after round 2 of 4\nround 3/4  1,234 label changes  0.0 s\n"


def test_the_time_left_ends_with_the_time_limit(clock):
    screen = Terminal()
    line = ProgressLine(screen, ends=clock[0] + 50)
    line.stage("warm-up")
    line.stage("embed")
    clock[0] += 20
    line.round(RECORD)
    line.stage("embed")
    assert screen.shown().endswith("rounds end in about 30 s")
    line.stage("decide")  # after 1 round of 4
    assert screen.shown() == "decide"
    line.stage("fine-tune")
    assert screen.shown() == "fine-tune"


def test_a_terminal_is_left_with_an_empty_line(clock):
    screen = Terminal()
    line = ProgressLine(screen)
    line.stage("warm-up")
    line.finish()
    assert screen.shown() == ""
    assert "\n" not in screen.getvalue()


def test_a_line_is_cut_to_the_width_of_the_terminal(clock, monkeypatch):
    monkeypatch.setattr(terminal, "_width", lambda stream: 12)
    screen = Terminal()
    ProgressLine(screen).stage("a stage with a very long name")
    assert len(screen.shown()) == 11


def test_a_file_gets_one_plain_line_per_round(clock):
    log = io.StringIO()
    line = ProgressLine(log)
    line.stage("warm-up")
    clock[0] += 2.5
    line.stage("embed")
    line.round(RECORD)
    line.round(dataclasses.replace(RECORD, round_index=2, label_changes=0))
    line.finish()
    assert log.getvalue() == "round 1/4  1,234 label changes  2.5 s\nround 2/4  0 label changes  2.5 s\n"


def test_what_comes_before_the_warm_up_is_shown_by_its_name_and_not_counted(clock):
    screen = Terminal()
    line = ProgressLine(screen)
    line.stage("decoding pictures (5 of 10)")
    assert screen.shown() == "decoding pictures (5 of 10)"
    clock[0] += 1000
    line.stage("warm-up")
    line.stage("embed")
    clock[0] += 20
    line.round(RECORD)
    line.stage("graphs")
    assert screen.shown().endswith("rounds end in about 1 min")


def test_a_file_gets_one_line_for_each_stage_before_the_warm_up(clock):
    log = io.StringIO()
    line = ProgressLine(log)
    for stage in ("decoding pictures (0 of 10)", "decoding pictures (5 of 10)", "embedding pictures (1 of 10)"):
        line.stage(stage)
    line.stage("warm-up")
    assert log.getvalue() == "decoding pictures\nembedding pictures\n"


def figures(lines):
    """The counts of a summary by their names."""
    rows = [line.split("  ") for line in lines]
    rows = [[cell.strip() for cell in row if cell.strip()] for row in rows]
    return {row[0]: row[1] for row in rows if len(row) > 1}


def test_the_summary_says_where_the_reasons_are_for_pictures_that_could_not_be_read():
    lines = summary_lines({**SUMMARY, "unreadable": 12}, Path("run"))
    (line,) = [line for line in lines if "could not be read" in line]
    assert " 12 " in line
    assert "run/unreadable.csv" in line
    assert not any("could not be read" in line for line in summary_lines(SUMMARY, Path("run")))


PICTURES = {
    "mode": "train",
    "pictures": 1_234,
    "size": [256, 256],
    "classes": 3,
    "unreadable": 2,
    "missing_labels": 0,
    "trusted": 0,
    "estimated_bytes": 500 * 2**20,
    "estimated_seconds": None,
    "cache": "/cache",
    "cache_bytes": 3 * 2**30,
    "parameters": {
        "n_rounds": 80,
        "graph_k": 50,
        "fine_graph_k": 50,
        "alpha": 0.5,
        "fine_alpha": 0.5,
        "hidden": 256,
        "width": 64,
    },
    "warnings": [],
}


def test_the_dry_run_of_pictures_says_how_and_at_what_size():
    lines = dry_run_lines(PICTURES)
    for line, words in zip(
        lines,
        (
            ["1,234 pictures", "3 classes", "trained", "256 x 256 pixels"],
            ["2 ", "unreadable"],
            ["0 labels missing", "0 trusted"],
            ["500 MiB", "time unknown", "3.0 GiB", "/cache"],
            ["rounds 80", "neighbours 50", "alpha 0.50", "width 64"],
            ["dry run", "nothing"],
        ),
        strict=True,
    ):
        assert all(word in line for word in words), line
    embedded = {**PICTURES, "mode": "embed", "backbone": "hf:some", "unreadable": 0, "estimated_seconds": 60.0}
    lines = dry_run_lines(embedded)
    assert "embedded by hf:some at 256 x 256 pixels" in lines[0]
    assert "1 min on two CPU cores" in lines[2]
    assert lines[3].endswith("width 256")
    apart = {**embedded, "parameters": {**PICTURES["parameters"], "assume": "apart"}}
    assert "assume=apart" in dry_run_lines(apart)[2]


@pytest.mark.parametrize("stream", [Terminal, io.StringIO])
def test_quiet_says_nothing(stream):
    screen = stream()
    line = ProgressLine(screen, quiet=True)
    line.stage("warm-up")
    line.round(RECORD)
    line.finish()
    assert screen.getvalue() == ""


def test_the_summary_says_what_a_person_asks_first():
    lines = summary_lines(SUMMARY, Path("run"))
    assert lines[0] == "12,345 rows, 10 classes, 1 min"
    assert figures(lines[1:14]) == {
        "estimated wrong labels": "2,040",
        "labels changed": "1,900",
        "corrected": "1,800",
        "best guess": "100",
        "for review": "300",
        "kept": "9,900",
        "filled in": "345",
        "cat -> dog": "1,000",
        "3 -> 8": "7",
    }
    text = "\n".join(lines)
    for words in ("17.0% of the labels", "15.8% of the labels", "note: 2 classes are tiny", "run/labels.csv"):
        assert words in text
    assert lines[-1].endswith("labelmend review run")


def test_the_summary_leaves_out_what_there_is_not():
    nothing = {**SUMMARY, "filled": 0, "labelled": 0, "corrected": 0, "confused_pairs": [], "warnings": []}
    text = "\n".join(summary_lines(nothing, None))
    assert not any(word in text for word in ("filled", "confused", "note", "labels.csv", "\n\n\n"))
    assert "0.0% of the labels" in text


def test_names_from_the_data_cannot_move_the_cursor_or_flood_the_line():
    pair = {"given": "\x1b[2J\r\nbad", "corrected": "x" * 500, "count": 1}
    lines = summary_lines({**SUMMARY, "confused_pairs": [pair], "warnings": ["a\nb"]}, None)
    assert all(line.isprintable() and len(line) < 120 for line in lines)
    assert printable("naïve 漢字 🙂") == "naïve 漢字 🙂"


def test_the_dry_run_says_what_a_run_would_do_and_cost():
    facts = {
        "rows": 50_000,
        "columns": 128,
        "classes": 10,
        "missing_labels": 5,
        "trusted": 1,
        "estimated_bytes": 854 * 2**20,
        "estimated_seconds": 40.2,
        "parameters": {
            "n_rounds": 3,
            "graph_k": 50,
            "fine_graph_k": 50,
            "alpha": 0.5,
            "fine_alpha": 0.5,
            "hidden": 256,
        },
        "warnings": ["left out 2 row(s)"],
    }
    lines = dry_run_lines(facts)
    assert lines[:2] == ["50,000 rows x 128 columns, 10 classes", "5 labels missing, 1 trusted"]
    assert "854 MiB" in lines[2]
    assert "40 s on two CPU cores" in lines[2]
    assert lines[3:5] == ["rounds 3, neighbours 50, alpha 0.50, width 256", "note: left out 2 row(s)"]
    assert lines[5].startswith("dry run")


@pytest.mark.parametrize(
    ("seconds", "words"), [(0, "1 s"), (1.4, "1 s"), (59, "59 s"), (60, "1 min"), (3000, "50 min"), (5400, "1.5 h")]
)
def test_seconds_in_words(seconds, words):
    assert seconds_in_words(seconds) == words


@pytest.mark.parametrize(("n_bytes", "words"), [(5 * 2**20, "5 MiB"), (2**30, "1.0 GiB"), (2.5 * 2**30, "2.5 GiB")])
def test_size_in_words(n_bytes, words):
    assert size_in_words(n_bytes) == words


AUDIT = {
    "planted": 200,
    "found": {"value": 0.9, "low": 0.85, "high": 0.934, "count": 200},
    "mended": {"value": 0.8, "low": 0.74, "high": 0.85, "count": 200},
    "broken": {"value": 0.01, "low": 0.0, "high": 0.02, "count": 9000},
    "calibration_error_before": 0.051,
    "calibration_error": 0.0123,
    "temperature": 1.5,
}


def test_the_summary_says_what_it_expects_to_have_broken_and_what_an_audit_showed():
    points = [{"reviewed": 0, "left": 120.4}, {"reviewed": 200, "left": 31.0}]
    lines = summary_lines({**SUMMARY, "expected_broken": 12.4, "audit": AUDIT, "review_gain": points}, None)
    assert any(line.startswith("good labels broken            12  ") for line in lines)
    found = figures(lines)
    assert "audit: 200 errors planted" in "\n".join(lines)
    assert found["found"] == "90.0 % (85.0 to 93.4)"
    assert "0.051 before, 0.012 now; temperature 1.50" in found["calibration error"]
    (gain,) = [line for line in lines if line.startswith("expected wrong labels")]
    assert all(words in gain for words in ("120", "31", "200 samples"))
    few = summary_lines({**SUMMARY, "audit": {**AUDIT, "temperature": None}}, None)
    assert "too few errors" in figures(few)["calibration error"]
