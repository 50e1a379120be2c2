"""`correct_images`: the one call for pictures. Finds and decodes them, embeds them or trains on them.

Embedded, pictures become feature vectors and go the way of `correct`. Trained on, they stay pixels. Those that cannot
be read take no part and are listed in the result with the reason.
"""

from __future__ import annotations

import hashlib
import os
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from labelmend import api
from labelmend.config import Data, RunConfig, follow, make_config
from labelmend.ensemble.nets.preact_resnet import PreActResNet
from labelmend.ensemble.nets.resnet import ResNet50
from labelmend.ensemble.run import Callback, Progress
from labelmend.ensemble.time_limit import read_limit
from labelmend.ensemble.torch_state import own_torch
from labelmend.errors import ConfigError, DataError, LabelmendWarning
from labelmend.inputs.annotators import is_table, read_annotated, settled
from labelmend.inputs.backbones import LITE0, Backbone, load_backbone
from labelmend.inputs.containers import objects
from labelmend.inputs.features import MIN_ROWS, check_features, conflicting_duplicates
from labelmend.inputs.labels import check_classes, read_labels
from labelmend.inputs.pictures.cache import DecodedPictures, decode, native_size
from labelmend.inputs.pictures.features import backbone_features
from labelmend.inputs.pictures.find import Pictures, check_pixels, checked, find_pictures, unique_or_rows
from labelmend.inputs.weights import load_weights, read_weights
from labelmend.labels import AnnotatorColumns, Labels
from labelmend.models.pictures import EmbeddedImageModel, NamedBackbone, TrainedImageModel
from labelmend.models.vectors import NetFactory, VectorModel
from labelmend.result import Correction
from labelmend.samples import ImageSamples, colour_statistics
from labelmend.storage.checkpoint import CHECKPOINT_SECONDS
from labelmend.storage.source import call_text, source_of_pictures

Mode = Literal["embed", "train"]
MODES = ("auto", "embed", "train")
SMALL = 64  # up to this many pixels a side pictures are trained on as they are
DECODED = 256  # side of larger ones in train mode
CROPPED = 7 / 8  # of it that the net sees: 224 of 256
AUTO_TRAINS = "mode auto: there is a GPU, so nets are trained on the pictures; mode embed would be quicker"
AUTO_EMBEDS = "mode auto: no GPU is used, so pictures are embedded by a frozen backbone; mode train is slow here"
# Mean and spread of colours for which published weights were trained.
IMAGENET = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
GPU_SHARE = 0.3  # of the free memory of a GPU that pixels may take


@own_torch()
def correct_images(
    source: Any,
    y: Any = None,
    *,
    mode: str = "auto",
    backbone: Any = LITE0,
    size: int | None = None,
    cache: str | Path | None = None,
    labels: str | None = None,
    annotators: Any = None,
    ids: Any = None,
    trusted: Any = None,
    missing: Any = None,
    preset: str = "plus",
    net: NetFactory | None = None,
    callback: Callback | None = None,
    progress: Progress | None = None,
    checkpoints: str | Path | None = None,
    checkpoint_every: float = CHECKPOINT_SECONDS,
    time_limit: Any = None,
    **parameters: Any,
) -> Correction:
    """Correct the labels of pictures.

    source: a folder of class folders, a .csv or .parquet with the columns path and label, a folder saved by Hugging
        Face's `datasets`, an .npz with the arrays images and labels; or, with the labels `y`, a list of paths or an
        array of uint8 (N, H, W[, 1 or 3]).
    mode: "embed": features of a frozen backbone, then the method for vectors; "train": the nets of the method are
        trained on the pictures; "auto": train where there is a GPU, embed elsewhere.
    backbone: for "embed"; "efficientnet-lite0", "hf:NAME", a folder with a transformers model, or a torch.nn.Module.
    size: side in pixels to which pictures are fitted; by default the backbone's; in train mode the pictures' own if it
        is the same for all and at most 64, else 256, of which the net sees 224.
    cache: folder for decoded pixels and features; by default labelmend in $XDG_CACHE_HOME or ~/.cache.
    labels, ids, trusted: name columns; with `y`, ids and trusted are one value per picture, as in `correct`.
    annotators: names the column that says who gave the label, or a list of columns that hold the labels of each; with
        an array or a list of paths, as in `correct`.
    missing, preset, callback, progress, checkpoints, checkpoint_every, time_limit, parameters: as in `correct`.
    net: from (number of features, or 3 colours; number of classes).
    """
    began = time.perf_counter()
    limit = read_limit(time_limit)
    tell = progress or (lambda _: None)
    chosen, _, notes = choose(mode, preset, **parameters)  # what is wrong here is told before pictures are read
    pictures = read_source(source, y, labels, ids, trusted, annotators)
    origin = source_of_pictures(source, labels, ids, trusted, annotator_columns(annotators))
    given, certain = read_given(pictures, y, missing)
    for note in notes:
        tell(note)
    setting = setting_of(chosen, pictures, size, preset, **parameters)
    order = _Order(pictures, given, certain, default_cache() if cache is None else Path(cache), setting, net, tell)
    task, kept = _embed(order, load_backbone(backbone, size)) if chosen == "embed" else _train(order)
    unreadable = {str(pictures.ids[row]): why for row, why in kept.unreadable.items()}
    notes += [*pictures.notes, *_unreadable_notes(unreadable), *api.notice(kept.labels, task.duplicates, task.config)]
    for note in notes:
        warnings.warn(note, LabelmendWarning, stacklevel=3)  # own_torch stands in between
    with task.checkpoints_in(checkpoints, checkpoint_every) as keeper:
        solution = api.solve(task, callback, progress, keeper, limit)
    seconds = time.perf_counter() - began
    result = api.assemble(solution, task, given, pictures.ids, notes, seconds, kept.rows, unreadable)
    named = {"mode": mode, "backbone": backbone, "size": size, "labels": labels, "ids": ids, "trusted": trusted}
    named |= {"annotators": annotators, "missing": missing, "preset": preset, "net": net, **parameters}
    given_as = {"source": source} if y is None else {"source": source, "y": y}
    origin = replace(origin, missing=None if missing is None else str(missing))
    return replace(result, source=origin, repeat=call_text("correct_images", given_as, named))


def embedded_task(
    pictures: Pictures,
    missing: Any = None,
    backbone: Any = LITE0,
    size: int | None = None,
    cache: str | Path | None = None,
    preset: str = "plus",
    progress: Progress | None = None,
    **parameters: Any,
) -> tuple[api.Task, Readable, Labels]:
    """Pictures made ready to be corrected as feature vectors, those that can be read, and the labels of all."""
    setting = setting_of("embed", pictures, size, preset, **parameters)
    given, certain = read_given(pictures, None, missing)
    place = default_cache() if cache is None else Path(cache)
    order = _Order(pictures, given, certain, place, setting, None, progress or (lambda _: None))
    return *_embed(order, load_backbone(backbone, size)), given


def trained_task(
    pictures: Pictures,
    missing: Any = None,
    size: int | None = None,
    cache: str | Path | None = None,
    preset: str = "plus",
    progress: Progress | None = None,
    **parameters: Any,
) -> tuple[api.Task, Readable, Labels]:
    """The same for nets that are trained on the pictures themselves."""
    setting = setting_of("train", pictures, size, preset, **parameters)
    given, certain = read_given(pictures, None, missing)
    place = default_cache() if cache is None else Path(cache)
    order = _Order(pictures, given, certain, place, setting, None, progress or (lambda _: None))
    return *_train(order), given


@dataclass(frozen=True)
class Setting:
    """What a run on these pictures goes by: the one place that knows which preset and which rules are theirs."""

    data: Data
    config: RunConfig  # as it was asked for
    decoded: tuple[int, int] | None  # (height, width) to decode to; None: as the backbone wants it
    crop: int = 0  # side of the square that the net sees

    def followed(self, n_rows: int, n_classes: int) -> RunConfig:
        """With every None filled in."""
        return follow(self.config, n_rows, n_classes, self.data)


def setting_of(mode: Mode, pictures: Pictures, size: int | None, preset: str, **parameters: Any) -> Setting:
    if mode == "embed":
        return Setting("vectors", make_config(preset, "vectors", **parameters), None)
    decoded, crop = train_size(pictures, size)
    data: Data = "photographs" if crop > SMALL else "pictures"
    return Setting(data, make_config(preset, data, **parameters), decoded, crop)


@dataclass(frozen=True)
class _Order:
    """What was asked for, in whichever mode."""

    pictures: Pictures
    given: Labels
    certain: NDArray[np.bool_]
    cache: Path
    setting: Setting
    net: NetFactory | None
    tell: Progress


@dataclass(frozen=True)
class Readable:
    """The pictures that take part: their rows among all, labels and trusted marks; and why the others do not."""

    rows: NDArray[np.int64]
    labels: Labels
    trusted: NDArray[np.bool_]
    unreadable: dict[int, str]


def annotator_columns(annotators: Any) -> AnnotatorColumns:
    """Names of columns; None where it is something else."""
    if annotators is None or isinstance(annotators, str):
        return annotators
    named = isinstance(annotators, list | tuple) and all(isinstance(name, str) for name in annotators)
    return tuple(annotators) if named else None


def read_source(
    source: Any, y: Any, labels: str | None = None, ids: Any = None, trusted: Any = None, annotators: Any = None
) -> Pictures:
    """The pictures and all that is said about them, wherever they come from."""
    if isinstance(source, Pictures):
        return source
    if isinstance(source, str | os.PathLike):
        if y is not None:
            raise ConfigError("y goes with an array or a list of paths. A folder or file holds its labels itself.")
        for name, value in (("ids", ids), ("trusted", trusted)):
            if value is not None and not isinstance(value, str):
                raise ConfigError(f"{name} must name a column of {source}. Got {type(value).__name__} instead.")
        columns = annotator_columns(annotators)
        if columns is None and annotators is not None:
            raise ConfigError(f"annotators must name columns of {source}. Got {type(annotators).__name__} instead.")
        return find_pictures(Path(source), labels, ids, trusted, columns)
    if (y is None and not is_table(annotators)) or labels is not None:
        raise ConfigError("pictures that come as an array or a list of paths need their labels as y=.")
    sources: Any
    if isinstance(source, Sequence):
        sources = [Path(path) if isinstance(path, str | os.PathLike) else path for path in source]
        names, notes = unique_or_rows(list(source)) if all(isinstance(s, Path) for s in sources) else (None, [])
    else:
        sources, names, notes = check_pixels(np.asarray(source), "pictures"), None, list[str]()
    values = read_labels(y) if annotators is None else settled(read_annotated(y, annotators))
    if len(values.codes) != len(sources):
        raise DataError(
            f"there must be as many labels as pictures. Got {len(values.codes)} for {len(sources)} pictures instead."
        )
    found = api.read_ids(ids, len(sources)).astype(np.str_) if ids is not None or names is None else names
    marks = None if trusted is None else api.read_trusted(trusted, values)
    given = [None] * len(sources) if y is None else list(values.values(values.codes))
    return checked(Pictures(found, given, marks, sources, notes, annotators))


def read_given(pictures: Pictures, y: Any, missing: Any) -> tuple[Labels, NDArray[np.bool_]]:
    """The labels, to be handed back in the container of `y` or else as an array, and which of them are certain."""
    if y is None and any(label is not None for label in pictures.given):
        y = objects(pictures.given)
    if pictures.annotators is None:
        labels = read_labels(objects(pictures.given) if y is None else y, missing)
        return labels, api.read_trusted(pictures.trusted, labels)
    return api.checked_labels(read_annotated(y, pictures.annotators, missing), pictures.trusted)


def choose(mode: str, preset: str = "plus", **parameters: Any) -> tuple[Mode, RunConfig, list[str]]:
    """What "auto" means here, the configuration that goes with it, and a note that says so."""
    if mode not in MODES:
        raise ConfigError(f"mode must be one of {', '.join(MODES)}. Got {mode!r} instead.")
    device = api.choose_device(parameters.get("device", "auto"))
    train = mode == "train" or (mode == "auto" and device.type == "cuda")
    config = make_config(preset, "pictures" if train else "vectors", **parameters)
    notes = [AUTO_TRAINS if train else AUTO_EMBEDS] if mode == "auto" else []
    return "train" if train else "embed", config, notes


def train_size(pictures: Pictures, size: int | None) -> tuple[tuple[int, int], int]:
    """(height, width) to decode to in train mode, and the side of the square that the net sees."""
    if size is None:
        native = native_size(pictures)
        if native is not None and max(native) <= SMALL:
            return native, min(native)
    side = size or DECODED
    return (side, side), side if side <= SMALL else round(CROPPED * side)


def net_for_pictures(config: RunConfig, crop: int, n_classes: int) -> Callable[[], nn.Module]:
    """What builds the net, with its pretrained weights if there are any."""
    large = config.architecture == "resnet50" or (config.architecture == "auto" and crop > SMALL)
    make: Callable[[], nn.Module] = (
        partial(ResNet50, n_classes, config.width or 1)
        if large
        else partial(PreActResNet, 3, n_classes, config.width or 1)
    )
    if not config.weights:
        return make
    source, weights = config.weights, read_weights(Path(config.weights))

    def make_pretrained() -> nn.Module:
        net = make()
        load_weights(net, weights, source)
        return net

    make_pretrained()  # weights that do not fit are told before any work
    return make_pretrained


def default_cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "labelmend"


def _embed(order: _Order, backbone: Backbone) -> tuple[api.Task, Readable]:
    """Pictures as feature vectors."""
    device = api.choose_device(order.setting.config.device)
    pixels = decode(order.pictures, backbone.size, order.cache, order.tell)
    kept = _readable(pixels, order)

    def count(done: int, total: int) -> None:
        order.tell(f"embedding pictures ({done:,} of {total:,})")

    features = backbone_features(pixels.pixels, backbone, order.cache, pixels.fingerprint, device, count)
    check_features(features)
    task = api.vector_task(features, kept.labels, kept.trusted, order.setting.config, order.net)

    def make_model(decided: NDArray[np.int64], trained: nn.Module) -> EmbeddedImageModel:
        head: VectorModel = task.make_model(decided, trained)
        return EmbeddedImageModel(head.classes, device, head.head, NamedBackbone.of(backbone))

    return replace(task, make_model=make_model, fingerprint=_fingerprint(pixels, order.given)), kept


def _train(order: _Order) -> tuple[api.Task, Readable]:
    """Pictures as pixels."""
    decoded_size, crop = order.setting.decoded, order.setting.crop
    assert decoded_size is not None
    pixels = decode(order.pictures, decoded_size, order.cache, order.tell)
    kept = _readable(pixels, order)
    classes = order.given.classes
    config = order.setting.followed(len(kept.rows), len(classes))
    device = api.choose_device(config.device)
    data = pixels_as_tensor(pixels.pixels, device)
    mean, spread = colour_statistics(data) if not config.weights else IMAGENET
    samples = ImageSamples(data, mean, spread, crop, device)
    make_net = net_for_pictures(config, crop, len(classes))
    if order.net is not None:
        make_net = api.checked_factory(order.net, 3, len(classes), samples, config.seed)
    task = api.Task(
        api.make_problem(samples, kept.labels, kept.trusted, config),
        make_net,
        config,
        lambda _decided, trained: TrainedImageModel(classes, device, trained, mean, spread, decoded_size, crop),
        conflicting_duplicates(pixels.pixels, kept.labels.codes),
        _fingerprint(pixels, order.given),
    )
    return task, kept


def _readable(pixels: DecodedPictures, order: _Order) -> Readable:
    rows = pixels.readable
    labels = order.given.of_rows(rows)
    present = np.unique(labels.codes[labels.codes >= 0])
    if len(rows) < MIN_ROWS or len(present) < 2:
        raise DataError(
            f"there must be at least {MIN_ROWS} readable pictures of two classes. "
            f"Got {len(rows)} of {len(present)} instead, and {len(pixels.unreadable)} that cannot be read."
        )
    check_classes(labels)
    return Readable(rows, labels, order.certain[rows], pixels.unreadable)


def pixels_as_tensor(pixels: NDArray[np.uint8], device: torch.device) -> Tensor:
    """The same memory, or file, as a tensor; on a GPU that has room for it a copy there."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it must not be written to: it never is
        tensor = torch.from_numpy(pixels)
    if device.type == "cuda" and tensor.nbytes < GPU_SHARE * torch.cuda.mem_get_info(device)[0]:
        return tensor.to(device)
    return tensor


def _fingerprint(pixels: DecodedPictures, given: Labels) -> str:
    """SHA-256 of pictures and labels: tells whether a run belongs to these data."""
    said = b"" if given.annotations is None else given.annotations.digest().encode()
    return hashlib.sha256(pixels.fingerprint.encode() + given.codes.tobytes() + said).hexdigest()


def _unreadable_notes(unreadable: dict[str, str]) -> list[str]:
    if not unreadable:
        return []
    name, why = next(iter(unreadable.items()))
    return [
        f"{len(unreadable)} picture(s) could not be read and keep their labels, for example {name}: {why}; see "
        "`unreadable` in the result"
    ]
