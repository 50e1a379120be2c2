import threading
from contextlib import contextmanager

import pytest
from made import array_run, picture_run, table_run

from labelmend.review.desk import Desk
from labelmend.review.server import ReviewServer


@pytest.fixture
def run(tmp_path):
    """A run of pictures."""
    return picture_run(tmp_path)[0]


@pytest.fixture
def rows_run(tmp_path):
    return table_run(tmp_path)[0]


@pytest.fixture
def bare_run(tmp_path):
    """A run of which nothing can be shown."""
    return array_run(tmp_path)


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


@pytest.fixture
def server(run):
    with served(run) as started:
        yield started
