"""README.md of a run folder: what each file is, what the statuses mean, what to type next."""

from __future__ import annotations

import shlex
from collections.abc import Collection

from labelmend.result import Correction
from labelmend.storage.run_files import FILES

STATUSES = {
    "kept": "the given label stays",
    "corrected": "another label took its place",
    "review": "doubtful: the best guess, for a person to look at",
    "filled": "there was no label; this is the best guess",
    "unreadable": "the picture could not be read and keeps its label; unreadable.csv says why",
    "reviewed": "a person decided, with `labelmend review` and `labelmend apply`",
}


def run_readme(result: Correction, name: str, present: Collection[str]) -> str:
    """README.md of a run folder called `name` that holds the files `present`."""
    abouts = {file.name: file.about.replace("|", "\\|") for file in FILES}
    rows = {file: f"| `{file}` | {about} |" for file, about in abouts.items()}
    head = ["| file | what it is |", "| --- | --- |"]
    counts = ", ".join(f"{result.count(status):,} {status}" for status in STATUSES if result.count(status))
    lines = [
        "# A run of labelmend",
        "",
        f"{len(result):,} samples of {len(result.classes):,} classes. When the run ended: {counts}.",
        "",
        *(*head, *(row for file, row in rows.items() if file in present), ""),
    ]
    if later := [row for file, row in rows.items() if file not in present]:
        lines += ["Not in every run, or made later:", "", *head, *later, ""]
    lines += ["The status of a sample, in labels.csv:", ""]
    lines += [f"- `{status}`: {about}" for status, about in STATUSES.items()]
    lines += ["", "What to do next, from the folder above this one:", "", "```sh", *_commands(result, name), "```", ""]
    lines += ["In Python: `result = labelmend.load(PATH)`. Loading executes nothing.", ""]
    return "\n".join(lines)


def _commands(result: Correction, name: str) -> list[str]:
    run = shlex.quote(name if not name.startswith("-") else f"./{name}")
    kind = "arrays" if result.source is None else result.source.kind
    hand_over = {"pictures": "folders --out sorted", "table": "csv --with-data"}.get(kind, "csv")
    return [
        f"labelmend report {run}    # a page to look at",
        f"labelmend review {run}    # decide the doubtful ones in the browser",
        f"labelmend apply {run}     # merge your decisions into the labels",
        f"labelmend export {run} --to {hand_over}",
        "labelmend export --list",
    ]
