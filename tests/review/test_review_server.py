"""Requests against a real server: what is refused, and what an answer carries."""

import http.client
import json
import os
import shutil
import socket
from urllib.parse import urlsplit

import pytest
from serving import served

from labelmend.errors import RunFolderError
from labelmend.review.guard import MAX_BODY
from labelmend.review.server import ReviewServer, read_assets
from labelmend.storage.run_folder import load_labels
from labelmend.storage.target import refuse_existing

SECRET = "the quick brown fox"


class Client:
    """Speaks plain HTTP, with the cookie unless told otherwise."""

    def __init__(self, server):
        self.server = server
        self.host = "{}:{}".format(*server.server_address[:2])
        self.cookie = ""

    def open(self):
        status, headers, _ = self.get(f"/?{urlsplit(self.server.link).query}")
        assert status == 200
        self.cookie = headers["Set-Cookie"].partition(";")[0]
        return headers

    def ask(self, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection(self.host, timeout=5)
        sent = {"Host": self.host, **({"Cookie": self.cookie} if self.cookie else {}), **(headers or {})}
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in sent.items():
            if value is not None:
                connection.putheader(name, value)
        connection.endheaders(body)
        answer = connection.getresponse()
        found = answer.status, answer.headers, answer.read()
        connection.close()
        return found

    def get(self, path, **headers):
        return self.ask("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})

    def post(self, path, body, headers=None):
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        usual = {
            "Origin": f"http://{self.host}",
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
        }
        return self.ask("POST", path, body, {**usual, **(headers or {})})


DECISION = {"request": "r", "choices": [{"sample": 0, "kind": "label", "label": 1, "seen": 0}]}
ADDRESSES = ["/", "/assets/review.js", "/api/run", "/api/queue", "/api/sample/0", "/picture/small/0", "/nothing"]


@pytest.fixture
def stranger(server):
    return Client(server)


@pytest.fixture(scope="module")
def still_client(still_server):
    """For requests that change nothing."""
    known = Client(still_server)
    known.open()
    return known


@pytest.fixture
def client(server):
    known = Client(server)
    known.open()
    return known


def decided(client):
    return client.server.desk.decisions.standing.last


def test_the_link_is_exchanged_for_a_strict_cookie(stranger):
    headers = stranger.open()
    assert "HttpOnly" in headers["Set-Cookie"]
    assert "SameSite=Strict" in headers["Set-Cookie"]
    assert stranger.get("/")[0] == 200
    assert stranger.get("/api/run")[0] == 200


@pytest.mark.parametrize("path", ADDRESSES)
def test_without_the_token_nothing_is_answered(stranger, path):
    status, _, body = stranger.get(path)
    assert status == 403
    assert b"labelmend review printed" in body


@pytest.mark.parametrize("path", ADDRESSES)
def test_with_a_wrong_cookie_nothing_is_answered(stranger, path):
    stranger.cookie = f"{stranger.server.guard.cookie}=guess"
    assert stranger.get(path)[0] == 403


def test_with_a_wrong_token_nothing_is_answered(stranger):
    assert stranger.get("/?token=guess")[0] == 403
    assert stranger.get(f"/api/run?{urlsplit(stranger.server.link).query}")[0] == 403
    stranger.open()


def test_the_link_works_once(client):
    other = Client(client.server)
    status, _, body = other.get("/?token=used")
    assert status == 403
    assert b"used already" in body


@pytest.mark.parametrize("path", ADDRESSES)
@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", None])
def test_a_foreign_host_is_refused(still_client, path, host):
    assert still_client.get(path, Host=host)[0] in (400, 403)


def test_a_foreign_host_is_not_given_a_cookie(stranger):
    status, headers, _ = stranger.get(f"/?{urlsplit(stranger.server.link).query}", Host="evil.example")
    assert status == 403
    assert headers["Set-Cookie"] is None
    stranger.open()


@pytest.mark.parametrize("header", [{"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": None}])
def test_a_post_from_elsewhere_is_refused(still_client, header):
    assert still_client.post("/api/decide", DECISION, header)[0] == 403
    assert decided(still_client) == 0


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_reading_for_another_page_is_refused(still_client, site):
    for path in ADDRESSES[1:]:
        assert still_client.get(path, Sec_Fetch_Site=site)[0] == 403


def test_a_form_of_another_page_cannot_decide(still_client):
    form = {"Content-Type": "text/plain", "Origin": None, "Sec-Fetch-Site": "cross-site"}
    assert still_client.post("/api/decide", DECISION, form)[0] == 403
    assert still_client.post("/api/decide", DECISION, {"Content-Type": "text/plain"})[0] == 415
    assert decided(still_client) == 0


@pytest.mark.parametrize(
    "path",
    [
        "/assets/../server.py", "/assets/%2e%2e/server.py", "/assets/..%2fserver.py", "/../../etc/passwd",
        "//etc/passwd",
        "/assets//etc/passwd", "/assets/", "/assets/__init__.py", "/picture/small/../0", "/picture/small/%2e%2e",
        "/picture/small/-1", "/picture/small/99999", "/picture/small/0/0", "/picture/huge/0", "/picture/small/x",
        "/picture/small/", "/picture//0", "/api/sample/", "/api/sample/1e3", "/api/sample/99", "/api", "/api/none",
        "/review.sqlite", "/run/labels.csv", "/assets/review.js%00.css", "/picture/small/" + "9" * 30,
    ],
)  # fmt: skip
def test_other_paths_lead_nowhere(still_client, path):
    status, _, body = still_client.get(path)
    assert status == 404
    assert b"root:" not in body


def test_a_very_long_address_is_refused(still_client):
    assert still_client.get("/api/queue?tab=" + "x" * 5000)[0] == 414
    assert still_client.get("/api/queue?" + "&".join(f"a{i}=1" for i in range(99)))[0] == 400


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "NONSENSE"])
def test_other_methods_are_not_there(still_client, method):
    assert still_client.ask(method, "/api/decide")[0] == 501


def test_reading_addresses_cannot_be_posted_to_and_back(still_client):
    assert still_client.post("/api/queue", {})[0] == 404
    assert still_client.get("/api/decide")[0] == 404


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 400), (b"", 400), (b"[]", 400), (b"\xff", 400), (b"[" * 5000, 400), ({"request": "r"}, 400),
        ({**DECISION, "choices": "all"}, 400),
        ({**DECISION, "choices": [{"sample": "0", "kind": "label", "label": 1, "seen": 0}]}, 400),
        ({**DECISION, "choices": [{"sample": 999, "kind": "label", "label": 1, "seen": 0}]}, 404),
        ({**DECISION, "choices": [{"sample": 0, "kind": "label", "label": 99, "seen": 0}]}, 400),
    ],
)  # fmt: skip
def test_malformed_bodies_are_refused(still_client, body, status):
    found, _, answer = still_client.post("/api/decide", body)
    assert found == status
    assert json.loads(answer)["error"]
    assert decided(still_client) == 0


def test_an_oversized_body_is_refused_before_it_is_read(client):
    headers = {"Content-Length": str(MAX_BODY + 1)}
    assert client.post("/api/decide", b"{", headers)[0] == 413
    assert client.post("/api/decide", b"{", {"Content-Length": "abc"})[0] == 400
    assert client.post("/api/decide", b"0\r\n\r\n", {"Content-Length": None, "Transfer-Encoding": "chunked"})[0] == 411
    assert client.post("/api/decide", DECISION)[0] == 200


def test_two_hosts_are_one_too_many(still_client):
    with socket.create_connection(still_client.server.server_address[:2], timeout=5) as raw:
        hosts = f"Host: {still_client.host}\r\nHost: evil.example"
        raw.sendall(f"GET /api/run HTTP/1.1\r\n{hosts}\r\nCookie: {still_client.cookie}\r\n\r\n".encode())
        assert raw.recv(100).startswith(b"HTTP/1.1 400")


def test_a_decision_by_http(client):
    status, _, body = client.post("/api/decide", DECISION)
    assert status == 200
    assert json.loads(body)["made"][0]["label"] == 1
    assert decided(client) == 1
    assert client.post("/api/decide", DECISION)[0] == 200
    assert decided(client) == 1


@pytest.mark.parametrize("path", ["/", "/assets/review.js", "/api/run", "/picture/small/0", "/nothing"])
def test_every_answer_is_strict(still_client, path):
    _, headers, _ = still_client.get(path)
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cache-Control"] == "no-store"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert headers["Access-Control-Allow-Origin"] is None
    assert "Python" not in headers["Server"]


def test_kinds_are_as_they_are(still_client):
    kinds = {path: still_client.get(path)[1]["Content-Type"] for path in ("/", "/assets/review.js", "/picture/small/0")}
    assert kinds["/"].startswith("text/html")
    assert kinds["/assets/review.js"].startswith("text/javascript")
    assert kinds["/picture/small/0"] in ("image/png", "image/jpeg")


def test_a_link_out_of_the_data_set_is_not_served(client, tmp_path):
    path = client.server.desk.originals.path(0)
    secret = tmp_path / "secret.png"
    path.rename(secret)
    os.symlink(secret, path)
    assert client.get("/picture/small/0")[0] == 404
    (tmp_path / "secret.txt").write_text(SECRET)
    other = client.server.desk.originals.path(1)
    other.unlink()
    os.symlink(tmp_path / "secret.txt", other)
    status, _, body = client.get("/picture/large/1")
    assert status == 404
    assert SECRET.encode() not in body


def test_a_refusal_for_people_is_a_page_and_escapes(stranger):
    status, headers, body = stranger.get("/", Accept="text/html")
    assert status == 403
    assert headers["Content-Type"].startswith("text/html")
    assert b"Open the link" in body


def test_heads_have_no_bodies(still_client):
    status, headers, body = still_client.ask("HEAD", "/api/run")
    assert (status, body) == (200, b"")
    assert int(headers["Content-Length"]) > 0


def test_an_error_of_ours_tells_nothing_of_the_inside(client, monkeypatch, capsys):
    def fail(_):
        raise RuntimeError(SECRET)

    monkeypatch.setitem(client.server.reads, "/api/state", fail)
    status, _, body = client.get("/api/state")
    assert status == 500
    assert SECRET.encode() not in body
    assert SECRET in capsys.readouterr().out


def test_only_this_machine_is_listened_to(server):
    assert server.server_address[0] == "127.0.0.1"
    assert server.link.startswith("http://127.0.0.1:")


def test_assets_are_only_pages_styles_scripts_and_drawings():
    assets = read_assets()
    assert {"/assets/index.html", "/assets/base.css", "/assets/review.css", "/assets/review.js"} <= set(assets)
    assert {name.rpartition(".")[2] for name in assets} <= {"html", "css", "js", "svg"}


def test_the_link_can_be_typed_where_it_listens_everywhere(server):
    everywhere = ReviewServer(server.desk, "0.0.0.0")
    assert everywhere.link.startswith("http://localhost:")
    everywhere.server_close()


def test_the_page_is_at_its_own_address_only(still_client):
    assert still_client.get("/assets/index.html")[0] == 404


@pytest.mark.parametrize("loss", ["deleted", "replaced with the run"])
def test_a_decision_is_not_acknowledged_once_its_file_is_gone(server, loss):
    client, run = Client(server), server.desk.run
    client.open()
    if loss == "deleted":
        for path in run.glob("review.sqlite*"):
            path.unlink()
    else:
        shutil.copytree(run, run.with_name("new"), ignore=shutil.ignore_patterns("review.*"))
        run.rename(run.with_name("old"))
        run.with_name("new").rename(run)
    status, _, body = client.post("/api/decide", DECISION)
    assert status == 409
    assert "review.sqlite" in json.loads(body)["error"]
    assert not (run / "review.sqlite").exists()


def test_a_run_under_review_is_not_replaced(run):
    with served(run):
        with pytest.raises(RunFolderError, match=f"Process {os.getpid()} has a review of"):
            refuse_existing(run, force=True)
        with pytest.raises(RunFolderError, match="--force"):
            load_labels(run).save(run, force=True)
    refuse_existing(run, force=True)
