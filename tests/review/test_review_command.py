import os
import signal
import socket
import stat
import threading
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from serving import start

from labelmend.cli import review as command
from labelmend.cli.main import main
from labelmend.review.desk import Desk


@pytest.mark.slow
def test_ctrl_c_ends_it_in_good_order(run):
    process, link = start(run)
    with urllib.request.urlopen(link, timeout=5) as answer:
        assert answer.status == 200
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(link, timeout=5)
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate(timeout=10)
    assert process.returncode == 0
    assert "labelmend apply" not in rest  # nothing was decided
    assert "24 to go" in rest


def serve_once(server):
    serve_once.links.append(server.link)


@pytest.fixture
def served(monkeypatch):
    """Servers are made and not waited for; browsers are counted, not opened."""
    serve_once.links = []
    opened = []
    called = threading.Event()

    def look(address):
        path = Path(unquote(urlsplit(address).path))
        opened.append((address, stat.S_IMODE(path.stat().st_mode), path.read_text()))
        called.set()

    def serve(server):
        serve_once(server)
        if serve_once.waits:
            called.wait(10)

    serve_once.waits = False
    monkeypatch.setattr(command, "serve", serve)
    monkeypatch.setattr(command.webbrowser, "open", look)
    return opened


def test_the_browser_is_opened_at_the_link(run, served, capsys):
    serve_once.waits = True
    assert main(["review", str(run)]) == 0
    (link,) = serve_once.links
    out = capsys.readouterr().out
    assert "24 of 24 " in out
    assert link in out
    ((address, mode, page),) = served
    assert address.startswith("file://")
    assert "token" not in address  # arguments of a process are for everybody to see
    assert (mode, f'url={link.replace("&", "&amp;")}"' in page) == (0o600, True)
    assert not Path(unquote(urlsplit(address).path)).parent.exists()


def test_no_browser_is_opened_if_told_so(run, served, capsys):
    assert main(["review", str(run), "--no-browser"]) == 0
    assert served == []
    assert "note" not in capsys.readouterr().out


def test_another_address_is_warned_of(run, served, capsys):
    assert main(["review", str(run), "--no-browser", "--host", "0.0.0.0"]) == 0
    assert "lets other machines reach this page" in capsys.readouterr().out


def test_data_that_are_gone_are_told_and_found_again(run, served, capsys, tmp_path):
    (tmp_path / "photos").rename(tmp_path / "moved")
    assert main(["review", str(run), "--no-browser"]) == 0
    assert "say where they are with --data" in capsys.readouterr().out
    assert main(["review", str(run), "--no-browser", "--data", str(tmp_path / "moved")]) == 0
    assert "note" not in capsys.readouterr().out


def test_a_port_in_use_is_told(run, capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert main(["review", str(run), "--no-browser", "--port", str(port)]) == 2
    assert f"127.0.0.1:{port} is not" in capsys.readouterr().err


@pytest.mark.parametrize("options", [["--port", "-1"], ["--port", "65536"], ["--host", "no such host"]])
def test_a_place_that_cannot_be_is_refused(run, options, capsys):
    assert main(["review", str(run), "--no-browser", *options]) == 2
    assert "must be" in capsys.readouterr().err


def test_a_run_that_cannot_be_written_to_is_told(run, capsys, monkeypatch):
    if os.geteuid() == 0:
        (run / "review.sqlite").mkdir()
    else:
        run.chmod(0o500)
    assert main(["review", str(run), "--no-browser"]) == 2
    assert "decisions must be kept in" in capsys.readouterr().err
    run.chmod(0o700)


def test_what_is_left_is_counted_at_the_end(run):
    desk = Desk(run)
    assert command.farewell(desk) == "\n0 decided, 24 to go."
    desk.decide({}, {"request": "r", "choices": [{"sample": 0, "kind": "unsure", "seen": 0}]})
    assert command.farewell(desk).startswith("\n1 decided, 23 to go. Merge them with: labelmend apply ")
    desk.close()
