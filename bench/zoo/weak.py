"""Features made weak on purpose, under labels that are all right: a run should leave them alone.

S are the standardised columns. The recipe: S + 3 N(0,1); S + 8 N(0,1); two random columns of S; one; pure N(0,1).
"""

from __future__ import annotations

import zlib

import numpy as np

from bench.datasets import FloatArray

PREFIX = "weak-"
KINDS = ("weak-noise3", "weak-noise8", "weak-two", "weak-one", "weak-none")
MOST_NUMBERS = 150_000  # rows x columns of the sets it is made from
MOST_PURE = 10  # columns of pure noise


def generator(name: str, seed: int) -> np.random.Generator:
    """Each set has draws of its own, the same whatever else runs."""
    return np.random.default_rng([seed, zlib.crc32(name.encode())])


def weaken(features: FloatArray, kind: str, rng: np.random.Generator) -> FloatArray:
    varied = features[:, features.std(axis=0) > 0].astype(np.float64)
    standard = (varied - varied.mean(axis=0)) / varied.std(axis=0)
    n, columns = standard.shape
    match kind.removeprefix(PREFIX):
        case "noise3":
            made = standard + 3 * rng.standard_normal(standard.shape)
        case "noise8":
            made = standard + 8 * rng.standard_normal(standard.shape)
        case "two" | "one" as number:
            made = standard[:, rng.permutation(columns)[: 2 if number == "two" else 1]]
        case _:
            made = rng.standard_normal((n, min(features.shape[1], MOST_PURE)))
    return np.asarray(made, dtype=np.float32)
