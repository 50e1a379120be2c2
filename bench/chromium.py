"""A Chromium to measure pages with: one of the system, or playwright's own."""

from __future__ import annotations

import os
import shutil
from importlib import util

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ARGUMENTS = ["--disable-dev-shm-usage", "--disable-gpu", "--disable-extensions", "--no-first-run"]


def find_chromium() -> str | None:
    """Path of a Chromium; None if there is none, or no playwright to drive it."""
    if util.find_spec("playwright") is None:
        return None
    return next(filter(None, map(shutil.which, NAMES)), None) or _playwrights_own()


def launch_arguments() -> list[str]:
    """As root, as in most containers, Chromium starts without its sandbox only."""
    return [*ARGUMENTS, "--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else ARGUMENTS


def _playwrights_own() -> str | None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        path: str = driver.chromium.executable_path
    return path if os.path.exists(path) else None
