"""labelmend mends wrong labels: corrected labels, how sure it is of each, what the noise looks like, a classifier.

>>> result = labelmend.correct(X, y)
>>> result.labels, result.status, result.noise_rate
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from labelmend.api import correct
    from labelmend.config import RunConfig
    from labelmend.estimator import LabelCorrector
    from labelmend.images import correct_images
    from labelmend.inputs.annotations import labels_by_annotator
    from labelmend.result import Correction
    from labelmend.review.apply import read_decisions
    from labelmend.self_test.run import selftest
    from labelmend.storage.run_folder import load

__version__ = "0.1.0"
__all__ = [
    "Correction",
    "LabelCorrector",
    "RunConfig",
    "__version__",
    "correct",
    "correct_images",
    "labels_by_annotator",
    "load",
    "read_decisions",
    "selftest",
]

_HOMES = {
    "correct": "labelmend.api",
    "correct_images": "labelmend.images",
    "labels_by_annotator": "labelmend.inputs.annotations",
    "load": "labelmend.storage.run_folder",
    "read_decisions": "labelmend.review.apply",
    "selftest": "labelmend.self_test.run",
    "LabelCorrector": "labelmend.estimator",
    "Correction": "labelmend.result",
    "RunConfig": "labelmend.config",
}


def __getattr__(name: str) -> Any:
    """Public names are imported when first used: `import labelmend` alone loads neither torch nor scikit-learn."""
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
