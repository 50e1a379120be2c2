"""`labelmend review`, which serves the page until it is interrupted, and `labelmend apply`."""

from __future__ import annotations

import argparse
import dataclasses
import html
import json
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
from typing import TYPE_CHECKING

from labelmend.errors import ConfigError, RunFolderError

if TYPE_CHECKING:
    from labelmend.review.desk import Desk
    from labelmend.review.samples import Progress
    from labelmend.review.server import ReviewServer

REVIEW = """\
Look at the uncertain samples of a run and decide them.

Opens a page that only this machine can reach. Every decision is saved at once;
stop and continue as often as you like. Then `labelmend apply RUN` merges the
decisions into the labels, and `labelmend correct ... --trusted-from RUN` runs
again with them as trusted labels.
"""
APPLY = """\
Merge the decisions of `labelmend review` into the labels of a run.

labels.csv then holds the merged labels; decided samples have the status
reviewed and confidence 1, undecidable ones stay for review. The labels before
the merge are kept in labels_before_review.csv. Apply again after further
decisions.
"""
EVERYONE = (
    "note: --host {host} lets other machines reach this page; the connection is not encrypted, and anyone with the "
    "link can see the data and decide"
)

PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>labelmend review</title>
<meta name="referrer" content="no-referrer"><meta http-equiv="refresh" content="0; url={link}">
<p><a href="{link}">Open the review</a></p></html>
"""


def add_review(verb: argparse.ArgumentParser, everything: bool) -> None:
    verb.description = REVIEW
    verb.add_argument("folder", metavar="RUN", type=Path, help="run folder")
    verb.add_argument("--port", type=int, default=0, metavar="N", help="port to listen on (default: any free one)")
    verb.add_argument("--no-browser", action="store_true", help="print the link, open nothing")
    verb.add_argument("--data", type=Path, metavar="PATH", help="where the data are now, if they have moved")
    links = "show pictures that are links to files outside of the data folder"
    verb.add_argument("--follow-links", action="store_true", help=links)
    verb.add_argument("--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1: this machine only)")
    verb.set_defaults(run=run_review)


def run_review(arguments: argparse.Namespace) -> None:
    from labelmend.review.desk import Desk

    if not 0 <= arguments.port <= 65535:
        raise ConfigError(f"--port must be from 0 (any free one) to 65535. Got {arguments.port} instead.")
    desk = Desk(arguments.folder, arguments.data, arguments.follow_links)
    try:
        server = listen(desk, arguments.host, arguments.port)
    except BaseException:
        desk.close()
        raise
    with server, ExitStack() as opened:
        print("\n".join(greeting(desk, server.link, arguments.host)), flush=True)
        if not arguments.no_browser:
            page = opened.enter_context(link_file(server.link))
            threading.Thread(target=webbrowser.open, args=(page.as_uri(),), daemon=True).start()
        serve(server)
    last_words = farewell(desk)
    desk.close()
    print(last_words, flush=True)


def listen(desk: Desk, host: str, port: int) -> ReviewServer:
    from labelmend.review.server import ReviewServer

    try:
        return ReviewServer(desk, host, port)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"--host and --port must be free to listen on. {host}:{port} is not: {reason}.") from error


def serve(server: ReviewServer) -> None:
    """Until Ctrl-C or SIGTERM; every decision is on disk already."""
    from labelmend.inputs.pictures.pixels import quiet

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
    """A page that leads on to the link, gone when the block ends: everybody can see the arguments of a browser."""
    folder = Path(tempfile.mkdtemp(prefix="labelmend-review-"))  # nobody else may look into it
    try:
        path = folder / "open.html"
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(PAGE.format(link=html.escape(link)))
        yield path
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def greeting(desk: Desk, link: str, host: str) -> list[str]:
    from labelmend.review.guard import LOOPBACK

    progress = _progress(desk)
    left = progress.open + progress.skipped
    lines = [f"{left:,} of {progress.total:,} uncertain samples to review in {desk.run}"]
    if desk.originals.reason:
        lines.append(f"note: {desk.originals.reason}")
    if host not in LOOPBACK:
        lines.append(EVERYONE.format(host=host))
    return [
        *lines,
        "",
        f"  {link}",
        "",
        "The link works once. Decisions are saved at once; Ctrl-C ends the review.",
    ]


def farewell(desk: Desk) -> str:
    """What to do next."""
    try:
        desk.decisions.check_in_place()
    except RunFolderError as error:
        return f"\n{error}"
    progress = _progress(desk)
    done = progress.decided + progress.unsure
    counts = f"\n{done:,} decided, {progress.open + progress.skipped:,} to go."
    any_decided = desk.decisions.standing.state.any()  # also of samples that were not doubtful
    return f"{counts} Merge them with: labelmend apply {shlex.quote(str(desk.run))}" if any_decided else counts


def _progress(desk: Desk) -> Progress:
    from labelmend.review.samples import Filter

    return desk.queue.progress(Filter())


def add_apply(verb: argparse.ArgumentParser, everything: bool) -> None:
    verb.description = APPLY
    verb.add_argument("folder", metavar="RUN", type=Path, help="run folder")
    verb.add_argument("--dry-run", action="store_true", help="only print what would change")
    verb.add_argument("--json", action="store_true", help="print it as JSON, with every label that changes")
    verb.set_defaults(run=run_apply)


def run_apply(arguments: argparse.Namespace) -> None:
    from labelmend.review.apply import apply, merge_lines

    merge = apply(arguments.folder, arguments.dry_run)
    if arguments.json:
        print(json.dumps({**dataclasses.asdict(merge), "dry_run": arguments.dry_run}))
    else:
        print("\n".join(merge_lines(merge, arguments.folder, arguments.dry_run)))
