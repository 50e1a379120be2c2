"""Pictures made ready: found, decoded, embedded or kept as pixels, as a `Task`.

Embedded, pictures become feature vectors. Trained on, they stay pixels. Those that cannot be read take no part.
"""

from __future__ import annotations

import hashlib
import os
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

from labelmend.config import Data, MakeConfig, RunConfig, Settings, resolve
from labelmend.ensemble.nets import PreActResNet, ResNet50
from labelmend.ensemble.run import Progress
from labelmend.ensemble.torch_state import choose_device
from labelmend.errors import ConfigError, DataError
from labelmend.inputs.annotators import read_annotated, settled
from labelmend.inputs.arrays import checked_labels, notice, read_ids, read_trusted
from labelmend.inputs.backbones import LITE0, Backbone, load_backbone, load_weights, read_weights
from labelmend.inputs.containers import is_table, objects
from labelmend.inputs.features import MIN_ROWS, check_features, conflicting_duplicates
from labelmend.inputs.labels import check_classes, read_labels
from labelmend.inputs.pictures.cache import DecodedPictures, decode, native_size
from labelmend.inputs.pictures.features import backbone_features
from labelmend.inputs.pictures.find import Pictures, check_pixels, checked, find_pictures, unique_or_rows
from labelmend.labels import AnnotatorColumns, Labels
from labelmend.models.pictures import EmbeddedImageModel, NamedBackbone, TrainedImageModel
from labelmend.models.vectors import NetFactory, VectorModel
from labelmend.runs.task import Task, checked_factory, make_problem, vector_task
from labelmend.samples import ImageSamples, colour_statistics

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


@dataclass(frozen=True)
class PictureSetting:
    """What a run on these pictures goes by: the one place that knows which preset and which rules are theirs."""

    mode: Mode
    data: Data
    config: RunConfig  # as it was asked for
    decoded: tuple[int, int] | None  # (height, width) to decode to; None: as the backbone wants it
    crop: int = 0  # side of the square that the net sees

    @classmethod
    def of(cls, mode: Mode, pictures: Pictures, size: int | None, make: MakeConfig) -> PictureSetting:
        if mode == "embed":
            return cls(mode, "vectors", make("vectors"), None)
        decoded, crop = train_size(pictures, size)
        data: Data = "photographs" if crop > SMALL else "pictures"
        return cls(mode, data, make(data), decoded, crop)

    def resolved(self, n_rows: int, n_classes: int) -> Settings:
        return resolve(self.config, n_rows, n_classes, self.data)


@dataclass(frozen=True)
class PictureTask:
    """A task, the pictures of it, and the labels of all pictures, also of those that cannot be read."""

    task: Task
    readable: Readable
    given: Labels
    unreadable: dict[str, str]  # id -> why
    notes: list[str]


@dataclass(frozen=True)
class _Order:
    """What is made ready."""

    pictures: Pictures
    given: Labels
    certain: NDArray[np.bool_]
    cache: Path
    setting: PictureSetting
    net: NetFactory | None
    announce: Progress


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
    found = read_ids(ids, len(sources)).astype(np.str_) if ids is not None or names is None else names
    marks = None if trusted is None else read_trusted(trusted, values)
    given = [None] * len(sources) if y is None else list(values.values(values.codes))
    return checked(Pictures(found, given, marks, sources, notes, annotators))


def read_given(pictures: Pictures, y: Any, missing: Any) -> tuple[Labels, NDArray[np.bool_]]:
    """The labels, to be handed back in the container of `y` or else as an array, and which of them are certain."""
    if y is None and any(label is not None for label in pictures.given):
        y = objects(pictures.given)
    if pictures.annotators is None:
        labels = read_labels(objects(pictures.given) if y is None else y, missing)
        return labels, read_trusted(pictures.trusted, labels)
    return checked_labels(read_annotated(y, pictures.annotators, missing), pictures.trusted)


def choose_mode(mode: str, device: str, make: MakeConfig) -> tuple[Mode, list[str]]:
    """What "auto" means here, and a note that says so.

    Wrong parameters are refused here too, before any data are read.
    """
    if mode not in MODES:
        raise ConfigError(f"mode must be one of {', '.join(MODES)}. Got {mode!r} instead.")
    train = mode == "train" or (mode == "auto" and choose_device(device).type == "cuda")
    make("pictures" if train else "vectors")
    notes = [AUTO_TRAINS if train else AUTO_EMBEDS] if mode == "auto" else []
    return "train" if train else "embed", notes


def train_size(pictures: Pictures, size: int | None) -> tuple[tuple[int, int], int]:
    """(height, width) to decode to in train mode, and the side of the square that the net sees."""
    if size is None:
        native = native_size(pictures)
        if native is not None and max(native) <= SMALL:
            return native, min(native)
    side = size or DECODED
    return (side, side), side if side <= SMALL else round(CROPPED * side)


def net_for_pictures(settings: Settings, crop: int, n_classes: int) -> Callable[[], nn.Module]:
    """What builds the net, with its pretrained weights if there are any."""
    large = settings.architecture == "resnet50" or (settings.architecture == "auto" and crop > SMALL)
    make: Callable[[], nn.Module] = (
        partial(ResNet50, n_classes, settings.width) if large else partial(PreActResNet, 3, n_classes, settings.width)
    )
    if not settings.weights:
        return make
    source, weights = settings.weights, read_weights(Path(settings.weights))

    def make_pretrained() -> nn.Module:
        net = make()
        load_weights(net, weights, source)
        return net

    make_pretrained()  # weights that do not fit are told before any work
    return make_pretrained


def default_cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "labelmend"


def picture_task(
    pictures: Pictures,
    mode: Mode,
    make: MakeConfig,
    y: Any = None,
    missing: Any = None,
    backbone: Any = LITE0,
    size: int | None = None,
    cache: str | Path | None = None,
    net: NetFactory | None = None,
    progress: Progress | None = None,
) -> PictureTask:
    """Pictures made ready to be corrected, as feature vectors or as pixels to train on."""
    given, certain = read_given(pictures, y, missing)
    setting = PictureSetting.of(mode, pictures, size, make)
    place = default_cache() if cache is None else Path(cache)
    order = _Order(pictures, given, certain, place, setting, net, progress or (lambda _: None))
    task, readable = _embed(order, load_backbone(backbone, size)) if mode == "embed" else _train(order)
    unreadable = {str(pictures.ids[row]): why for row, why in readable.unreadable.items()}
    notes = [*pictures.notes, *_unreadable_notes(unreadable)]
    notes += notice(readable.labels, task.duplicates, task.settings)
    return PictureTask(task, readable, given, unreadable, notes)


def _embed(order: _Order, backbone: Backbone) -> tuple[Task, Readable]:
    """Pictures as feature vectors."""
    device = choose_device(order.setting.config.device)
    pixels = decode(order.pictures, backbone.size, order.cache, order.announce)
    kept = _readable(pixels, order)

    def count(done: int, total: int) -> None:
        order.announce(f"embedding pictures ({done:,} of {total:,})")

    features = backbone_features(pixels.pixels, backbone, order.cache, pixels.fingerprint, device, count)
    check_features(features)
    task = vector_task(features, kept.labels, kept.trusted, order.setting.config, order.net)

    def make_model(decided: NDArray[np.int64], trained: nn.Module) -> EmbeddedImageModel:
        head: VectorModel = task.make_model(decided, trained)
        return EmbeddedImageModel(head.classes, device, head.head, NamedBackbone.of(backbone))

    return replace(task, make_model=make_model, fingerprint=_fingerprint(pixels, order.given)), kept


def _train(order: _Order) -> tuple[Task, Readable]:
    """Pictures as pixels."""
    decoded_size, crop = order.setting.decoded, order.setting.crop
    assert decoded_size is not None
    pixels = decode(order.pictures, decoded_size, order.cache, order.announce)
    kept = _readable(pixels, order)
    classes = order.given.classes
    settings = order.setting.resolved(len(kept.rows), len(classes))
    device = choose_device(settings.device)
    data = pixels_as_tensor(pixels.pixels, device)
    mean, spread = colour_statistics(data) if not settings.weights else IMAGENET
    samples = ImageSamples(data, mean, spread, crop, device)
    make_net = net_for_pictures(settings, crop, len(classes))
    if order.net is not None:
        make_net = checked_factory(order.net, 3, len(classes), samples, settings.seed)
    task = Task(
        make_problem(samples, kept.labels, kept.trusted, settings),
        make_net,
        order.setting.config,
        settings,
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
