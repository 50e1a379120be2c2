"""pyarrow, imported only where it is needed, and Parquet files read with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from labelmend.errors import DataError, MissingExtraError


def require_pyarrow(what: str) -> Any:
    """The library; `what` needs it, for the message where it is not installed."""
    try:
        import pyarrow
        import pyarrow.ipc
        import pyarrow.parquet
    except ImportError:
        raise MissingExtraError(f"{what} needs pyarrow", "tables") from None
    return pyarrow


def read_parquet(path: Path) -> Any:
    """An Arrow table."""
    pyarrow = require_pyarrow("reading .parquet")
    try:
        return pyarrow.parquet.read_table(path)
    except (OSError, pyarrow.ArrowException) as error:
        raise DataError(f"{path} must be a Parquet file. Could not read it: {error}") from error
