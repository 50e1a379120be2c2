"""A Chromium for the browser tests: the one that is here, or one that is got. `python tests/chromium.py` gets it."""

import os
import shutil
import subprocess
import sys

from bench.chromium import find_chromium

MISSING = (
    "the browser tests need Chromium, and there is none (chromium, chromium-browser, google-chrome, or playwright's). "
    "Install it with: apt-get install chromium, or: playwright install chromium"
)


def get_chromium():
    """Install one in the ways that may work here; the path, or None. What it costs is said first."""
    for attempt in attempts():
        print(f"no Chromium for the browser tests; trying: {' && '.join(' '.join(command) for command in attempt)}")
        if all(succeeds(command) for command in attempt) and (found := find_chromium()):
            return found
    return None


def attempts():
    sudo = [] if hasattr(os, "geteuid") and os.geteuid() == 0 else ["sudo", "-n"]
    if shutil.which("apt-get") and (not sudo or shutil.which("sudo")):
        apt = [*sudo, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq"]
        yield [[*apt, "update"], [*apt, "install", "-y", "--no-install-recommends", "chromium"]]
    yield [[sys.executable, "-m", "playwright", "install", "chromium"]]


def succeeds(command):
    try:
        return subprocess.run(command, stdout=subprocess.DEVNULL, timeout=600).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def main():
    found = find_chromium() or get_chromium()
    print(f"Chromium for the browser tests: {found}" if found else MISSING)
    return 1 if found is None and os.environ.get("CI") == "true" else 0


if __name__ == "__main__":
    sys.exit(main())
