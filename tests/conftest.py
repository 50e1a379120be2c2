"""Settings of every test; its place here puts `reference` and `strategies` on the import path."""

import pickle

import pytest
import torch
from hypothesis import settings

settings.register_profile("labelmend", deadline=None, max_examples=50)
settings.load_profile("labelmend")
torch.set_num_threads(1)  # tensors are tiny here: handing them to threads costs more than the arithmetic


@pytest.fixture
def no_pickle(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("pickle was used")

    for module, name in [(pickle, "load"), (pickle, "loads"), (pickle, "Unpickler"), (torch, "load")]:
        monkeypatch.setattr(module, name, refuse)
