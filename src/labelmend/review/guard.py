"""Who may ask, and what they may send: every request passes here before anything is answered.

- Only who has the token from the link, or the cookie it was exchanged for. The token works once.
- Only under a name that is ours: a foreign Host is another site's name for this machine (DNS rebinding).
- Only from our own page: a foreign Origin or Sec-Fetch-Site is another site using the browser's cookie (CSRF).
- Bodies are short JSON objects, announced by their length.

Knows headers; does not know what is asked. Which pictures may be read is in `thumbnails.py`.
"""

from __future__ import annotations

import hmac
import ipaddress
import json
import secrets
import threading
from collections.abc import Iterable, Mapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import urlsplit

MAX_BODY = 256 * 1024
MAX_ADDRESS = 4096
ONCE = ("Host", "Origin", "Cookie", "Content-Length", "Content-Type", "Transfer-Encoding", "Sec-Fetch-Site")
OPEN_THE_LINK = "open the link that labelmend review printed"
LOOPBACK = ("127.0.0.1", "localhost", "::1")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Refused(Exception):
    """An answer other than yes: the HTTP status, and why."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason


class Guard:
    """The door of one server. `host` is the address it listens on."""

    def __init__(self, host: str) -> None:
        self.host = host
        self.token: str | None = secrets.token_urlsafe(32)  # None: spent
        self.cookie = f"labelmend-{secrets.token_hex(4)}"  # cookies do not keep ports apart, names do
        self._session = secrets.token_urlsafe(32)
        self._lock = threading.Lock()

    def check_origin(self, headers: Mapping[str, str], changes: bool) -> None:
        """Refuse foreign names and foreign pages; `changes` marks requests that write."""
        self.check_host(headers)
        origin, site = headers.get("Origin"), headers.get("Sec-Fetch-Site")
        if origin not in (None, f"http://{headers.get('Host', '')}") or site not in (None, "same-origin", "none"):
            raise Refused(403, "requests must come from the page of this server")
        if changes and origin is None and site != "same-origin":
            raise Refused(403, "requests that change something must say where they come from")

    def check_host(self, headers: Mapping[str, str]) -> None:
        """For the page itself, which may be opened by a link from anywhere."""
        if not self._is_ours(headers.get("Host", "")):
            raise Refused(403, "this server answers under its own address only")

    def check_session(self, headers: Mapping[str, str]) -> None:
        if not self.has_session(headers):
            raise Refused(403, OPEN_THE_LINK)

    def has_session(self, headers: Mapping[str, str]) -> bool:
        try:
            morsel = SimpleCookie(headers.get("Cookie", "")).get(self.cookie)
        except CookieError:
            return False
        return morsel is not None and _same(morsel.value, self._session)

    def exchange(self, token: str) -> str:
        """The Set-Cookie header for the token of the link, which is spent by that."""
        with self._lock:
            if self.token is None:
                raise Refused(403, "this link was used already; start labelmend review again for a new one")
            if not _same(token, self.token):
                raise Refused(403, OPEN_THE_LINK)
            self.token = None
        return f"{self.cookie}={self._session}; Path=/; HttpOnly; SameSite=Strict"

    def _is_ours(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        if any(c in host for c in "/?#@\\ ") or not name:
            return False
        if self.host in ("0.0.0.0", "::"):  # every address of this machine; names could be anyone's
            return name == "localhost" or _is_address(name)
        return name in LOOPBACK if self.host in LOOPBACK else name == self.host.lower()


def by_name(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Headers under their usual spelling. One that comes twice could be read in two ways."""
    found: dict[str, str] = {}
    for name, value in headers:
        name = name.title()
        if name in found and name in ONCE:
            raise Refused(400, f"{name} must come once")
        found[name] = value
    return found


def body_length(headers: Mapping[str, str]) -> int:
    """How much there is to read; refused before any of it is."""
    if headers.get("Transfer-Encoding") is not None:
        raise Refused(411, "the body must have a Content-Length")
    if headers.get("Content-Type", "").partition(";")[0].strip().lower() != "application/json":
        raise Refused(415, "the body must be application/json")
    announced = headers.get("Content-Length")
    if announced is None:
        raise Refused(411, "the body must have a Content-Length")
    if not (announced.isascii() and announced.isdigit()) or len(announced) > 12:
        raise Refused(400, "Content-Length must be a number")
    if int(announced) > MAX_BODY:
        raise Refused(413, f"the body must not be longer than {MAX_BODY} bytes")
    return int(announced)


def read_json(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body.decode("utf-8"))
    except (ValueError, RecursionError):
        raise Refused(400, "the body must be JSON") from None
    if not isinstance(value, dict):
        raise Refused(400, "the body must be a JSON object")
    return value


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode("utf-8", "replace"), other.encode("utf-8"))


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
