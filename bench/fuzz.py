"""The long fuzzer: `make fuzz SEED=7 INPUTS=10000`. Unclear exceptions, hangs and silent changes, each with its number.

python bench/fuzz.py --seed 7 --inputs 10000; one number again: --seed 7 --only 123
"""

from __future__ import annotations

import argparse
import collections
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import torch

from odd_inputs import attack

HANGS_AFTER = 30  # seconds


class Hangs(BaseException):
    """No reader may take it for an error of its own."""


def stop(*_: object) -> None:
    raise Hangs


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--inputs", type=int, default=10_000)
    parser.add_argument("--only", type=int, help="try this number alone, and show where it fails")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    signal.signal(signal.SIGALRM, stop)
    found, began = collections.Counter[str](), time.monotonic()
    numbers = range(asked.inputs) if asked.only is None else [asked.only]
    with tempfile.TemporaryDirectory() as folder:
        for number in numbers:
            signal.alarm(HANGS_AFTER)
            try:
                attack(asked.seed * 10**7 + number, Path(folder))
            except Hangs:
                found["hang"] += 1
                print(f"{number}: hangs")
            except Exception as error:
                found["silent change" if isinstance(error, AssertionError) else "unclear exception"] += 1
                print(f"{number}: {type(error).__name__}: {str(error)[:200]}")
                if asked.only is not None:
                    traceback.print_exc()
            finally:
                signal.alarm(0)
    seconds = time.monotonic() - began
    kinds = ("unclear exception", "hang", "silent change")
    print(f"{len(numbers):,} inputs in {seconds:.0f} s: {', '.join(f'{found[kind]} {kind}s' for kind in kinds)}")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
