"""Settings of every test; its place here puts `reference` and `strategies` on the import path."""

import torch
from hypothesis import settings

settings.register_profile("labelmend", deadline=None, max_examples=50)
settings.load_profile("labelmend")
torch.set_num_threads(1)  # tensors are tiny here: handing them to threads costs more than the arithmetic
