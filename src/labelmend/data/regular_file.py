"""Only files that end are read: a pipe, socket or device would hang a reader, or feed it for ever.

Every reader passes here before it opens anything.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from labelmend.errors import DataError

KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def regular_file(path: Path) -> Path:
    """The path itself, if there is a plain file; links are followed."""
    try:
        mode = os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        raise DataError(f"there must be a file {path}. There is none; check the path.") from None
    except (OSError, ValueError) as error:  # ValueError: a name with a null character
        raise DataError(f"{path} must be readable. Got: {getattr(error, 'strerror', None) or error}.") from error
    if not stat.S_ISREG(mode):
        kind = next((name for is_kind, name in KINDS if is_kind(mode)), "something else")
        raise DataError(f"{path} must be a regular file. It is {kind}; copy what it gives to a file first.")
    return path
