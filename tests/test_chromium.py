import os

import pytest

import chromium
from bench.chromium import launch_arguments


def test_the_page_renders_and_collects_errors_and_requests(page):
    page.set_content(
        "<h1>here</h1><img src=http://127.0.0.1:9/><script>console.error('oh'); throw new Error('no')</script>"
    )
    assert page.inner_text("h1") == "here"
    assert any("oh" in error for error in page.errors)
    assert any("no" in error for error in page.errors)
    assert page.requests == ["http://127.0.0.1:9/"]


def test_axe_finds_a_button_without_a_name(page, axe):
    page.set_content("<html lang=en><title>t</title><main><h1>t</h1><button></button></main></html>")
    assert [issue.split(":")[0] for issue in axe(page)] == ["button-name"]


def test_axe_is_content_with_a_page_in_order(page, axe):
    page.set_content("<html lang=en><title>t</title><main><h1>t</h1><button>go</button></main></html>")
    assert axe(page) == []


def test_the_first_browser_on_the_path_is_used(tmp_path, monkeypatch):
    for name in ("google-chrome", "chromium-browser"):
        (tmp_path / name).write_text("")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert chromium.find_chromium() == str(tmp_path / "chromium-browser")


@pytest.mark.parametrize(("ci", "code"), [("true", 1), ("", 0)])
def test_without_a_browser_only_ci_fails(monkeypatch, capsys, ci, code):
    monkeypatch.setattr(chromium, "find_chromium", lambda: None)
    monkeypatch.setattr(chromium, "succeeds", lambda command: False)
    monkeypatch.setenv("CI", ci)
    assert chromium.main() == code
    assert "apt-get install chromium" in capsys.readouterr().out


def test_what_is_installed_is_looked_for_again(monkeypatch):
    tried, found = [], iter([None, "/usr/bin/chromium"])
    monkeypatch.setattr(chromium, "find_chromium", lambda: next(found))
    monkeypatch.setattr(chromium, "succeeds", lambda command: tried.append(command) or True)
    assert chromium.main() == 0
    assert tried


def test_the_sandbox_is_left_out_for_root_only(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert "--no-sandbox" in launch_arguments()
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert "--no-sandbox" not in launch_arguments()
