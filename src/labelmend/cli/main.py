"""The command line: parses, calls the library, prints; decides nothing else.

Exit codes: 0 done; 1 an unexpected error, or no place for the cache; 2 bad input or a full disk, nothing was changed;
130 interrupted, 143 ended by SIGTERM: then it is said how to go on.
"""

from __future__ import annotations

import argparse
import difflib
import errno
import io
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from labelmend import __version__
from labelmend.cli.data_verbs import add_correct, add_selftest
from labelmend.cli.options import Layout
from labelmend.cli.texts import DESCRIPTION, EXAMPLES
from labelmend.cli.verbs import add_apply, add_demo, add_export, add_export_model, add_report, add_review, add_undo
from labelmend.errors import CacheError, LabelmendError

OK, FAILED, BAD_INPUT, INTERRUPTED, TERMINATED = 0, 1, 2, 130, 143
NO_SPACE = (errno.ENOSPC, errno.EDQUOT)


class Terminated(KeyboardInterrupt):
    """SIGTERM: a polite request to end, with as much order as Ctrl-C."""


def main(argv: list[str] | None = None) -> int:
    return guarded(lambda: _run(parse(argv)))


def _run(arguments: argparse.Namespace) -> int:
    return int(arguments.run(arguments) or OK)


def guarded(action: Callable[[], int]) -> int:
    """The exit code of an action, whatever becomes of it."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a class the terminal cannot spell must not end a run
    try:
        with _ended_politely():
            return action()
    except LabelmendError as error:
        _say(str(error), error)
        full = isinstance(error.__cause__, OSError) and error.__cause__.errno in NO_SPACE
        return FAILED if isinstance(error, CacheError) and not full else BAD_INPUT
    except KeyboardInterrupt as error:
        _say("interrupted; nothing half-written was left behind", error)
        return TERMINATED if isinstance(error, Terminated) else INTERRUPTED
    except OSError as error:
        _say(f"{error}; nothing half-written was left behind", error)
        return BAD_INPUT if error.errno in NO_SPACE else FAILED


def _say(text: str, error: BaseException) -> None:
    """What went wrong, and what the run that ended says about going on; names and labels in it are somebody's data."""
    from labelmend.report.wording import printable

    for line in (*text.split("\n"), *getattr(error, "__notes__", ())):
        print(f"labelmend: {printable(line)}", file=sys.stderr)


@contextmanager
def _ended_politely() -> Iterator[None]:
    ours = os.getpid()

    def end(number: int, frame: Any) -> None:
        if os.getpid() == ours:
            raise Terminated
        os._exit(128 + number)  # a worker that was forked from here, and is no longer needed

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL if before is None else before)


def parse(argv: list[str] | None) -> argparse.Namespace:
    """Arguments with the function to run; a misspelled option is answered with the nearest one."""
    words = sys.argv[1:] if argv is None else argv
    parser = build_parser("--help-all" in words)
    arguments, unknown = parser.parse_known_args(words)
    if unknown:
        options = [name for action in arguments.verb._actions for name in action.option_strings]
        near = difflib.get_close_matches(unknown[0].split("=")[0], options, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        arguments.verb.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
    return arguments


def build_parser(everything: bool = False) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("labelmend", description=DESCRIPTION, epilog=EXAMPLES, formatter_class=Layout)
    parser.add_argument("--version", action="version", version=f"labelmend {__version__}")
    parser.set_defaults(verb=parser, run=lambda _: parser.print_help())
    verbs = parser.add_subparsers(title="commands", metavar="COMMAND")
    add_demo(verbs)
    add_correct(verbs, everything)
    add_selftest(verbs, everything)
    for add in (add_report, add_review, add_apply, add_export, add_undo, add_export_model):
        add(verbs)
    return parser
