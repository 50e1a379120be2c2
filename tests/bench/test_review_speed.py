import json
import threading

import pytest

from bench import review_speed
from bench.command import main
from labelmend.review.desk import Desk
from labelmend.review.server import ReviewServer
from labelmend.storage.run_folder import read_run


def test_without_a_browser_the_server_alone_is_measured(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(review_speed, "find_chromium", lambda: None)
    assert main(["review", "--quick"]) == 0
    record = json.loads((tmp_path / "benchmark-review.json").read_text(encoding="utf-8"))
    (row,) = record["rows"]
    assert row["case"] == "400 samples"
    assert {"write_ms", "start_seconds", "server_bytes"} <= set(row["figures"])
    assert "no Chromium" in capsys.readouterr().out
    assert main(["readme-table", "benchmark-review.json"]) == 0


def test_the_page_is_measured_by_its_own_clock(tmp_path, browser):
    """`browser` is asked for so that without one this test is skipped, or fails where CI=true."""
    run = review_speed.make_run(tmp_path, 150)
    assert read_run(run).count("review") == 150
    desk = Desk(run)
    with ReviewServer(desk) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        page = browser.new_page()
        figures = review_speed.measure_page(page, server.link, 3)
        page.close()
        server.shutdown()
        thread.join()
    desk.close()
    assert 0 < figures["first_paint_ms"] <= figures["first_sample_ms"]
    assert 0 < figures["decision_ms"] <= figures["slow_decision_ms"]
    assert figures["batch_ms"] > 0
    assert desk.decisions.standing.last > 3


def test_too_few_samples_are_refused(capsys):
    assert main(["review", "--samples", "100"]) == 2
    assert "--samples must be at least 220" in capsys.readouterr().err


@pytest.mark.parametrize(("n", "different"), [(30, 30), (520, 500)])
def test_pictures_are_links_to_a_few(tmp_path, n, different):
    review_speed.write_pictures(tmp_path, n)
    files = list(tmp_path.rglob("*.jpg"))
    assert len(files) == n
    assert len({path.stat().st_ino for path in files}) == different
