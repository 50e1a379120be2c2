"""The link of a review for a browser, in a file that only its owner can read.

Arguments of a process are for everybody on the machine to see, and the link opens the review to whoever is first.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from labelmend.page.html import escape

PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>labelmend review</title>
<meta name="referrer" content="no-referrer"><meta http-equiv="refresh" content="0; url={link}">
<p><a href="{link}">Open the review</a></p></html>
"""


@contextmanager
def link_file(link: str) -> Iterator[Path]:
    """A page that leads on to the link; it goes when the block ends."""
    folder = Path(tempfile.mkdtemp(prefix="labelmend-review-"))  # nobody else may look into it
    try:
        path = folder / "open.html"
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(PAGE.format(link=escape(link)))
        yield path
    finally:
        shutil.rmtree(folder, ignore_errors=True)
