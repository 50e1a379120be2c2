"""The command line: finds the verb, runs it, turns errors into exit codes.

Exit codes: 0 done; 1 an unexpected error, or no place for the cache; 2 bad input or a full disk, nothing was changed;
130 interrupted, 143 ended by SIGTERM: then a message says how to resume.
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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from labelmend import __version__
from labelmend.cli.options import Layout
from labelmend.errors import CacheError, ConfigError, LabelmendError

OK, FAILED, BAD_INPUT, INTERRUPTED, TERMINATED = 0, 1, 2, 130, 143
NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
VERBS = {  # one line about each, and the module of this folder with its options and its code
    "demo": ("find planted errors in pictures of clothes, in under 20 seconds", "demo"),
    "correct": ("correct the labels of a table of feature vectors, or of pictures", "correct"),
    "selftest": ("plant known errors in your data and count how many are found", "selftest"),
    "report": ("show a run on one HTML page that opens anywhere", "export"),
    "review": ("look at the uncertain samples of a run and decide them", "review"),
    "apply": ("merge the decisions of a review into the labels", "review"),
    "export": (
        "write the labels as a table, class folders, or for Hugging Face, Label Studio, COCO, FiftyOne, cleanlab",
        "export",
    ),
    "undo": ("take back the changes of a patch", "export"),
    "export-model": ("write the classifier of a run as one ONNX file", "export"),
}
DESCRIPTION = "Finds and corrects wrong labels, says how sure it is of each, and describes\nthe noise."
EXAMPLES = """\
examples:
  labelmend demo
      see it work on data that come with it
  labelmend correct table.csv --labels species --out run/ --dry-run
      check a table of feature columns and a label column; estimate the cost
  labelmend correct table.csv --labels species --out run/
      correct its labels
  labelmend correct photos/ --out run/
      correct pictures in class folders
  labelmend selftest table.csv --labels species
      plant known errors in it, and see how many are found and corrected
  labelmend report run/
      see what happened, on one page
  labelmend review run/
      decide the uncertain ones; labelmend apply run/ merges your decisions
  labelmend export run/ --to csv --with-data
      the same table with corrected labels; --list names the other formats
  labelmend correct --help
      the everyday options; --help-all shows all of them

exit codes: 0 done, 1 unexpected error, 2 bad input or a full disk (nothing was
            changed), 130 interrupted, 143 ended by SIGTERM
"""


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
    """What went wrong, and how to resume if that is possible; names and labels in it are somebody's data."""
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
    if words[:1] == ["benchmark"]:
        raise ConfigError("benchmarks are in the repository: python -m bench")
    parser = build_parser(words)
    arguments, unknown = parser.parse_known_args(words)
    if unknown:
        options = [name for action in arguments.verb._actions for name in action.option_strings]
        near = difflib.get_close_matches(unknown[0].split("=")[0], options, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        arguments.verb.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
    return arguments


def build_parser(words: Sequence[str]) -> argparse.ArgumentParser:
    """A parser for these words: every verb by its name, and the one they ask for with its options."""
    parser = argparse.ArgumentParser("labelmend", description=DESCRIPTION, epilog=EXAMPLES, formatter_class=Layout)
    parser.add_argument("--version", action="version", version=f"labelmend {__version__}")
    parser.set_defaults(verb=parser, run=lambda _: parser.print_help())
    verbs = parser.add_subparsers(title="commands", metavar="COMMAND")
    asked = next((word for word in words if not word.startswith("-")), None)
    for name, (about, module) in VERBS.items():
        verb = verbs.add_parser(name, help=about, formatter_class=Layout, allow_abbrev=False)
        verb.set_defaults(verb=verb)
        if name == asked:
            add = getattr(import_module(f"labelmend.cli.{module}"), f"add_{name.replace('-', '_')}")
            add(verb, "--help-all" in words)
    return parser
