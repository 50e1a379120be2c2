"""The site, built by `make docs` without a network: Markdown, the API from docstrings, examples as doctests."""

import contextlib
import io
import os
import re
import sys
import warnings
from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))
os.environ["COLUMNS"] = "80"  # of the help that `program-output` shows

import labelmend

project = "labelmend"
author = "The labelmend developers"
copyright = author
release = version = labelmend.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.doctest"]
exclude_patterns = ["_build"]
myst_heading_anchors = 3
default_role = "code"
smartquotes = False  # "--out" is not a dash
python_maximum_signature_line_length = 88
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
doctest_test_doctest_blocks = ""  # examples of docstrings show how a call looks, not what it prints
doctest_global_setup = """
import warnings
from labelmend import LabelmendWarning
warnings.simplefilter("ignore", LabelmendWarning)
"""

html_theme = "furo"
html_title = "labelmend"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False


class ProgramOutput(SphinxDirective):
    """What `labelmend ...` prints, from the first line that begins as `:from:` says."""

    required_arguments = 1
    final_argument_whitespace = True
    option_spec = {"from": str}  # noqa: RUF012 (docutils reads it from the class)

    def run(self):
        from labelmend.cli.main import main

        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
            main(self.arguments[0].split()[1:])
        lines = printed.getvalue().rstrip().split("\n")
        start = self.options.get("from", "")
        first = next(place for place, line in enumerate(lines) if line.startswith(start))
        text = "\n".join(lines[first:])
        return [nodes.literal_block(text, text, language="text")]


ITEM = re.compile(r"^([A-Za-z_]\w*(?:, [A-Za-z_]\w*)*) ?: (.*)$")  # "name: what it is", or "one, two : what they are"


def as_rest(app, what, name, obj, options, lines):
    """The docstrings of the library are plain text; here they become lists and paragraphs of reStructuredText."""
    rest, in_item = [], False
    for line, below in zip(lines, [*lines[1:], ""], strict=False):
        item = ITEM.match(line)
        if set(line) == {"-"}:
            continue
        if set(below) == {"-"}:
            rest += ["", f".. rubric:: {line}", ""]
        elif item:
            rest += [*([] if in_item else [""]), f"* **{escaped(item[1])}**: {escaped(item[2])}"]
        else:
            rest.append(("  " if in_item and line.strip() else "") + escaped(line.strip() if in_item else line))
        in_item = bool(item) or (in_item and line.startswith(" "))
    lines[:] = rest


def escaped(text):
    """Marks that mean something in reStructuredText stay what they are; `names` become code."""
    prose_and_code = re.split(r"(`[^`]+`)", text)
    prose_and_code[::2] = [re.sub(r"([*_|])", r"\\\1", part) for part in prose_and_code[::2]]
    prose_and_code[1::2] = [f"`{part}`" for part in prose_and_code[1::2]]
    return "".join(prose_and_code)


def setup(app):
    warnings.filterwarnings("ignore", category=labelmend.LabelmendWarning)
    app.add_directive("program-output", ProgramOutput)
    app.connect("autodoc-process-docstring", as_rest)
