"""Words for values: short names, shares, times. Plain text, no HTML."""

from __future__ import annotations

from typing import Any

NOTHING_TO_GAIN = "there is no more disagreement than the evidence's own error rate explains"


LONGEST = 60  # characters of an id that are shown


def class_name(name: str) -> str:
    """A class as text that can be seen: an empty one in quotes."""
    return name if name.strip() else repr(name)


def shortened(text: str, longest: int = LONGEST) -> str:
    """The end of an id, a path above all, tells more than its middle."""
    if len(text) <= longest:
        return text
    end = (longest - 1) * 2 // 3
    return f"{text[: longest - 1 - end]}…{text[-end:]}"


def seconds_text(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f}"
    minutes, rest = divmod(round(seconds), 60)
    return f"{round(seconds):,} ({minutes} min {rest} s)"


def percent(share: dict[str, Any]) -> str:
    """A share with its interval: 93.5 % (90.1 to 96.0)."""
    if share["value"] is None:
        return "none to count"
    ends = "" if share["low"] is None else f" ({100 * share['low']:.1f} to {100 * share['high']:.1f})"
    return f"{100 * share['value']:.1f} %{ends}"


def seconds_in_words(seconds: float) -> str:
    if seconds < 60:
        return f"{max(1, round(seconds))} s"
    if seconds < 3600:
        return f"{round(seconds / 60)} min"
    return f"{seconds / 3600:.1f} h"


def size_in_words(n_bytes: float) -> str:
    return f"{n_bytes / 2**30:.1f} GiB" if n_bytes >= 2**30 else f"{n_bytes / 2**20:.0f} MiB"


def printable(text: str) -> str:
    """Text from someone's data, without what would move the cursor or break the line."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
