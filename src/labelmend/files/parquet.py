"""pyarrow, imported only where it is needed, and Parquet files read with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from labelmend.errors import DataError, MissingExtraError
from labelmend.files.reading import parse_json, regular_file

METADATA = b"huggingface"  # key of a schema under which Hugging Face's library notes the features of columns


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
    regular_file(path)
    try:
        return pyarrow.parquet.read_table(path)
    except (OSError, ValueError, TypeError, MemoryError, pyarrow.ArrowException) as error:
        raise DataError(f"{path} must be a Parquet file. Could not read it: {error}") from error


def noted_features(table: Any) -> dict[str, Any]:
    """What Hugging Face's library notes of the columns; nothing where it has noted nothing, or not in its way."""
    try:
        about = parse_json((table.schema.metadata or {}).get(METADATA, b"{}"))
        features = about.get("info", {}).get("features")
    except (ValueError, AttributeError):
        return {}
    return features if isinstance(features, dict) else {}
