"""How quick the review page is: from the link to the first paint, from the key to the next sample on the screen.

All samples are doubtful, pictures are JPEG files of 256 px, nothing is in any cache. Times are taken in the page, by
the clock of the browser: a decision is done when the frame with the next sample has been drawn, its picture in it.
Where there is no Chromium, only the server is measured.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import scipy.sparse

from bench.chromium import find_chromium, launch_arguments
from bench.record import OURS, Findings, Say, Trial
from labelmend.errors import ConfigError
from labelmend.inputs.containers import objects
from labelmend.inputs.pictures.find import find_pictures
from labelmend.labels import Labels
from labelmend.result import Correction
from labelmend.storage.source import picture_source

N_CLASSES, N_NEIGHBORS, N_DIFFERENT, SIDE = 10, 10, 500, 256
BATCH = 60
NO_BROWSER = "there is no Chromium with playwright here: the time to write a decision only"
# A person needs a moment between two decisions; the page uses it to fetch what comes next.
PAUSE_MS = 150
# Runs before the page's own scripts: when keys came, and when what they caused was on the screen.
CLOCK = """
window.keyed = 0; window.drawn = [];
addEventListener("keydown", (event) => { window.keyed = event.timeStamp; }, true);
document.addEventListener("shown", async () => {
  const keyed = window.keyed, image = document.querySelector(".portrait img");
  if (image && !image.complete) await new Promise((done) => image.addEventListener("load", done, { once: true }));
  requestAnimationFrame(() => { const port = new MessageChannel();
    port.port1.onmessage = () => window.drawn.push([keyed, performance.now()]); port.port2.postMessage(0); });
});
"""
FIRST_PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"


@dataclass(frozen=True)
class Serving:
    process: subprocess.Popen[str]
    link: str
    seconds: float  # until it answered

    def peak_bytes(self) -> float | None:
        status = Path(f"/proc/{self.process.pid}/status")
        found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text()) if status.exists() else None
        return 1024.0 * int(found[1]) if found else None


def measure_review(n: int, n_decisions: int, n_repetitions: int, say: Say) -> Findings:
    if n < 2 * BATCH + n_decisions:
        raise ConfigError(f"--samples must be at least {2 * BATCH + n_decisions}. Got {n} instead.")
    case, chromium = f"{n:,} samples", find_chromium()
    trials = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        say(f"{case}: making them")
        run = make_run(folder, n)
        for _ in range(n_repetitions):
            for file in run.glob("review.sqlite*"):
                file.unlink()
            shutil.rmtree(run / ".thumbnails", ignore_errors=True)
            with serving(run) as server:
                link = server.link
                figures = in_chromium(chromium, link, n_decisions) if chromium else over_http(link, n_decisions)
                figures |= {"start_seconds": server.seconds, "server_bytes": server.peak_bytes()}
            say(f"{case}  " + "  ".join(f"{key} {value:.1f}" for key, value in figures.items() if value is not None))
            trials.append(Trial(case, OURS, figures))
    how = f"Chromium {version(chromium)}, headless" if chromium else NO_BROWSER
    notes = [
        f"{how}; all samples doubtful, JPEG files of {SIDE} px, {N_CLASSES} classes, {N_NEIGHBORS} neighbours; "
        f"{n_decisions} decisions a repetition, {PAUSE_MS} ms between two; nothing cached before.",
    ]
    return Findings(trials, {"repeated": "repetitions", "notes": notes})


def make_run(folder: Path, n: int) -> Path:
    """A run folder of `n` doubtful pictures, beside the pictures; few of them are different."""
    from labelmend.api import correct

    photos = folder / "photos"
    write_pictures(photos, n)
    found = find_pictures(photos)
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(60, 4))
    small = correct(
        rows,
        np.arange(60) % 2,
        expert={"n_rounds": 1, "n_branches": 2, "packages_per_branch": 1, "hidden": 4, "graph_k": 4},
    )
    return replace(doubtful(small, found.ids, found.given, rng), source=picture_source(photos)).save(folder / "run")


def write_pictures(folder: Path, n: int) -> None:
    from PIL import Image

    rng = np.random.default_rng(0)
    first: list[Path] = []
    for number in range(n):
        path = folder / f"class {number % N_CLASSES}" / f"{number:06d}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        if number < N_DIFFERENT:
            coarse = Image.fromarray(rng.integers(0, 256, (8, 8, 3), dtype=np.uint8))
            coarse.resize((SIDE, SIDE), Image.Resampling.BICUBIC).save(path, quality=90)
            first.append(path)
        else:
            os.link(first[number % N_DIFFERENT], path)


def doubtful(small: Correction, ids: Any, given: list[Any], rng: np.random.Generator) -> Correction:
    """A result of this many samples, drawn; its classifier is that of a small one."""
    n = len(ids)
    classes, codes = np.unique(np.asarray(given), return_inverse=True)
    suggested = rng.integers(0, len(classes), n)
    starts = np.arange(0, 3 * n + 1, 3)
    columns = (suggested[:, None] + np.array([0, 1, 2])) % len(classes)
    shares = np.tile([0.5, 0.3, 0.2], n)
    labels = Labels(codes.astype(np.int64), objects(classes.tolist()), lambda values: values)
    confidence = rng.uniform(0.3, 0.85, n).astype(np.float32)
    return replace(
        small,
        labels=labels.decode(suggested),
        status=np.full(n, "review", dtype="<U10"),
        confidence=confidence,
        certainty=confidence,
        runner_up=labels.classes[(suggested + 1) % len(classes)],
        transition=np.eye(len(classes)),
        votes=scipy.sparse.csr_matrix((shares, columns.ravel(), starts), shape=(n, len(classes))),
        classes=labels.classes,
        given=labels,
        corrected_codes=suggested,
        ids=ids,
        neighbors=rng.integers(0, n, (n, N_NEIGHBORS)).astype(np.int32),
        map=None,
        given_confidence=None,
        reason=None,
        misfit=None,
        profile=None,
        label_score=None,
        left_alone=None,
        verdict=None,
    )


@contextmanager
def serving(run: Path) -> Iterator[Serving]:
    """A `labelmend review` of its own."""
    words = [sys.executable, "-m", "labelmend", "review", str(run), "--no-browser"]
    began = time.perf_counter()
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        link = next(found[0] for line in process.stdout if (found := re.search(r"http://\S+", line)))
        yield Serving(process, link, time.perf_counter() - began)
    finally:
        process.terminate()
        process.communicate()


def in_chromium(path: str, link: str, n_decisions: int) -> dict[str, float | None]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=launch_arguments())
        figures = measure_page(browser.new_page(viewport={"width": 1280, "height": 860}), link, n_decisions)
        browser.close()
    return figures


def measure_page(page: Any, link: str, n_decisions: int) -> dict[str, float | None]:
    page.add_init_script(CLOCK)
    page.goto(link)
    page.wait_for_function("() => drawn.length === 1")
    first = {"first_paint_ms": page.evaluate(FIRST_PAINT), "first_sample_ms": page.evaluate("drawn[0][1]")}
    for decision in range(n_decisions):
        page.wait_for_timeout(PAUSE_MS)
        page.keyboard.press("a" if decision % 2 else "k")
        page.wait_for_function("count => drawn.length === count", arg=decision + 2)
    waited = sorted(drawn - keyed for keyed, drawn in page.evaluate("drawn.slice(1)"))
    slow = waited[min(len(waited) - 1, round(0.95 * len(waited)))]
    times = {"decision_ms": statistics.median(waited), "slow_decision_ms": slow, "batch_ms": measure_batch(page)}
    return {**first, **times}


def measure_batch(page: Any) -> float:
    """From Enter to the words that say a whole grid is saved."""
    page.keyboard.press("b")
    page.wait_for_selector(".tile:focus")
    page.evaluate("""() => { window.saved = null; const said = document.getElementById("said");
        new MutationObserver(() => { if (said.textContent.startsWith("Saved")) window.saved ??= performance.now(); })
            .observe(said, { childList: true }); }""")
    page.keyboard.press("Enter")
    page.wait_for_function("() => saved !== null")
    return float(page.evaluate("saved - keyed"))


def over_http(link: str, n_decisions: int) -> dict[str, float | None]:
    """Milliseconds from a request to the answer that says it is on disk."""
    address = urlsplit(link)
    connection = http.client.HTTPConnection(address.netloc, timeout=10)
    connection.request("GET", f"/?{address.query}")
    opened = connection.getresponse()
    opened.read()
    cookie = (opened.getheader("Set-Cookie") or "").partition(";")[0]
    headers = {"Cookie": cookie, "Origin": f"http://{address.netloc}", "Content-Type": "application/json"}
    times = []
    for sample in range(n_decisions):
        choice = {"sample": sample, "kind": "label", "label": 0, "seen": 0}
        began = time.perf_counter()
        connection.request("POST", "/api/decide", json.dumps({"request": str(sample), "choices": [choice]}), headers)
        answer = connection.getresponse()
        answer.read()
        times.append(1000 * (time.perf_counter() - began))
        if answer.status != 200:
            raise RuntimeError(f"the server answered {answer.status}")
    connection.close()
    return {"write_ms": statistics.median(times)}


def version(chromium: str) -> str:
    shown = subprocess.run([chromium, "--version"], capture_output=True, text=True).stdout
    found = re.search(r"\d+(\.\d+)+", shown)
    return found[0] if found else "of unknown version"
