"""Settings of every test; its place here puts `reference` and `strategies` on the import path."""

import dataclasses
import functools
import os
import pickle
from pathlib import Path

import pytest
import torch
from hypothesis import settings

from bench.chromium import find_chromium, launch_arguments
from chromium import MISSING

# The same examples every time: a red test is due to a change, never to the draw.
settings.register_profile("labelmend", deadline=None, max_examples=50, derandomize=True)
settings.load_profile("labelmend")
ROOT = Path(__file__).parents[1]
os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])  # bench is not installed
torch.set_num_threads(1)  # tensors are tiny here: handing them to threads costs more than the arithmetic


# Folders whose tests need a run that has ended, whatever it found; and those that also look at what it found.
SMALL_POOL = {"diagnosis", "export", "inputs", "report", "review", "storage"}
FEW_TREES = {"", "models", "self_test"}
BROWSER = {"axe", "browser", "context", "page"}


def pytest_collection_modifyitems(items):
    for item in items:
        if BROWSER & set(item.fixturenames):
            item.add_marker("browser")


@pytest.fixture(scope="module", autouse=True)
def fewer_trees(request):
    """Trees and boosting take nine tenths of a run on sixty rows: tests of other things do with few, or without.

    With 40 of them no row is in every bootstrap sample."""
    folder = request.path.relative_to(ROOT / "tests").parent.as_posix().strip(".").split("/")[0]
    if folder not in SMALL_POOL | FEW_TREES:
        yield
        return
    from labelmend.evidence import members
    from labelmend.models import fit

    small = {"trees": 40, "boosting_work": 0} if folder in SMALL_POOL else {"trees": 80}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(members, "Sizes", functools.partial(members.Sizes, **small))
        patch.setattr(fit, "SIZES", dataclasses.replace(fit.SIZES, trees=40))
        yield


@pytest.fixture
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))


@pytest.fixture
def no_pickle(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("pickle was used")

    for module, name in [(pickle, "load"), (pickle, "loads"), (pickle, "Unpickler"), (torch, "load")]:
        monkeypatch.setattr(module, name, refuse)


@pytest.fixture(scope="session")
def browser():
    """A headless Chromium for all tests. Without one they are skipped; where CI=true they fail."""
    path = find_chromium()
    if path is None:
        if os.environ.get("CI") == "true":
            pytest.fail(MISSING)
        pytest.skip(MISSING)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=path, args=launch_arguments())
        yield started
        started.close()


@pytest.fixture
def context(browser):
    """A fresh profile: no cookies, no storage."""
    fresh = browser.new_context()
    fresh.set_default_timeout(10_000)
    yield fresh
    fresh.close()


@pytest.fixture
def page(context):
    """A fresh page; `page.errors` are its console errors and uncaught ones, `page.requests` the addresses it asked."""
    opened = context.new_page()
    opened.errors, opened.requests = [], []
    opened.on("console", lambda message: opened.errors.append(message.text) if message.type == "error" else None)
    opened.on("pageerror", lambda error: opened.errors.append(str(error)))
    opened.on("request", lambda request: opened.requests.append(request.url))
    return opened


@pytest.fixture
def axe():
    """Call it with a page: the accessibility issues axe-core counts as serious or critical, in words."""
    from axe_playwright_python.sync_playwright import Axe

    def serious(page, **options):
        found = Axe().run(page, **options).response["violations"]
        return [
            f"{issue['id']}: {issue['help']} at {[node['target'] for node in issue['nodes']][:5]}"
            for issue in found
            if issue["impact"] in ("serious", "critical")
        ]

    return serious
