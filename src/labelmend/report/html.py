"""What every page of ours shares: escaping, embedded data, assets that are real files, and what a page may do.

Knows HTML; does not know runs. A page is one file: style and scripts are inside, and its Content-Security-Policy names
them by their hashes, so nothing that found its way into a page from someone's data could run, load or send anything.
"""

from __future__ import annotations

import base64
import hashlib
import json
from importlib import resources
from typing import Any

import markupsafe
from markupsafe import Markup


def shown(value: Any) -> Any:
    """What a page shows for a value: None is nothing; what cannot be shown is spelled out, half characters among it."""
    if value is None or isinstance(value, Markup):
        return "" if value is None else value
    text = str(value)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode("ascii") for c in text)


def escape(value: Any) -> Markup:
    """Text for the body or an attribute; what is `Markup` already stays as it is."""
    return markupsafe.escape(shown(value))


def embed_json(value: Any) -> Markup:
    """JSON for inside <script type="application/json">: nothing in it can end the element or begin another."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))


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
