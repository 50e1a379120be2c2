"""What can go wrong, in one tree. Every message says what must hold, what came, and what to do.

LabelmendError
├── DataError (ValueError)        the data cannot be used as they are
├── ConfigError (ValueError)      a parameter is unknown or out of range
├── TrainingError (ArithmeticError)  weights or losses became infinite or NaN
├── RunFolderError (OSError)      a run folder exists already, is damaged, or is of another version
├── CacheError (OSError)          the cache of pictures or features cannot be written
├── CheckpointError (OSError)     checkpoints are of another run, damaged, or in use by another process
└── MissingExtraError (ImportError)  an optional dependency is not installed
"""

from __future__ import annotations


class LabelmendError(Exception):
    """Base of all errors raised on purpose."""


class DataError(LabelmendError, ValueError):
    pass


class ConfigError(LabelmendError, ValueError):
    pass


class TrainingError(LabelmendError, ArithmeticError):
    pass


class RunFolderError(LabelmendError, OSError):
    pass


class CacheError(LabelmendError, OSError):
    pass


class CheckpointError(LabelmendError, OSError):
    pass


class MissingExtraError(LabelmendError, ImportError):
    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f'{what}. Install it with: pip install "labelmend[{extra}]"')


class LabelmendWarning(UserWarning):
    """Something was handled, and the user should know."""
