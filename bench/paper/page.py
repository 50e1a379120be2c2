"""docs/paper.md: one section per experiment, written from results and nothing else.

Sections stand between marks of their own, so that one can be written anew without the others. Drawings go into the
folder images beside the page.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from bench.paper.experiment import Result
from bench.paper.registry import MODULES, experiment_named
from labelmend.storage.target import whole

HEAD = """# The paper's tables and figures

Ours beside what the paper (Shao, Wang, Su, Lin) prints. Every section is written by `python -m bench paper NAME` \
or `python -m bench paper --write-docs paper.jsonl` from the results of real runs; "not run" marks a cell without \
one. Test accuracy is the mean of the last ten epochs; "best" is the best epoch on the test set, which chose nothing. \
± is the sample standard deviation over n seeds. Where the paper leaves something open, what we decided is in \
[method.md](method.md).
"""
QUICK_HEAD = "QUICK RUN: the sizes are tiny and the figures mean nothing.\n"


def update_section(page: Path, name: str, results: Sequence[Result], quick: bool = False) -> str:
    """Write the section of one experiment anew, leave the others, and return it."""
    sections = read_sections(page)
    sections[name] = section(name, results, page)
    _write(page, sections, results, quick)
    return sections[name]


def write_page(page: Path, results: Sequence[Result], quick: bool = False) -> None:
    """Write all sections anew."""
    _write(page, {name: section(name, results, page) for name in MODULES}, results, quick)


def section(name: str, results: Sequence[Result], page: Path) -> str:
    experiment = experiment_named(name)
    shown = experiment.show([r for r in results if r.experiment == name], page.parent / "images")
    return f"## {name}\n\n{experiment.about[0].upper()}{experiment.about[1:]}. Data: {experiment.needs}.\n\n{shown}"


def read_sections(page: Path) -> dict[str, str]:
    if not page.is_file():
        return {}
    text = page.read_text(encoding="utf-8")
    found = re.findall(r"<!-- begin (\S+) -->\n(.*?)\n<!-- end \1 -->", text, flags=re.DOTALL)
    return {name: body for name, body in found if name in MODULES}


def _write(page: Path, sections: dict[str, str], results: Sequence[Result], quick: bool) -> None:
    bodies = [sections.get(name) or section(name, results, page) for name in MODULES]
    marked = [f"<!-- begin {name} -->\n{body}\n<!-- end {name} -->" for name, body in zip(MODULES, bodies, strict=True)]
    with whole(page, force=True) as partial:
        partial.write_text("\n\n".join([HEAD + (QUICK_HEAD if quick else ""), *marked]) + "\n", encoding="utf-8")
