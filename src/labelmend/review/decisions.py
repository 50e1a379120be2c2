"""The log of a person's decisions, RUN/review.sqlite: on disk before the page shows them as saved; it only grows.

Every line is also in the file itself, not only in SQLite's -wal beside it: a copy of the one file holds the review. A
file that was moved or replaced while it was open gets no more lines, and the page says so.

A decision is a line, and so is an undo; no line is ever changed or removed, so undo, two tabs, two servers and a kill
at any moment are all the same case: read the lines in order. The last line about a sample that was not undone stands.

    log    number, step (number of the first line written together with this one), sample (its position in the run),
           id, kind (label | unsure | skip | undo), code (position of the label in the classes), label (its text),
           undoes (number of the line taken back), request (of the page: a request repeated is done once), tab, at
    about  the run the decisions belong to

Knows positions, class codes and SQLite; does not know the run's files, queues or HTTP.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelmend.errors import RunFolderError
from labelmend.files.reading import checked_fields, parse_json, regular_file
from labelmend.files.writing import flush_names
from labelmend.result import Correction, plain_value
from labelmend.storage.run_files import as_text

FILE = "review.sqlite"
FORMAT_VERSION = 1
LABEL, UNSURE, SKIP, UNDO = "label", "unsure", "skip", "undo"
OPEN, DECIDED, CANNOT_TELL, SKIPPED = range(4)  # how a sample stands
STANDING = {LABEL: DECIDED, UNSURE: CANNOT_TELL, SKIP: SKIPPED}
WAIT_SECONDS = 10  # for another process that writes
SCHEMA = """
CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS log (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    step INTEGER NOT NULL,
    sample INTEGER NOT NULL,
    id TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('label', 'unsure', 'skip', 'undo')),
    code INTEGER,
    label TEXT,
    undoes INTEGER,
    request TEXT NOT NULL,
    tab TEXT NOT NULL,
    at REAL NOT NULL
);
CREATE INDEX IF NOT EXISTS log_by_request ON log (request);
CREATE TRIGGER IF NOT EXISTS log_is_not_changed BEFORE UPDATE ON log
    BEGIN SELECT RAISE(ABORT, 'the log of decisions only grows'); END;
CREATE TRIGGER IF NOT EXISTS log_is_not_shortened BEFORE DELETE ON log
    BEGIN SELECT RAISE(ABORT, 'the log of decisions only grows'); END;
"""
COLUMNS = "number, step, sample, kind, code, undoes, request, tab, at"


@dataclass(frozen=True)
class Line:
    """One line of the log."""

    number: int
    step: int
    sample: int
    kind: str
    code: int | None
    undoes: int | None
    request: str
    tab: str
    at: float


@dataclass(frozen=True)
class Choice:
    """What a person wants. `seen` is the number of the line that stood when they chose; 0: none did."""

    sample: int
    kind: str
    code: int | None = None
    seen: int = 0


@dataclass(frozen=True)
class Written:
    """The new lines, and the samples left alone because another line stands there than the person saw."""

    made: list[Line]
    refused: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Subject:
    """The run that decisions belong to, as far as they need to know it."""

    ids: NDArray[Any]
    classes: list[Any]  # plain values
    fingerprint: str

    @classmethod
    def of(cls, result: Correction) -> Subject:
        return cls(result.ids, [plain_value(value) for value in result.classes], result.fingerprint)


class Standing:
    """What stands after the lines so far: one state, code and line number per sample."""

    def __init__(self, n: int) -> None:
        self.state = np.zeros(n, dtype=np.int8)
        self.code = np.full(n, -1, dtype=np.int64)
        self.number = np.zeros(n, dtype=np.int64)
        self.last = 0  # number of the last line read
        self._lines: dict[int, list[Line]] = {}  # by sample: those not taken back, the last one stands
        self._steps: dict[int, list[Line]] = {}  # lines not taken back, by step, the steps in order

    def add(self, line: Line) -> None:
        self.last = line.number
        held = self._lines.setdefault(line.sample, [])
        if line.kind == UNDO:
            for gone in [old for old in held if old.number == line.undoes]:
                held.remove(gone)
                self._steps[gone.step].remove(gone)
        else:
            held.append(line)
            self._steps.setdefault(line.step, []).append(line)
        top = self.line(line.sample)
        self.state[line.sample] = OPEN if top is None else STANDING[top.kind]
        self.code[line.sample] = -1 if top is None or top.code is None else top.code
        self.number[line.sample] = 0 if top is None else top.number

    def line(self, sample: int) -> Line | None:
        held = self._lines.get(sample)
        return held[-1] if held else None

    def step(self, number: int) -> list[Line]:
        """The lines of a step that were not taken back."""
        return list(self._steps.get(number, ()))

    def last_steps(self) -> dict[str, int]:
        """Of each tab, the last step that was not taken back whole."""
        return {lines[0].tab: step for step, lines in self._steps.items() if lines}


class Decisions:
    """The log, open for writing. Safe to use from several threads, and beside other processes."""

    def __init__(self, path: Path, subject: Subject) -> None:
        self.path, self.subject = path, subject
        self.standing = Standing(len(subject.ids))
        self._lock = threading.RLock()
        self._base = _connect(path)
        try:
            self._create()
        except BaseException:
            self._base.close()
            raise
        self._files = {place: _identity(place) for place in (path, _ahead(path))}
        self.refresh()

    def check_in_place(self) -> None:
        """An error where the files are not those that were opened: what is written to those is lost."""
        if any(_identity(place) != known for place, known in self._files.items()):
            raise RunFolderError(
                f"decisions must be kept in {self.path}. The file was moved, deleted or replaced after this review "
                "was opened, so nothing can be decided here. Put the file back if you still have it, and start the "
                "review again."
            )

    def close(self) -> None:
        with self._lock:
            self._base.close()

    def refresh(self) -> None:
        """Read what other processes have written."""
        with self._lock:
            self.check_in_place()
            for line in _lines(self._base, self.standing.last, self.path, self.subject):
                self.standing.add(line)

    def decide(self, choices: Sequence[Choice], tab: str, request: str) -> Written:
        """Write the choices in one step. What was decided otherwise since the person looked is left alone."""
        with self._writing():
            if repeated := self._of_request(request):
                return Written(repeated)
            stale = {c.sample for c in choices if int(self.standing.number[c.sample]) != c.seen}
            fresh = [c for c in choices if c.sample not in stale]
            rows = [(c.sample, c.kind, c.code, None) for c in fresh]
            return Written(self._write(rows, tab, request), sorted(stale))

    def undo(self, step: int, tab: str, request: str) -> Written:
        """Take a step back, except what was decided again since."""
        with self._writing():
            if repeated := self._of_request(request):
                return Written(repeated)
            lines = self.standing.step(step)
            top = [line for line in lines if self.standing.line(line.sample) == line]
            rows = [(line.sample, UNDO, None, line.number) for line in top]
            covered = {line.sample for line in lines} - {line.sample for line in top}
            return Written(self._write(rows, tab, request), sorted(covered))

    def changed_since(self, number: int, limit: int = 1000) -> list[int]:
        """Samples that later lines are about; at most `limit` of them."""
        with self._lock:
            query = "SELECT DISTINCT sample FROM log WHERE number > ? ORDER BY number DESC LIMIT ?"
            return [int(sample) for (sample,) in self._base.execute(query, (number, limit))]

    def times(self, count: int) -> list[float]:
        """When the last lines other than undo were written, the latest first."""
        with self._lock:
            query = "SELECT at FROM log WHERE kind != 'undo' ORDER BY number DESC LIMIT ?"
            return [float(at) for (at,) in self._base.execute(query, (count,))]

    def _write(self, rows: Iterable[tuple[int, str, int | None, int | None]], tab: str, request: str) -> list[Line]:
        now, step, made = time.time(), self.standing.last + 1, []
        for number, (sample, kind, code, undoes) in enumerate(rows, step):
            label = None if code is None else json.dumps(self.subject.classes[code])
            name = as_text(self.subject.ids[sample])
            values = (number, step, sample, name, kind, code, label, undoes, request, tab, now)
            self._base.execute(f"INSERT INTO log VALUES ({', '.join('?' * len(values))})", values)
            made.append(Line(number, step, sample, kind, code, undoes, request, tab, now))
        return made

    def _of_request(self, request: str) -> list[Line]:
        """Lines of a request that came before: its answer was lost, and the page asked again."""
        found = self._base.execute(f"SELECT {COLUMNS} FROM log WHERE request = ? ORDER BY number", (request,))
        return [Line(*row) for row in found]

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """One writer at a time who has read all there is; on disk when the block ends, or not at all."""
        with self._lock, _writable(self.path):
            self._base.execute("BEGIN IMMEDIATE")
            try:
                self.refresh()
                yield
                self._base.execute("COMMIT")
            except BaseException:
                self._base.execute("ROLLBACK")
                raise
            self.refresh()  # which looks for the file again: only what is in it is reported as written

    def _create(self) -> None:
        subject = self.subject
        facts = {"format_version": FORMAT_VERSION, "fingerprint": subject.fingerprint, "samples": len(subject.ids)}
        about = [(name, json.dumps(value)) for name, value in {**facts, "classes": subject.classes}.items()]
        with _writable(self.path):
            self._base.executescript(f"BEGIN IMMEDIATE; {SCHEMA} COMMIT;")
            self._base.executemany("INSERT OR IGNORE INTO about VALUES (?, ?)", about)
            _check(self._base, self.path, subject)
            flush_names(self.path.parent)  # or a power cut could lose the name of a file that is there


def read_log(path: Path, subject: Subject, until: int | None = None) -> Standing:
    """What stands in the log at `path` after line `until` (None: after all); nothing where there is no log."""
    standing = Standing(len(subject.ids))
    if not path.exists():
        return standing
    base = _connect_to_read(regular_file(path))
    try:
        _check(base, path, subject)
        for line in _lines(base, 0, path, subject):
            if until is None or line.number <= until:
                standing.add(line)
    except sqlite3.Error as error:
        raise _damaged(path, error) from error
    finally:
        base.close()
    return standing


@contextmanager
def _writable(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise RunFolderError(
            f"decisions must be kept in {path}. Opening or writing it failed: {error}; nothing was lost."
        ) from error


def _connect(path: Path) -> sqlite3.Connection:
    with _writable(path):
        base = sqlite3.connect(path, timeout=WAIT_SECONDS, isolation_level=None, check_same_thread=False)
        base.execute("PRAGMA journal_mode = WAL")
        base.execute("PRAGMA synchronous = FULL")
        base.execute("PRAGMA wal_autocheckpoint = 1")  # every step goes on from the -wal into the file at once
    return base


def _connect_to_read(path: Path) -> sqlite3.Connection:
    """Also where nothing can be written: without a -wal file nobody writes, and SQLite need not ask for locks."""
    if os.access(path, os.W_OK) and os.access(path.parent, os.W_OK):
        return _connect(path)
    closed = not _ahead(path).exists()
    return sqlite3.connect(f"{path.absolute().as_uri()}?{'immutable=1' if closed else 'mode=ro'}", uri=True)


def _ahead(path: Path) -> Path:
    """Where SQLite writes first."""
    return path.with_name(f"{path.name}-wal")


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _check(base: sqlite3.Connection, path: Path, subject: Subject) -> None:
    try:
        about = {name: parse_json(value) for name, value in base.execute("SELECT name, value FROM about")}
    except (ValueError, TypeError) as error:
        raise _damaged(path, error) from error
    if about.get("format_version") != FORMAT_VERSION:
        raise RunFolderError(
            f"the log of decisions must be of version {FORMAT_VERSION}. {path} is of version "
            f"{about.get('format_version')}; use the version of labelmend that wrote it."
        )
    known = about.get("fingerprint"), about.get("samples"), about.get("classes")
    if known != (subject.fingerprint, len(subject.ids), subject.classes):
        raise RunFolderError(
            f"decisions must belong to their run. Those in {path} were made for other data; "
            "move the file to the run it belongs to."
        )


def _lines(base: sqlite3.Connection, after: int, path: Path, subject: Subject) -> Iterator[Line]:
    """Every line is about a sample and a class of the run, whoever wrote it."""
    query = f"SELECT {COLUMNS} FROM log WHERE number > ? ORDER BY number"
    for row in base.execute(query, (after,)).fetchall():
        line = Line(*row)
        try:
            checked_fields(line)
            known = 0 <= line.sample < len(subject.ids) and line.kind in (*STANDING, UNDO)
            code = -1 if line.code is None else line.code
            if not known or (line.kind == LABEL and not 0 <= code < len(subject.classes)):
                raise ValueError(f"sample {line.sample}, {line.kind} {line.code} is none of the run")
        except ValueError as error:
            raise RunFolderError(
                f"the log of decisions must be about its run. Line {line.number} of {path} is not: {error}; restore "
                "the file from a copy."
            ) from error
        yield line


def _damaged(path: Path, error: Exception) -> RunFolderError:
    return RunFolderError(f"the log of decisions must be whole. {path} is not: {error}.")
