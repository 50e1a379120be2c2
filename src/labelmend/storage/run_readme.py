"""README.md of a run folder: what each file is, what the statuses mean, what to type next.

The list of files is read from the docstring of `run_folder.py`, which is the one place that says what is in a run
folder: an entry begins after four spaces with the name of the file, its text goes on further to the right.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection

from labelmend.result import Correction

README = "README.md"
ENTRY = re.compile(r" {4}(\S+\.\w+) {2,}(\S.*)")
MORE = re.compile(r" {8,}(\S.*)")
STATUSES = {
    "kept": "the given label stays",
    "corrected": "another label took its place",
    "review": "doubtful: the best guess, for a person to look at",
    "filled": "there was no label; this is the best guess",
    "unreadable": "the picture could not be read and keeps its label; unreadable.csv says why",
    "reviewed": "a person decided, with `labelmend review` and `labelmend apply`",
}


def run_readme(result: Correction, name: str, files: str, there: Collection[str]) -> str:
    """The text for a run folder called `name` that holds the files `there`; `files` is the text that lists them."""
    table = file_table(files)
    lines = [
        "# A run of labelmend",
        "",
        _summary(result),
        "",
        "| file | what it is |",
        "| --- | --- |",
        *(f"| `{file}` | {_cell(about)} |" for file, about in table.items() if file in there),
    ]
    if later := {file: about for file, about in table.items() if file not in there}:
        lines += ["", "Not in every run, or made later:", "", "| file | what it is |", "| --- | --- |"]
        lines += [f"| `{file}` | {_cell(about)} |" for file, about in later.items()]
    lines += ["", "The status of a sample, in labels.csv:", ""]
    lines += [f"- `{status}`: {about}" for status, about in STATUSES.items()]
    lines += ["", "What to do next, from the folder above this one:", "", "```sh", *_commands(result, name), "```", ""]
    lines += ["In Python: `result = labelmend.load(PATH)`. Loading executes nothing.", ""]
    return "\n".join(lines)


def file_table(text: str) -> dict[str, str]:
    """What each file is, by its name."""
    table: dict[str, str] = {}
    name = None
    for line in text.splitlines():
        if found := ENTRY.fullmatch(line):
            name = found[1]
            table[name] = found[2]
        elif name is not None and (more := MORE.fullmatch(line)):
            table[name] += f" {more[1]}"
        else:
            name = None
    return table


def _summary(result: Correction) -> str:
    counts = {status: result.count(status) for status in STATUSES}
    said = ", ".join(f"{count:,} {status}" for status, count in counts.items() if count)
    return f"{len(result):,} samples of {len(result.classes):,} classes. When the run ended: {said}."


def _commands(result: Correction, name: str) -> list[str]:
    run = shlex.quote(name if not name.startswith("-") else f"./{name}")
    pictures = result.source is not None and result.source.kind == "pictures"
    table = result.source is not None and result.source.kind == "table"
    hand_over = "folders --out sorted" if pictures else "csv --with-data" if table else "csv"
    return [
        f"labelmend report {run}    # a page to look at",
        f"labelmend review {run}    # decide the doubtful ones in the browser",
        f"labelmend apply {run}     # merge your decisions into the labels",
        f"labelmend export {run} --to {hand_over}",
        "labelmend export --list",
    ]


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
