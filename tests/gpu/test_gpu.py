"""What a GPU computes against slow plain arithmetic on a CPU: layers, nets, steps, graphs, a whole small problem.

`pytest -m gpu` runs it where there is CUDA; elsewhere it is skipped. A difference is the length of the error over the
length of the reference. References are in float64 wherever the GPU computes in another way; bfloat16 keeps 8 bits,
hence the tolerances of the nets.
"""

import copy

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import reference
from labelmend.api import correct_images
from labelmend.config import as_arguments
from labelmend.ensemble.fit import embed, net_step
from labelmend.ensemble.graphs import exact_neighbors, normalize_rows, normalized_graph
from labelmend.ensemble.nets import NormReLU, PreActResNet
from labelmend.ensemble.propagate import propagate, starting_rows
from labelmend.ensemble.stepper import sgd
from labelmend.ensemble.torch_state import fast_arithmetic
from labelmend.samples import ImageSamples, colour_statistics

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU"),
    pytest.mark.filterwarnings("ignore::labelmend.errors.LabelmendWarning"),
]
GPU, CPU = torch.device("cuda"), torch.device("cpu")
N, SIDE, C, WIDTH, K, GAMMA, ALPHA = 300, 16, 3, 8, 8, 3.0, 0.9
STEPS, BATCH = 8, 32
RATE, MOMENTUM, DECAY = 0.01, 0.9, 5e-4
EXACT, ROUNDED, BFLOAT16 = 1e-4, 2e-3, 3e-2  # float32; products of 19 bits; 8 bits through a whole net
# Rounding switches some ReLUs on or off, and gradients feel it: .09 where a CPU imitated bfloat16.
GRADIENTS = 0.2
TRAINED = 0.1  # the same arithmetic twice: only the order of sums may differ


@pytest.fixture(autouse=True)
def arithmetic_of_a_run():
    with fast_arithmetic(GPU):
        yield


def difference(value, expected):
    value, expected = (torch.as_tensor(numbers).detach().double().cpu() for numbers in (value, expected))
    return float((value - expected).norm() / expected.norm())


def too_far(tolerance, **pairs):
    """The differences above the tolerance, by name; one that is not a number is too far."""
    found = {name: difference(*pair) for name, pair in pairs.items()}
    return {name: value for name, value in found.items() if not value <= tolerance}


@pytest.fixture(scope="module")
def pictures():
    """Noise in which the brightest channel is the class, and the classes."""
    random = np.random.default_rng(0)
    labels = np.arange(N) % C
    pixels = random.integers(0, 150, (N, SIDE, SIDE, 3), dtype=np.uint8)
    pixels[np.arange(N), :, :, labels] += 60
    return pixels, labels


def samples_on(device, pictures):
    pixels = torch.from_numpy(pictures[0])
    return ImageSamples(pixels.to(device), *colour_statistics(pixels), SIDE, device)


@pytest.fixture(scope="module")
def net(pictures):
    """A few steps from its first weights, on the CPU: statistics and weights that mean something."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        made = PreActResNet(3, C, WIDTH)
    source, target = samples_on(CPU, pictures), torch.from_numpy(pictures[1])
    optimizer = sgd(made.parameters(), RATE, MOMENTUM, DECAY)
    step = net_step(
        made.train(), optimizer, lambda n, rows, x: F.cross_entropy(n(x)[1], target[rows]), torch.Generator()
    )
    for rows in torch.arange(N).split(BATCH)[:4]:
        step(rows, source.batch(rows, "none", None))
    return made


@pytest.mark.parametrize("adds", [False, True])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, EXACT), (torch.bfloat16, BFLOAT16)])
def test_normalisation_and_relu(dtype, tolerance, adds):
    """Against torch's layers in float64, alone and after a sum, which is kept rounded."""
    generator = torch.Generator().manual_seed(0)
    layer, plain = NormReLU(20).to(GPU), nn.BatchNorm2d(20).double()
    x, other, arriving, beside = (torch.randn(7, 20, 9, 5, generator=generator).to(dtype) for _ in range(4))
    x = 3 + 2 * x
    with torch.no_grad():
        layer.weight.copy_(torch.randn(20, generator=generator))
        layer.bias.copy_(torch.randn(20, generator=generator))
        plain.load_state_dict({name: value.cpu() for name, value in layer.state_dict().items()})
    own = [part.to(GPU).contiguous(memory_format=torch.channels_last).requires_grad_() for part in (x, other)]
    slow = [part.double().requires_grad_() for part in (x, other)]

    def fast_answer():
        return layer.of_sum(*own) if adds else (own[0] * 1, layer(own[0]))

    def slow_answer():
        total = slow[0] + slow[1] if adds else slow[0] * 1
        return total, F.relu(plain(total.to(dtype).double() if adds else total))

    (total, y), (expected_total, expected) = fast_answer(), slow_answer()
    torch.autograd.backward([y, total], [arriving.to(GPU), beside.to(GPU)])
    torch.autograd.backward([expected, expected_total], [arriving.double(), beside.double()])
    with torch.no_grad():
        layer.eval(), plain.eval()
        in_use, expected_in_use = fast_answer()[1], slow_answer()[1]
    pairs = {"other": (own[1].grad, slow[1].grad), "total": (total, expected_total)} if adds else {}
    assert not too_far(
        tolerance,
        forward=(y, expected),
        input=(own[0].grad, slow[0].grad),
        weight=(layer.weight.grad, plain.weight.grad),
        bias=(layer.bias.grad, plain.bias.grad),
        running_mean=(layer.running_mean, plain.running_mean),
        running_variance=(layer.running_var, plain.running_var),
        in_use=(in_use, expected_in_use),
        **pairs,
    )


def test_a_residual_net(pictures, net):
    here, there = copy.deepcopy(net).to(GPU), copy.deepcopy(net).double()
    everyone, target = torch.arange(N), torch.from_numpy(pictures[1])
    mine = samples_on(GPU, pictures)
    batch = mine.batch(everyone.to(GPU), "none", None)
    expected = samples_on(CPU, pictures).batch(everyone, "none", None)
    assert not too_far(EXACT, pictures=(batch, expected))
    with torch.no_grad():
        features, logits = there.eval()(expected.double())
    found = embed(here, mine)
    assert not too_far(BFLOAT16, features=(found[0], features), logits=(found[1], logits))
    for module, x in ((here, batch), (there, expected.double())):
        module.train().zero_grad()
        wrong = (target + 1) % C  # a gradient worth comparing
        F.cross_entropy(module(x)[1], wrong.to(x.device)).backward()
    assert not too_far(GRADIENTS, gradients=(gradients(here), gradients(there)))


def gradients(module):
    return torch.cat([p.grad.flatten() for p in module.parameters() if p.grad is not None])


def test_recorded_steps(pictures, net):
    """As they are taken in training, recorded from the fourth on, against the same ones taken plainly."""
    start, source = copy.deepcopy(net).to(GPU), samples_on(GPU, pictures)
    target = torch.from_numpy(pictures[1]).to(GPU)
    recorded, plain = copy.deepcopy(start).train(), copy.deepcopy(start).train()
    optimizer = sgd(plain.parameters(), RATE, MOMENTUM, DECAY)

    def loss(module, rows, x):
        return F.cross_entropy(module(x)[1], target[rows])

    generator = torch.Generator(GPU).manual_seed(0)
    step = net_step(recorded, sgd(recorded.parameters(), RATE, MOMENTUM, DECAY), loss, generator)
    for rows in torch.arange(STEPS * BATCH, device=GPU).view(STEPS, BATCH):
        x = source.batch(rows, "none", None)
        step(rows, x)
        plain.zero_grad()
        loss(plain, rows, x).backward()
        optimizer.step()
    moves = [change(module, start) for module in (recorded, plain)]
    statistics = [torch.cat([b.flatten() for b in m.buffers() if b.is_floating_point()]) for m in (recorded, plain)]
    assert not too_far(TRAINED, weights=moves, statistics=statistics)


def change(module, start):
    return torch.cat([(p - q).flatten() for p, q in zip(module.parameters(), start.parameters(), strict=True)])


@pytest.fixture(scope="module")
def rows():
    generator = torch.Generator().manual_seed(0)
    made = normalize_rows(torch.rand(N, 24, generator=generator))
    made[-1] = made[0]  # a duplicate is a neighbour, oneself is not
    return made


def test_neighbours(rows):
    """Which ones may differ where two are as near; how near they are may not."""
    found = exact_neighbors(rows.to(GPU), K)
    slow = rows.double().numpy()
    indices, similarities = found.indices.cpu().numpy(), reference.nearest(slow, K)[1]
    truly = np.take_along_axis(reference.cosine(slow), indices, axis=1)
    assert not (indices == np.arange(N)[:, None]).any()
    assert not too_far(ROUNDED, found=(found.similarities, similarities), of_those_found=(truly, similarities))


def test_graph_and_propagation(rows):
    found = exact_neighbors(rows.to(GPU), K)
    neighbours = found.indices.cpu().numpy(), found.similarities.double().cpu().numpy()
    W = reference.normalized_graph(reference.directed_graph(*neighbours, GAMMA))
    graph = normalized_graph(found, GAMMA)
    assert not too_far(EXACT, graph=(graph.to_dense(), W))

    labels, subset = torch.arange(N) % C, torch.arange(N) % 2
    starts = [starting_rows(labels.to(GPU), subset.to(GPU), m) for m in range(2)]
    suggested, _ = propagate(graph, starts, C, ALPHA, False, 1e-6, 500)
    held_out = np.zeros((N, C))
    for m in range(2):
        members = np.flatnonzero(subset == m)
        Y = reference.starting_labels(labels.numpy(), members, C)
        share = reference.distribution(reference.propagate(W, Y, ALPHA))
        share[members] = 0
        held_out += share
    assert not too_far(ROUNDED, held_out=(suggested.held_out, held_out))


def test_the_whole_method(pictures):
    """On a small problem, here and on a CPU. Their random numbers differ: labels are compared."""
    pixels, labels = pictures
    given = labels.copy()
    given[::5] = (given[::5] + 1) % C
    settings = {
        "n_rounds": 4,
        "n_branches": 3,
        "packages_per_branch": 2,
        "width": WIDTH,
        "warmup_passes": 4,
        "batch_size": BATCH,
        "correct_every": 2,
    }
    here, there = (
        correct_images(pixels, given, mode="train", device=str(device), **as_arguments(settings)).labels
        for device in (GPU, CPU)
    )
    assert (here != there).mean() <= 0.05
    assert (here != labels).mean() <= 0.05
