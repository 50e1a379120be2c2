"""What every page of ours shares: escaping, embedded data, assets that are real files, and what a page may do.

Knows HTML; does not know runs. A page is one file: style and scripts are inside, and its Content-Security-Policy names
them by their hashes, so nothing that found its way into a page from someone's data could run, load or send anything.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from importlib import resources
from typing import Any

VOID = ("img", "meta", "input", "br")  # elements without an inside


class Html(str):
    """Text that is HTML already. Any other text is escaped where it is put into an element."""


def escape(value: Any) -> Html:
    """Text for the body or an attribute. What cannot be shown is spelled out, half characters among it."""
    text = str(value)
    if not text.isprintable():
        text = "".join(c if c.isprintable() or c == "\n" else _spelled(c) for c in text)
    return Html(html.escape(text, quote=True))


def element(name: str, /, *children: Any, **attributes: Any) -> Html:
    """<name attributes>children</name>, everything escaped that is not `Html`.

    Children that are None are left out. In names of attributes _ stands for -, and class_ for class; True is an
    attribute without a value, None and False are none.
    """
    given = {key: value for key, value in attributes.items() if value is not None and value is not False}
    written = "".join(_attribute(key, value) for key, value in given.items())
    inside = together(*children)
    return Html(f"<{name}{written}>" if name in VOID else f"<{name}{written}>{inside}</{name}>")


def together(*parts: Any) -> Html:
    """One after the other, escaped where they are not `Html`."""
    return Html("".join(part if isinstance(part, Html) else escape(part) for part in parts if part is not None))


def embed_json(value: Any) -> Html:
    """JSON for inside <script type="application/json">: nothing in it can end the element or begin another."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return Html(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))


def asset(name: str) -> str:
    """The text of a file that comes with the library, such as base.css."""
    return (resources.files("labelmend.report") / "assets" / name).read_text(encoding="utf-8")


def media_type(picture: bytes) -> str:
    """Of a picture that we made, by its first bytes."""
    return "image/png" if picture.startswith(b"\x89PNG") else "image/jpeg"


def data_uri(picture: bytes) -> str:
    """A picture inside the page."""
    return f"data:{media_type(picture)};base64,{base64.b64encode(picture).decode('ascii')}"


def content_policy(styles: list[str], scripts: list[str]) -> str:
    """The policy of a page that holds all it needs: these styles and scripts, pictures inside it, nothing else."""
    allowed = [f"style-src {_hashes(styles)}", f"script-src {_hashes(scripts)}", "img-src data:"]
    return "; ".join(["default-src 'none'", *allowed, "base-uri 'none'", "form-action 'none'"])


def _hashes(parts: list[str]) -> str:
    digests = (hashlib.sha256(part.encode("utf-8")).digest() for part in parts)
    return " ".join(f"'sha256-{base64.b64encode(digest).decode('ascii')}'" for digest in digests) or "'none'"


def _attribute(key: str, value: Any) -> str:
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{escape(value)}"'


def _spelled(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
