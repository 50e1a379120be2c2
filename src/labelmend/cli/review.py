"""`labelmend review`: serves the page until it is interrupted."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import tempfile
import threading
import webbrowser
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType

from labelmend.errors import ConfigError, RunFolderError
from labelmend.inputs.pictures.pixels import quiet
from labelmend.report.html import escape
from labelmend.review.desk import Desk
from labelmend.review.guard import LOOPBACK
from labelmend.review.samples import Filter
from labelmend.review.server import ReviewServer

EVERYONE = (
    "note: --host {host} lets other machines reach this page; the connection is not encrypted, and anyone with the "
    "link can see the data and decide"
)

PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>labelmend review</title>
<meta name="referrer" content="no-referrer"><meta http-equiv="refresh" content="0; url={link}">
<p><a href="{link}">Open the review</a></p></html>
"""


def review_command(
    run: Path, port: int, host: str, open_browser: bool, data: Path | None = None, follow_links: bool = False
) -> None:
    if not 0 <= port <= 65535:
        raise ConfigError(f"--port must be from 0 (any free one) to 65535. Got {port} instead.")
    desk = Desk(run, data, follow_links)
    try:
        server = listen(desk, host, port)
    except BaseException:
        desk.close()
        raise
    with server, ExitStack() as opened:
        print("\n".join(greeting(desk, server.link, host)), flush=True)
        if open_browser:
            page = opened.enter_context(link_file(server.link))
            threading.Thread(target=webbrowser.open, args=(page.as_uri(),), daemon=True).start()
        serve(server)
    last_words = farewell(desk)
    desk.close()
    print(last_words, flush=True)


def listen(desk: Desk, host: str, port: int) -> ReviewServer:
    try:
        return ReviewServer(desk, host, port)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"--host and --port must be free to listen on. {host}:{port} is not: {reason}.") from error


def serve(server: ReviewServer) -> None:
    """Until Ctrl-C or SIGTERM; every decision is on disk already."""

    def end(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, end) if threading.current_thread() is threading.main_thread() else None
    try:
        with quiet():
            server.serve_forever(poll_interval=0.2)
    except KeyboardInterrupt:
        pass
    finally:
        if before is not None:
            signal.signal(signal.SIGTERM, before)


@contextmanager
def link_file(link: str) -> Iterator[Path]:
    """A page that leads on to the link, gone when the block ends: arguments of a browser are for everybody to see."""
    folder = Path(tempfile.mkdtemp(prefix="labelmend-review-"))  # nobody else may look into it
    try:
        path = folder / "open.html"
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(PAGE.format(link=escape(link)))
        yield path
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def greeting(desk: Desk, link: str, host: str) -> list[str]:
    progress = desk.queue.progress(Filter())
    left = progress.open + progress.skipped
    lines = [f"{left:,} of {progress.total:,} doubtful samples to look at, in {desk.run}"]
    if desk.originals.reason:
        lines.append(f"note: {desk.originals.reason}")
    if host not in LOOPBACK:
        lines.append(EVERYONE.format(host=host))
    return [
        *lines,
        "",
        f"  {link}",
        "",
        "The link works once. Ctrl-C ends the review; every decision is saved at once.",
    ]


def farewell(desk: Desk) -> str:
    """What to do next."""
    try:
        desk.decisions.check_in_place()
    except RunFolderError as error:
        return f"\n{error}"
    progress = desk.queue.progress(Filter())
    done = progress.decided + progress.unsure
    counts = f"\n{done:,} decided, {progress.open + progress.skipped:,} to go."
    any_decided = desk.decisions.standing.state.any()  # also of samples that were not doubtful
    return f"{counts} Merge them with: labelmend apply {shlex.quote(str(desk.run))}" if any_decided else counts
