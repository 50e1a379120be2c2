"""What a GPU computes, compared with slow plain arithmetic on a CPU: kernels, steps, graphs, a whole small problem.

Every check gives a relative difference, the length of the error over the length of the reference, and has a tolerance.
The references are in float64 wherever the GPU computes in another way; bfloat16 keeps 8 bits, hence the tolerances of
the nets. Without a GPU the same checks look at what the CPU computes, and the kernels run in Triton's interpreter where
that is installed.
"""

from __future__ import annotations

import copy
import importlib.util
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bench.picture_suite import Findings
from bench.runner import Say
from labelmend.api import correct_images
from labelmend.config import as_arguments
from labelmend.ensemble.embed import embed
from labelmend.ensemble.fit import net_step
from labelmend.ensemble.graphs import exact_neighbors, normalize_rows, normalized_graph
from labelmend.ensemble.nets.norm_relu import HAS_TRITON, NormReLU
from labelmend.ensemble.nets.preact_resnet import PreActResNet
from labelmend.ensemble.propagate import propagate, starting_rows
from labelmend.ensemble.sgd import sgd
from labelmend.ensemble.torch_state import choose_device, fast_arithmetic
from labelmend.errors import LabelmendWarning
from labelmend.samples import ImageSamples, colour_statistics

N_PICTURES, SIDE, N_CLASSES, WIDTH, K = 300, 16, 3, 8, 8
STEPS, BATCH = 8, 32
ALPHA = 0.9
EXACT, ROUNDED, BFLOAT16 = 1e-4, 2e-3, 3e-2  # float32; products of 19 bits; 8 bits through a whole net
# Rounding switches some ReLUs on or off, and gradients feel it: .09 where a CPU imitated bfloat16 here.
GRADIENTS = 0.2
TRAINED = 0.1  # the same arithmetic twice: only the order of sums may differ
SMALL_RUN: dict[str, Any] = {
    "n_rounds": 4,
    "n_branches": 3,
    "packages_per_branch": 2,
    "width": WIDTH,
    "warmup_passes": 4,
    "batch_size": BATCH,
    "correct_every": 2,
}


@dataclass(frozen=True)
class Comparison:
    what: str
    difference: float
    tolerance: float

    @property
    def holds(self) -> bool:
        return self.difference <= self.tolerance  # not so for NaN

    def __str__(self) -> str:
        verdict = "ok" if self.holds else "EXCEEDED"
        return f"{self.what:<58} {self.difference:.2e}  (at most {self.tolerance:.0e})  {verdict}"


def check(say: Say) -> Findings:
    """All comparisons that can be made here."""
    device = choose_device("auto")
    found: list[Comparison] = []
    notes = [f"Compared on {device}: relative differences from plain arithmetic on a CPU."]
    checks: list[Callable[[torch.device], Iterator[Comparison]]] = [check_net, check_steps, check_graphs]
    if device.type == "cuda":
        checks = [check_kernels, *checks, check_whole]
        if not HAS_TRITON:
            checks.remove(check_kernels)
            notes.append("Triton is not installed: no kernels of our own are used here.")
    else:
        notes.append("There is no GPU: recorded steps, sums on the device and the whole problem were not compared.")
        if can_interpret():
            checks = [check_kernels, *checks]
            notes.append("The kernels ran in Triton's interpreter.")
        else:
            notes.append("The kernels were not compared: Triton cannot be used here.")
    with fast_arithmetic(device):
        for one in checks:
            for comparison in one(device):
                say(str(comparison))
                found.append(comparison)
    broken = [comparison.what for comparison in found if not comparison.holds]
    notes += [str(comparison) for comparison in found]
    notes.append(f"EXCEEDED: {'; '.join(broken)}." if broken else f"All {len(found)} comparisons hold.")
    return Findings([], {"checks": [asdict(comparison) for comparison in found], "notes": notes}, not broken)


def can_interpret() -> bool:
    """Whether the kernels can run without a GPU; Triton looks at its environment when it is first imported."""
    if not importlib.util.find_spec("triton"):
        return False
    if "triton" not in sys.modules:
        os.environ["TRITON_INTERPRET"] = "1"
    return os.environ.get("TRITON_INTERPRET") == "1"


def check_kernels(device: torch.device) -> Iterator[Comparison]:
    """The fused kernels of normalisation and ReLU against torch's layers in float64, alone and after a sum."""
    cases = [(torch.float32, EXACT)] + ([(torch.bfloat16, BFLOAT16)] if device.type == "cuda" else [])
    for dtype, tolerance in cases:
        for adds in (False, True):
            name = f"{'sum, ' if adds else ''}normalisation and ReLU, {str(dtype).removeprefix('torch.')}"
            for what, value, wanted in kernel_answers(device, dtype, adds):
                yield Comparison(f"{name}, {what}", relative(value, wanted), tolerance)


def kernel_answers(
    device: torch.device, dtype: torch.dtype, adds: bool
) -> list[tuple[str, Tensor | None, Tensor | None]]:
    """What the kernels compute beside what they should."""
    from labelmend.ensemble.nets.fused_norm import add_norm_relu, norm_relu

    generator = torch.Generator().manual_seed(0)
    layer, reference = NormReLU(20).to(device), nn.BatchNorm2d(20).double()
    x, other, arriving, beside = (torch.randn(7, 20, 9, 5, generator=generator).to(dtype) for _ in range(4))
    x = 3 + 2 * x
    with torch.no_grad():
        layer.weight.copy_(torch.randn(20, generator=generator))
        layer.bias.copy_(torch.randn(20, generator=generator))
        reference.load_state_dict({k: v.cpu() for k, v in layer.state_dict().items()})
    own = [part.to(device).contiguous(memory_format=torch.channels_last).requires_grad_() for part in (x, other)]
    plain = [part.double().requires_grad_() for part in (x, other)]

    def kernels() -> tuple[Tensor, Tensor]:
        return add_norm_relu(layer, *own) if adds else (own[0] * 1, norm_relu(layer, own[0]))

    def layers() -> tuple[Tensor, Tensor]:
        total = plain[0] + plain[1] if adds else plain[0] * 1
        return total, F.relu(reference(total.to(dtype).double() if adds else total))  # the sum is kept rounded

    (total, y), (expected_total, expected) = kernels(), layers()
    torch.autograd.backward([y, total], [arriving.to(device), beside.to(device)])
    torch.autograd.backward([expected, expected_total], [arriving.double(), beside.double()])
    layer.eval(), reference.eval()
    with torch.no_grad():
        in_use, expected_in_use = kernels()[1], layers()[1]
    found = [
        ("forward", y, expected),
        ("gradient of the input", own[0].grad, plain[0].grad),
        ("gradient of the weight", layer.weight.grad, reference.weight.grad),
        ("gradient of the bias", layer.bias.grad, reference.bias.grad),
        ("running mean", layer.running_mean, reference.running_mean),
        ("running variance", layer.running_var, reference.running_var),
        ("in use", in_use, expected_in_use),
    ]
    if adds:
        found += [("the sum", total, expected_total), ("gradient of the other", own[1].grad, plain[1].grad)]
    return found


def check_net(device: torch.device) -> Iterator[Comparison]:
    """A narrow residual net: what it says and its gradients."""
    pixels, labels = small_pictures()
    net = trained_net(pixels, labels)
    here, there = copy.deepcopy(net).to(device), copy.deepcopy(net).double()
    mine, plain = samples(pixels, device), samples(pixels, torch.device("cpu"))
    everyone = torch.arange(len(pixels))
    batch, expected = mine.batch(everyone.to(device), "none", None), plain.batch(everyone, "none", None)
    yield Comparison("pictures as the net sees them", relative(batch, expected), EXACT)
    with torch.no_grad():
        answers = there.eval()(expected.double())
    for what, value, wanted in zip(("features", "logits"), embed(here, mine), answers, strict=True):
        yield Comparison(f"residual net, {what}", relative(value, wanted), BFLOAT16)
    target = torch.from_numpy(labels)
    for module, x, y in ((here, batch, target.to(device)), (there, expected.double(), target)):
        module.train().zero_grad()
        F.cross_entropy(module(x)[1], (y + 1) % N_CLASSES).backward()  # wrong classes: a gradient worth comparing
    yield Comparison("residual net, gradients of all weights", relative(gradients(here), gradients(there)), GRADIENTS)


def check_steps(device: torch.device) -> Iterator[Comparison]:
    """Steps as they are taken in training, recorded from the fourth on, against the same ones taken plainly."""
    pixels, labels = small_pictures()
    net = trained_net(pixels, labels).to(device)
    source, target = samples(pixels, device), torch.from_numpy(labels).to(device)
    first, second = copy.deepcopy(net).train(), copy.deepcopy(net).train()
    generator = torch.Generator(device).manual_seed(0)
    batches = torch.arange(STEPS * BATCH, device=device).view(STEPS, BATCH)
    plain = sgd(second.parameters(), 0.01, 0.9, 5e-4)

    def loss(module: nn.Module, indices: Tensor, x: Tensor) -> Tensor:
        return F.cross_entropy(module(x)[1], target[indices])

    step = net_step(first, sgd(first.parameters(), 0.01, 0.9, 5e-4), loss, generator)
    for indices in batches:
        x = source.batch(indices, "none", None)
        step(indices, x)
        plain.zero_grad()
        loss(second, indices, x).backward()
        plain.step()
    moved = [
        torch.cat([(p - start).flatten() for p, start in zip(m.parameters(), net.parameters(), strict=True)])
        for m in (first, second)
    ]
    yield Comparison(f"{STEPS} steps, change of all weights", relative(*moved), TRAINED)
    statistics = [torch.cat([b.flatten() for b in m.buffers() if b.is_floating_point()]) for m in (first, second)]
    yield Comparison(f"{STEPS} steps, running statistics", relative(*statistics), TRAINED)


def check_graphs(device: torch.device) -> Iterator[Comparison]:
    """Neighbours, the normalised graph and propagation on it, against scipy and a dense solution."""
    generator = torch.Generator().manual_seed(0)
    rows = normalize_rows(torch.rand(N_PICTURES, 24, generator=generator))
    rows[-1] = rows[0]  # a duplicate is a neighbour, oneself is not
    found = exact_neighbors(rows.to(device), K)
    similarity = (rows.double() @ rows.double().T).fill_diagonal_(-torch.inf)
    best = similarity.topk(K, dim=1)
    yield Comparison("similarities of the nearest neighbours", relative(found.similarities, best.values), ROUNDED)
    theirs = similarity.gather(1, found.indices.cpu())  # neighbours may differ where two are as near
    yield Comparison("similarities of the samples found", relative(theirs, best.values), ROUNDED)

    weights = scipy.sparse.csr_matrix(
        (
            found.similarities.double().cpu().clamp(min=0).pow(3).flatten().numpy(),
            found.indices.cpu().flatten().numpy(),
            np.arange(N_PICTURES + 1) * K,
        ),
        shape=(N_PICTURES, N_PICTURES),
    )
    both = (weights + weights.T).toarray()
    scale = 1 / np.sqrt(both.sum(axis=1))
    expected = torch.from_numpy(both * scale[:, None] * scale[None, :])
    graph = normalized_graph(found, 3.0)
    yield Comparison("graph, both directions of the edges added", relative(graph.to_dense(), expected), EXACT)

    labels = torch.arange(N_PICTURES) % N_CLASSES
    subset = torch.arange(N_PICTURES) % 2
    starts = [starting_rows(labels.to(device), subset.to(device), m) for m in range(2)]
    suggested, _ = propagate(graph, starts, N_CLASSES, ALPHA, False, 1e-6, 500)
    said = torch.zeros(N_PICTURES, N_CLASSES, dtype=torch.float64)
    system = torch.eye(N_PICTURES, dtype=torch.float64) - ALPHA * expected
    for m in range(2):
        start = F.one_hot(labels, N_CLASSES).double() * (subset == m).unsqueeze(1)
        shares = torch.linalg.solve(system, start)
        said += torch.where((subset == m).unsqueeze(1), 0.0, shares / shares.sum(dim=1, keepdim=True))
    yield Comparison("propagation, what others' labels say", relative(suggested.held_out, said), ROUNDED)


def check_whole(device: torch.device) -> Iterator[Comparison]:
    """The whole method on a small problem here and on a CPU. Their random numbers differ: labels are compared."""
    pixels, labels = small_pictures()
    given = labels.copy()
    given[::5] = (given[::5] + 1) % N_CLASSES
    results = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LabelmendWarning)
        for where in (str(device), "cpu"):
            results.append(correct_images(pixels, given, mode="train", device=where, **as_arguments(SMALL_RUN)).labels)
    here, there = results
    yield Comparison(f"{N_PICTURES} pictures, labels that differ from the CPU's", float((here != there).mean()), 0.05)
    yield Comparison(f"{N_PICTURES} pictures, labels that are wrong", float((here != labels).mean()), 0.05)


def gradients(net: nn.Module) -> Tensor:
    return torch.cat([p.grad.flatten() for p in net.parameters() if p.grad is not None])


def relative(value: Tensor | None, reference: Tensor | None) -> float:
    """Length of the error over the length of the reference."""
    assert value is not None
    assert reference is not None
    wanted = reference.detach().double().cpu()
    return float((value.detach().double().cpu() - wanted).norm() / wanted.norm())


def small_pictures() -> tuple[np.ndarray[Any, np.dtype[np.uint8]], np.ndarray[Any, np.dtype[np.int64]]]:
    """Noise in which the channel that is brighter tells the class."""
    rng = np.random.default_rng(0)
    labels = np.arange(N_PICTURES, dtype=np.int64) % N_CLASSES
    pixels = rng.integers(0, 150, (N_PICTURES, SIDE, SIDE, 3), dtype=np.uint8)
    pixels[np.arange(N_PICTURES), :, :, labels] += 60
    return pixels, labels


def samples(pixels: np.ndarray[Any, np.dtype[np.uint8]], device: torch.device) -> ImageSamples:
    tensor = torch.from_numpy(pixels)
    return ImageSamples(tensor.to(device), *colour_statistics(tensor), SIDE, device)


def trained_net(pixels: np.ndarray[Any, np.dtype[np.uint8]], labels: np.ndarray[Any, np.dtype[np.int64]]) -> nn.Module:
    """A few steps from its first weights, on the CPU: statistics and weights that mean something."""
    with _seed(0):
        net = PreActResNet(3, N_CLASSES, WIDTH)
    source, target, cpu = samples(pixels, torch.device("cpu")), torch.from_numpy(labels), torch.Generator()
    optimizer = sgd(net.parameters(), 0.01, 0.9, 5e-4)
    step = net_step(net.train(), optimizer, lambda n, rows, x: F.cross_entropy(n(x)[1], target[rows]), cpu)
    for indices in torch.arange(N_PICTURES).split(BATCH)[:4]:
        step(indices, source.batch(indices, "none", None))
    return net


@contextmanager
def _seed(seed: int) -> Iterator[None]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield
