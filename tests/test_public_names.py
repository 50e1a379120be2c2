import re
import subprocess
import sys

import pytest

import labelmend
import labelmend.errors


def loaded_by(statement):
    """Modules a fresh interpreter holds after `statement`."""
    command = [sys.executable, "-c", f"import sys\n{statement}\nprint(*sys.modules)"]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())


def test_the_public_names_are_these():
    assert labelmend.__all__ == [
        "CacheError",
        "CheckpointError",
        "ConfigError",
        "Correction",
        "DataError",
        "LabelCorrector",
        "LabelmendError",
        "LabelmendWarning",
        "MissingExtraError",
        "RunConfig",
        "RunFolderError",
        "TrainingError",
        "__version__",
        "correct",
        "correct_images",
        "labels_by_annotator",
        "load",
        "read_decisions",
        "selftest",
    ]
    assert dir(labelmend) == sorted(labelmend.__all__)
    drawn = set(re.findall(r"\b\w+(?:Error|Warning)\b", labelmend.errors.__doc__))
    assert {name for name in labelmend.__all__ if name.endswith("Error")} <= drawn


@pytest.mark.parametrize("name", labelmend.__all__)
def test_every_public_name_can_be_imported(name):
    assert getattr(labelmend, name) is not None


def test_other_names_are_not_there():
    with pytest.raises(AttributeError, match="module 'labelmend' has no attribute 'corect'"):
        _ = labelmend.corect


def test_importing_loads_neither_torch_nor_scikit_learn_nor_tables():
    assert not loaded_by("import labelmend") & {"torch", "sklearn", "scipy", "pandas", "polars", "numpy"}


def test_the_configuration_loads_without_torch():
    assert not loaded_by("from labelmend import RunConfig") & {"torch", "sklearn", "pandas", "polars"}


def test_correct_loads_no_table_library():
    loaded = loaded_by("from labelmend import correct")
    assert "torch" in loaded
    assert not loaded & {"pandas", "polars", "pyarrow"}
