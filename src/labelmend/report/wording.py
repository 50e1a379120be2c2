"""Words for values: short names, shares, times. Plain text, no HTML."""

from __future__ import annotations

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
