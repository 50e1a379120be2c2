"""The web server of a review: addresses, answers, files. Standard library only.

    /                       the page; with ?token=... the link that is printed
    /assets/NAME            its style and scripts, from a list made at the start
    /picture/SIZE/SAMPLE    a picture, made small
    /api/...                JSON: run, queue, grid, pairs, state, sample/N; by POST: decide, undo

Knows HTTP; who may ask is `guard.py`, what is answered `desk.py`.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from labelmend import __version__
from labelmend.errors import RunFolderError
from labelmend.report.html import asset, escape, media_type
from labelmend.review.desk import Answer, Desk
from labelmend.review.guard import HEADERS, MAX_ADDRESS, OPEN_THE_LINK, Guard, Refused, body_length, by_name, read_json
from labelmend.review.thumbnails import SIDES

TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
JSON, HTML = "application/json; charset=utf-8", "text/html; charset=utf-8"
IDLE_SECONDS = 120  # after which a silent connection is closed
REFUSAL = """<!doctype html><html lang="en"><meta charset="utf-8"><title>labelmend review</title>
<h1>This page cannot be shown</h1><p>{reason}.</p></html>"""
Query = Mapping[str, str]


class ReviewServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, desk: Desk, host: str = "127.0.0.1", port: int = 0) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, port), Handler)
        self.desk, self.guard, self.assets = desk, Guard(host), read_assets()
        self.page = self.assets.pop("/assets/index.html")  # at / alone, where the link is exchanged
        self.reads: dict[str, Callable[[Query], Answer]] = {
            "/api/run": lambda _: desk.about(),
            "/api/queue": desk.upcoming,
            "/api/grid": desk.grid,
            "/api/pairs": desk.pairs,
            "/api/state": desk.state,
        }
        self.writes: dict[str, Callable[[Query, Answer], Answer]] = {
            "/api/decide": desk.decide,
            "/api/undo": desk.undo,
        }

    @property
    def link(self) -> str:
        """The address with the token that opens it once."""
        host, port = self.server_address[:2]
        name = str(host) if str(host) not in ("0.0.0.0", "::") else "localhost"
        return f"http://{f'[{name}]' if ':' in name else name}:{port}/?token={self.guard.token}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that went away in the middle is no event."""


class Handler(BaseHTTPRequestHandler):
    server: ReviewServer
    protocol_version = "HTTP/1.1"
    server_version, sys_version = f"labelmend/{__version__}", ""
    timeout = IDLE_SECONDS
    disable_nagle_algorithm = True  # or every answer waits 40 ms for an acknowledgement

    def do_GET(self) -> None:
        self._answer(self._get)

    def do_HEAD(self) -> None:
        self._answer(self._get)

    def do_POST(self) -> None:
        self._answer(self._post)

    def _answer(self, method: Callable[[str, Query], None]) -> None:
        try:
            if len(self.path) > MAX_ADDRESS:
                raise Refused(414, "the address is too long")
            address = urlsplit(self.path)
            method(address.path, dict(parse_qsl(address.query, max_num_fields=30)))
        except Refused as refused:
            self._refuse(refused)
        except RunFolderError as error:  # a decision that could not be written: the person must know
            self._refuse(Refused(409, str(error).removesuffix(".")))
        except ValueError:
            self._refuse(Refused(400, "the address cannot be read"))
        except (BrokenPipeError, ConnectionResetError, TimeoutError):
            self.close_connection = True
        except Exception as error:
            print(f"labelmend review: {type(error).__name__}: {error}", flush=True)
            self._refuse(Refused(500, "something went wrong; earlier decisions are safe"))

    def _get(self, path: str, query: Query) -> None:
        guard, headers = self.server.guard, by_name(self.headers.items())
        if path == "/":
            self._page(query, headers)
            return
        guard.check_origin(headers, changes=False)
        guard.check_session(headers)
        if path in self.server.assets:
            kind = next(kind for ending, kind in TYPES.items() if path.endswith(ending))
            self._send(200, self.server.assets[path], f"{kind}; charset=utf-8")
        elif path in self.server.reads:
            self._send_json(self.server.reads[path](query))
        elif path.startswith("/api/sample/"):
            self._send_json(self.server.desk.one(_sample(path.removeprefix("/api/sample/"))))
        elif path.startswith("/picture/"):
            self._picture(path)
        else:
            raise Refused(404, "there is nothing at this address")

    def _page(self, query: Query, headers: Mapping[str, str]) -> None:
        guard = self.server.guard
        guard.check_host(headers)
        cookie = {}
        if not guard.has_session(headers):
            if "token" not in query:
                raise Refused(403, OPEN_THE_LINK)
            cookie = {"Set-Cookie": guard.exchange(query["token"])}
        self._send(200, self.server.page, HTML, cookie)

    def _picture(self, path: str) -> None:
        size, _, name = path.removeprefix("/picture/").partition("/")
        if size not in SIDES:
            raise Refused(404, "there is nothing at this address")
        found = self.server.desk.picture(_sample(name), size)
        if found is None:
            raise Refused(404, "there is no such picture, or it is not part of the data set")
        self._send(200, found, media_type(found))

    def _post(self, path: str, query: Query) -> None:
        headers = by_name(self.headers.items())
        self.server.guard.check_origin(headers, changes=True)
        self.server.guard.check_session(headers)
        if path not in self.server.writes:
            raise Refused(404, "there is nothing at this address")
        length = body_length(headers)
        body = self.rfile.read(length)
        if len(body) != length:
            raise Refused(400, "the body is shorter than announced")
        self._send_json(self.server.writes[path](query, read_json(body)))

    def _send_json(self, value: Answer) -> None:
        self._send(200, json.dumps(value, separators=(",", ":"), allow_nan=False).encode(), JSON)

    def _refuse(self, refused: Refused) -> None:
        """Say why, and hang up if a body may still be on its way."""
        if self.command == "POST":
            self.close_connection = True
        if "text/html" in self.headers.get("Accept", ""):
            self._send(refused.status, REFUSAL.format(reason=escape(refused.reason.capitalize())).encode(), HTML)
        else:
            self._send(refused.status, json.dumps({"error": refused.reason}).encode(), JSON)

    def _send(self, status: int, body: bytes, kind: str, more: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        closing = {"Connection": "close"} if self.close_connection else {}
        for name, value in {**HEADERS, **(more or {}), **closing}.items():
            self.send_header(name, value)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *values: Any) -> None:
        """Requests are not printed: the terminal is for people."""


def read_assets() -> dict[str, bytes]:
    """Address -> contents of all that may be served besides data; nothing is looked up by a name from outside."""
    own = (resources.files("labelmend.review") / "assets").iterdir()
    found = {entry.name: entry.read_bytes() for entry in own if entry.name.endswith((*TYPES, ".html"))}
    shared = {name: asset(name).encode() for name in ("base.css", "theme.js")}
    return {f"/assets/{name}": contents for name, contents in {**found, **shared}.items()}


def _sample(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise Refused(404, "there is no such sample")
    return int(text)
