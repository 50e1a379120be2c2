"""Servers for the tests: one in a thread, or a `labelmend review` of its own."""

import re
import subprocess
import sys
import threading
from contextlib import contextmanager

from labelmend.review.desk import Desk
from labelmend.review.server import ReviewServer


@contextmanager
def served(run, **how):
    """A server in a thread of its own."""
    desk = Desk(run, **how)
    server = ReviewServer(desk)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
        desk.close()


def start(run, *options):
    """A process of its own: (process, link)."""
    words = [sys.executable, "-m", "labelmend", "review", str(run), "--no-browser", *options]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    for line in process.stdout:
        if found := re.search(r"http://\S+", line):
            return process, found.group(0)
    raise AssertionError("no link was printed")
