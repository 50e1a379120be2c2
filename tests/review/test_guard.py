import os

import pytest

from labelmend.review.guard import MAX_BODY, Guard, Refused, body_length, by_name, read_json
from labelmend.review.thumbnails import belongs

HOST = {"Host": "127.0.0.1:8000"}


def refused(call, *arguments, **named):
    with pytest.raises(Refused) as caught:
        call(*arguments, **named)
    return caught.value.status


def cookie_of(guard):
    return guard.exchange(guard.token).partition(";")[0]


def test_the_token_opens_once():
    guard = Guard("127.0.0.1")
    token = guard.token
    header = guard.exchange(token)
    assert "HttpOnly" in header
    assert "SameSite=Strict" in header
    assert refused(guard.exchange, token) == 403
    assert guard.has_session({"Cookie": header.partition(";")[0]})


@pytest.mark.parametrize("token", ["", "wrong", "é", "\udc80"])
def test_a_wrong_token_opens_nothing_and_does_not_spend_the_right_one(token):
    guard = Guard("127.0.0.1")
    assert refused(guard.exchange, token) == 403
    guard.exchange(guard.token)


def test_sessions_are_known_by_their_whole_cookie():
    guard = Guard("127.0.0.1")
    cookie = cookie_of(guard)
    guard.check_session({"Cookie": f"other=1; {cookie}"})
    for wrong in ("", cookie[:-1], f"{cookie}x", cookie.replace("labelmend", "x"), "a=b", "\x00"):
        assert refused(guard.check_session, {"Cookie": wrong}) == 403
    assert not Guard("127.0.0.1").has_session({"Cookie": cookie})


def test_two_servers_have_cookies_of_different_names():
    assert Guard("127.0.0.1").cookie != Guard("127.0.0.1").cookie


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost:8000", "LOCALHOST:1", "[::1]:8000", "127.0.0.1"])
def test_our_own_names_are_answered(host):
    Guard("127.0.0.1").check_host({"Host": host})


@pytest.mark.parametrize(
    "host",
    ["", "evil.example", "evil.example:8000", "127.0.0.1.evil.example", "localhost.", "127.0.0.1@evil.example",
     "evil.example/127.0.0.1", "192.168.0.9", "[::1", "127.0.0.1:x\\"],
)  # fmt: skip
def test_foreign_names_are_refused(host):
    assert refused(Guard("127.0.0.1").check_host, {"Host": host}) == 403


def test_listening_everywhere_answers_addresses_but_no_names():
    guard = Guard("0.0.0.0")
    guard.check_host({"Host": "192.168.0.9:8000"})
    assert refused(guard.check_host, {"Host": "evil.example:8000"}) == 403


def test_another_host_answers_under_its_own_name():
    guard = Guard("desk.lan")
    guard.check_host({"Host": "desk.lan:1"})
    assert refused(guard.check_host, {"Host": "127.0.0.1:1"}) == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "https://127.0.0.1:8000"},
        {"Origin": "http://127.0.0.1:9999"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
@pytest.mark.parametrize("changes", [False, True])
def test_requests_from_other_pages_are_refused(headers, changes):
    assert refused(Guard("127.0.0.1").check_origin, {**HOST, **headers}, changes=changes) == 403


def test_requests_from_our_page_pass():
    guard = Guard("127.0.0.1")
    guard.check_origin({**HOST, "Origin": "http://127.0.0.1:8000", "Sec-Fetch-Site": "same-origin"}, changes=True)
    guard.check_origin({**HOST, "Sec-Fetch-Site": "none"}, changes=False)
    guard.check_origin(HOST, changes=False)


def test_who_changes_something_must_say_where_it_comes_from():
    assert refused(Guard("127.0.0.1").check_origin, HOST, changes=True) == 403


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Content-Length": "5"}, 415),
        ({"Content-Type": "text/plain", "Content-Length": "5"}, 415),
        ({"Content-Type": "application/x-www-form-urlencoded", "Content-Length": "5"}, 415),
        ({"Content-Type": "application/json"}, 411),
        ({"Content-Type": "application/json", "Transfer-Encoding": "chunked"}, 411),
        ({"Content-Type": "application/json", "Content-Length": str(MAX_BODY + 1)}, 413),
        ({"Content-Type": "application/json", "Content-Length": "9" * 40}, 400),
        ({"Content-Type": "application/json", "Content-Length": "-1"}, 400),
        ({"Content-Type": "application/json", "Content-Length": "٣"}, 400),
    ],
)
def test_bodies_that_are_not_short_json_are_refused_unread(headers, status):
    assert refused(body_length, headers) == status


def test_a_short_json_body_is_read():
    assert body_length({"Content-Type": "application/json; charset=utf-8", "Content-Length": "12"}) == 12
    assert read_json(b'{"a": 1}') == {"a": 1}


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[1]", b"1", b"null", b"\xff\xfe", b"[" * 100_000, b'{"a": ' + b"9" * 10_000 + b"}"]
)
def test_other_bodies_are_refused(body):
    assert refused(read_json, body) == 400


def test_headers_have_one_spelling_and_the_deciding_ones_come_once():
    assert by_name([("host", "a"), ("SEC-FETCH-SITE", "none")]) == {"Host": "a", "Sec-Fetch-Site": "none"}
    assert by_name([("Accept", "a"), ("accept", "b")])["Accept"] == "b"
    assert refused(by_name, [("Host", "a"), ("host", "b")]) == 400


def test_files_belong_to_the_data_set_or_are_not_read(tmp_path):
    inside, outside = tmp_path / "data", tmp_path / "secret"
    (inside / "deep").mkdir(parents=True)
    outside.mkdir()
    for folder in (inside / "deep", outside):
        (folder / "a.png").write_text("")
    assert belongs(inside / "deep" / "a.png", [inside])
    os.symlink(inside / "deep" / "a.png", inside / "twice.png")
    assert belongs(inside / "twice.png", [inside])
    os.symlink(outside / "a.png", inside / "link.png")
    os.symlink(outside, inside / "folder")
    for leak in (inside / "link.png", inside / "folder" / "a.png"):
        assert not belongs(leak, [inside])
    assert not belongs(inside / "none.png", [inside])
    assert belongs(outside / "a.png", [inside])  # a table may name files anywhere, if it names them plainly
    assert not belongs(inside / "link.png", [])
