import pytest
from made import array_run, picture_run, table_run
from serving import served


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


@pytest.fixture
def server(run):
    with served(run) as started:
        yield started


@pytest.fixture(scope="module")
def still_server(tmp_path_factory):
    """For tests that change nothing: one for all of them."""
    with served(picture_run(tmp_path_factory.mktemp("still"))[0]) as started:
        yield started
