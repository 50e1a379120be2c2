"""`plan`: what `correct_images` would do and cost, for the dry run. Opens no picture beyond its header."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

from labelmend.data.labels import Labels, check_classes
from labelmend.data.picture_cache import header_sizes
from labelmend.data.picture_set import Pictures
from labelmend.estimate import embedding_seconds, estimate
from labelmend.images import choose, default_cache, read_given, setting_of
from labelmend.nets.pretrained import LITE0, load_backbone

FEATURES = 1280  # of the usual backbone, for the estimate of memory


def plan(
    pictures: Pictures,
    *,
    mode: str = "auto",
    backbone: Any = LITE0,
    size: int | None = None,
    cache: str | Path | None = None,
    missing: Any = None,
    preset: str = "plus",
    **parameters: Any,
) -> dict[str, Any]:
    """What `correct_images` would do and cost, from labels and headers alone; ready for JSON."""
    chosen, _, notes = choose(mode, preset, **parameters)
    given, certain = read_given(pictures, None, missing)
    check_classes(given)
    setting, unreadable = setting_of(chosen, pictures, size, preset, **parameters), _unreadable(pictures)
    n, n_classes = len(pictures) - unreadable, len(given.classes)  # as many as the run will have
    config = setting.followed(n, n_classes)
    if chosen == "embed":
        frozen = load_backbone(backbone, size)
        decoded_size = (frozen.size, frozen.size)
        cost = estimate(config, n, FEATURES, n_classes)
        seconds = cost.seconds + embedding_seconds(n, frozen.size) if frozen.name == LITE0 else None
        how = {"mode": chosen, "backbone": frozen.name}
    else:
        decoded_size = setting.decoded or (0, 0)
        cost = estimate(config, n, 8 * (config.width or 1), n_classes)
        seconds, how = None, {"mode": chosen}
    return {
        **how,
        "pictures": len(pictures),
        "size": list(decoded_size),
        "classes": n_classes,
        "unreadable": unreadable,
        "missing_labels": int((given.codes < 0).sum()),
        "trusted": int(certain.sum()),
        **annotator_facts(given),
        "estimated_bytes": round(cost.n_bytes),
        "estimated_seconds": None if seconds is None else round(seconds, 1),
        "cache": str(default_cache() if cache is None else cache),
        "cache_bytes": n * decoded_size[0] * decoded_size[1] * 3,
        "parameters": dataclasses.asdict(config),
        "warnings": [*notes, *pictures.notes],
    }


def annotator_facts(labels: Labels) -> dict[str, int]:
    """How many annotators and labels of theirs there are, if there are any."""
    said = labels.annotations
    return {} if said is None else {"annotators": len(said.names), "labels_by_annotators": len(said.sample)}


def _unreadable(pictures: Pictures) -> int:
    if isinstance(pictures.sources, np.ndarray):
        return 0
    return sum(isinstance(found, str) for found in header_sizes(pictures))
