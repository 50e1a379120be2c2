import sqlite3
import subprocess
import sys
import threading

import numpy as np
import pytest

from labelmend.errors import RunFolderError
from labelmend.review.decisions import (
    CANNOT_TELL,
    DECIDED,
    LABEL,
    OPEN,
    SKIP,
    SKIPPED,
    UNDO,
    UNSURE,
    Choice,
    Decisions,
    Subject,
    read_log,
)

SUBJECT = Subject(np.array([f"s{i}" for i in range(10)]), ["cat", "dog"], "abc")


@pytest.fixture
def log(tmp_path):
    opened = Decisions(tmp_path / "review.sqlite", SUBJECT)
    yield opened
    opened.close()


def again(log):
    """What a fresh reader sees."""
    return read_log(log.path, SUBJECT)


def label(sample, code, seen=0):
    return Choice(sample, LABEL, code, seen)


def test_a_decision_is_on_disk_when_it_is_told(log):
    outcome = log.decide([label(3, 1)], "tab", "r1")
    assert [(line.sample, line.kind, line.code) for line in outcome.made] == [(3, LABEL, 1)]
    for standing in (log.standing, again(log)):
        assert standing.state.tolist() == [OPEN] * 3 + [DECIDED] + [OPEN] * 6
        assert standing.code[3] == 1
        assert standing.number[3] == outcome.made[0].number


def test_it_is_synchronous_and_written_ahead(log):
    assert log._base.execute("PRAGMA synchronous").fetchone() == (2,)
    assert log._base.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_the_kinds_of_decisions_stand_as_what_they_are(log):
    log.decide([label(0, 0), Choice(1, UNSURE), Choice(2, SKIP)], "tab", "r1")
    assert log.standing.state[:4].tolist() == [DECIDED, CANNOT_TELL, SKIPPED, OPEN]
    assert log.standing.code[:3].tolist() == [0, -1, -1]


def test_undo_brings_back_what_stood_before(log):
    first = log.decide([label(3, 1)], "tab", "r1").made[0]
    second = log.decide([label(3, 0, seen=first.number)], "tab", "r2").made[0]
    log.undo(second.step, "tab", "r3")
    assert again(log).code[3] == 1
    log.undo(first.step, "tab", "r4")
    assert again(log).state[3] == OPEN


def test_a_step_of_many_is_undone_at_once(log):
    step = log.decide([label(i, 0) for i in range(5)], "tab", "r1").made[0].step
    outcome = log.undo(step, "tab", "r2")
    assert len(outcome.made) == 5
    assert {line.kind for line in outcome.made} == {UNDO}
    assert (again(log).state == OPEN).all()


def test_undo_twice_takes_back_nothing_more(log):
    step = log.decide([label(1, 0)], "tab", "r1").made[0].step
    log.undo(step, "tab", "r2")
    assert log.undo(step, "tab", "r3").made == []


def test_undo_leaves_what_was_decided_again_since(log):
    old = log.decide([label(1, 0), label(2, 0)], "one", "r1").made
    log.decide([label(1, 1, seen=old[0].number)], "two", "r2")
    outcome = log.undo(old[0].step, "one", "r3")
    assert [line.sample for line in outcome.made] == [2]
    assert outcome.refused == [1]
    assert again(log).code[1] == 1


def test_what_was_decided_meanwhile_is_not_overwritten_unknowingly(log):
    first = log.decide([label(3, 1)], "one", "r1").made[0]
    outcome = log.decide([label(3, 0), label(4, 0)], "two", "r2")
    assert outcome.refused == [3]
    assert [line.sample for line in outcome.made] == [4]
    assert log.standing.code[3] == 1
    assert log.decide([label(3, 0, seen=first.number)], "two", "r3").refused == []
    assert again(log).code[3] == 0


def test_a_request_that_comes_twice_is_done_once(log):
    first = log.decide([label(3, 1)], "tab", "r1")
    second = log.decide([label(3, 1)], "tab", "r1")
    assert second.made == first.made
    assert second.refused == []
    assert log.standing.last == 1


def test_two_processes_see_each_other(log):
    other = Decisions(log.path, SUBJECT)
    other.decide([label(0, 1)], "other", "x")
    assert log.decide([label(0, 0)], "tab", "y").refused == [0]
    assert log.standing.code[0] == 1
    other.close()


def test_many_threads_lose_nothing(log):
    def work(thread):
        for turn in range(5):
            log.decide([Choice(thread, SKIP, None, int(log.standing.number[thread]))], f"t{thread}", f"{thread}-{turn}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert log.standing.last == 40
    assert again(log).last == 40


def test_the_log_only_grows(log):
    log.decide([label(0, 0)], "tab", "r1")
    for change in ("UPDATE log SET code = 1", "DELETE FROM log"):
        with pytest.raises(sqlite3.IntegrityError, match="only grows"):
            log._base.execute(change)


def test_a_step_is_whole_or_absent(log, monkeypatch):
    monkeypatch.setattr(SUBJECT.__class__, "classes", property(lambda self: ["cat"]), raising=False)
    with pytest.raises(IndexError):
        log.decide([label(0, 0), label(1, 1)], "tab", "r1")
    monkeypatch.undo()
    assert log.standing.last == 0
    assert again(log).last == 0
    log.decide([label(0, 0)], "tab", "r2")
    assert again(log).last == 1


def test_decisions_survive_kill_9(tmp_path):
    program = f"""
import os, signal, sys
import numpy as np
from pathlib import Path
from labelmend.review.decisions import Choice, Decisions, Subject
subject = Subject(np.array([f"s{{i}}" for i in range(10)]), ["cat", "dog"], "abc")
log = Decisions(Path({str(tmp_path / "review.sqlite")!r}), subject)
for i in range(7):
    log.decide([Choice(i, "label", i % 2)], "tab", str(i))
os.kill(os.getpid(), signal.SIGKILL)
"""
    ended = subprocess.run([sys.executable, "-c", program])
    assert ended.returncode == -9
    standing = read_log(tmp_path / "review.sqlite", SUBJECT)
    assert standing.code[:7].tolist() == [0, 1, 0, 1, 0, 1, 0]


def test_changes_since_a_line_are_told(log):
    log.decide([label(0, 0)], "tab", "r1")
    log.decide([label(1, 0), label(2, 0)], "tab", "r2")
    assert sorted(log.changed_since(1)) == [1, 2]
    assert log.changed_since(3) == []
    assert len(log.times(10)) == 3


def test_the_log_can_be_read_as_it_was(log):
    log.decide([label(0, 0)], "tab", "r1")
    log.decide([label(0, 1, seen=1)], "tab", "r2")
    assert read_log(log.path, SUBJECT, until=1).code[0] == 0
    assert read_log(log.path, SUBJECT).code[0] == 1


def test_the_last_step_of_each_tab_is_known(log):
    assert log.standing.last_steps() == {}
    log.decide([label(0, 0), label(1, 0)], "one", "r1")
    log.decide([label(2, 0)], "two", "r2")
    log.decide([label(3, 0)], "one", "r3")
    assert log.standing.last_steps() == {"one": 4, "two": 3}
    log.undo(4, "one", "r4")
    assert log.standing.last_steps() == {"one": 1, "two": 3}


@pytest.mark.parametrize("in_use", [False, True])
def test_a_log_is_read_where_nothing_can_be_written(log, monkeypatch, in_use):
    log.decide([label(3, 1)], "tab", "r1")
    if not in_use:
        log.close()
    before = sorted(path.name for path in log.path.parent.iterdir())
    monkeypatch.setattr("labelmend.review.decisions.os.access", lambda *_: False)
    monkeypatch.setattr("labelmend.review.decisions._connect", None)  # which would write
    assert again(log).state.tolist() == [OPEN] * 3 + [DECIDED] + [OPEN] * 6
    assert sorted(path.name for path in log.path.parent.iterdir()) == before


def test_decisions_of_another_run_are_refused(log):
    other = Subject(SUBJECT.ids, ["cat", "cow"], "abc")
    for attempt in (Decisions, read_log):
        with pytest.raises(RunFolderError, match="made for other data"):
            attempt(log.path, other)


def test_a_damaged_log_is_told(tmp_path):
    (tmp_path / "review.sqlite").write_bytes(b"not a data base at all" * 100)
    for attempt in (Decisions, read_log):
        with pytest.raises(RunFolderError, match=r"review\.sqlite"):
            attempt(tmp_path / "review.sqlite", SUBJECT)


def test_without_a_log_nothing_is_decided_and_none_is_made(tmp_path):
    assert (read_log(tmp_path / "review.sqlite", SUBJECT).state == OPEN).all()
    assert not (tmp_path / "review.sqlite").exists()


def test_half_characters_of_damaged_names_are_spelled_out(tmp_path):
    subject = Subject(np.array(["\udc80.jpg"], dtype=object), ["a", "b"], "f")
    log = Decisions(tmp_path / "review.sqlite", subject)
    log.decide([label(0, 1)], "tab", "r")
    assert log._base.execute("SELECT id, label FROM log").fetchone() == ("\\udc80.jpg", '"b"')
    log.close()


# Files that go away


def copied(log, place):
    """The one file, as somebody copies it who does not know of the other."""
    place.write_bytes(log.path.read_bytes())
    return read_log(place, SUBJECT)


def test_a_copy_of_the_file_alone_holds_every_decision(log, tmp_path):
    for number in range(3):
        log.decide([label(number, 1)], "tab", f"r{number}")
        assert copied(log, tmp_path / f"copy{number}.sqlite").state.sum() == number + 1


@pytest.mark.parametrize("ending", ["", "-wal"])
def test_nothing_is_acknowledged_once_a_file_was_taken_away(log, ending):
    log.decide([label(0, 1)], "tab", "r1")
    log.path.with_name(log.path.name + ending).unlink()
    for act in (lambda: log.decide([label(1, 1)], "tab", "r2"), lambda: log.undo(1, "tab", "r3"), log.refresh):
        with pytest.raises(RunFolderError, match=r"review\.sqlite"):
            act()
    assert log.standing.state.tolist() == [DECIDED] + [OPEN] * 9


def test_nothing_is_acknowledged_into_a_file_that_was_replaced(log):
    log.path.rename(log.path.with_name("aside.sqlite"))
    Decisions(log.path, SUBJECT).close()
    with pytest.raises(RunFolderError, match=r"review\.sqlite"):
        log.decide([label(1, 1)], "tab", "r1")
    assert not again(log).state.any()


def test_a_file_that_goes_between_writing_and_telling_is_not_told_as_written(log, monkeypatch):
    write = log._write

    def write_and_lose(*arguments):
        made = write(*arguments)
        log.path.unlink()
        return made

    monkeypatch.setattr(log, "_write", write_and_lose)
    with pytest.raises(RunFolderError):
        log.decide([label(1, 1)], "tab", "r1")
    assert not log.standing.state.any()
