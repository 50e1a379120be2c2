from functools import partial

import numpy as np
import pytest
import torch

from bench.paper import plain_net
from bench.paper.plain_net import train_plain_net
from blobs import blobs, plant
from labelmend.config import make_config, resolve
from labelmend.ensemble.fit import embed
from labelmend.ensemble.nets import MLP
from labelmend.ensemble.state import Problem
from labelmend.runs.pictures import picture_task, read_source
from labelmend.samples import VectorSamples


def problem(given, x):
    samples = VectorSamples(torch.from_numpy(x.astype(np.float32)))
    return Problem(samples, torch.from_numpy(given), torch.zeros(len(given), dtype=torch.bool), 3)


def recipe(n, **changes):
    return resolve(make_config("paper", hidden=32, **{"n_rounds": 6, **changes}), n, 3)


def answers(net, asked):
    return embed(net, asked.samples)[1].argmax(dim=1).numpy()


@pytest.mark.parametrize("mixup", [False, True])
def test_the_net_learns_the_labels_it_is_given(mixup):
    x, classes = blobs(n=240)
    asked = problem(classes, x)
    seen = []
    net = train_plain_net(
        asked,
        partial(MLP, x.shape[1], 32, 3),
        recipe(240, mixup=mixup),
        lambda done, net: seen.append((done, (answers(net, asked) == classes).mean())),
    )
    assert [done for done, _ in seen] == [1, 2, 3, 4, 5, 6]
    assert seen[-1][1] == (answers(net, asked) == classes).mean() > 0.95


def test_samples_without_a_label_are_left_out_and_drawn_ones_count(monkeypatch):
    x, classes = blobs(n=90)
    given = classes.copy()
    given[:30] = -1
    passes = []
    monkeypatch.setattr(
        plain_net, "train_pass", lambda net, step, samples, indices, *others: passes.append(sorted(indices.tolist()))
    )
    train_plain_net(problem(given, x), partial(MLP, 4, 8, 3), recipe(90, n_rounds=2))
    assert passes == [list(range(30, 90))] * 2
    passes.clear()
    train_plain_net(
        problem(given, x), partial(MLP, 4, 8, 3), recipe(90, n_rounds=1), draw=lambda generator: torch.tensor([40, 40])
    )
    assert passes == [[40, 40]]


def test_the_learning_rate_follows_the_schedule(monkeypatch):
    x, classes = blobs(n=60)
    rates = []
    monkeypatch.setattr(plain_net, "set_rate", lambda optimizer, lr: rates.append(lr))
    make = partial(MLP, 4, 8, 3)
    train_plain_net(problem(classes, x), make, recipe(60, n_rounds=4, lr=0.1, lr_milestones=(0.5, 0.75)))
    assert rates == pytest.approx([0.1, 0.1, 0.01, 0.001])
    rates.clear()
    train_plain_net(problem(classes, x), make, recipe(60, n_rounds=2, lr=0.1, lr_schedule="cosine"))
    assert rates == pytest.approx([0.1, 0.05])


def test_the_same_seed_gives_the_same_net_and_another_one_another():
    x, given = blobs(n=60)[0], plant(blobs(n=60)[1], 0.3)[0]
    nets = [
        train_plain_net(problem(given, x), partial(MLP, 4, 8, 3), recipe(60, n_rounds=2, mixup=True, seed=seed))
        for seed in (3, 3, 4)
    ]
    logits = [embed(net, problem(given, x).samples)[1] for net in nets]
    torch.testing.assert_close(logits[0], logits[1], rtol=0, atol=0)
    assert not torch.equal(logits[0], logits[2])


def test_pictures_become_a_task_for_it():
    pixels = np.zeros((24, 8, 8, 3), np.uint8)
    labels = np.array(["dark", "light"] * 12)
    pixels[1::2] = 200
    make = partial(make_config, "paper", n_rounds=30, width=4, batch_size=8, lr=0.02, device="cpu")
    ready = picture_task(read_source(pixels, labels), "train", make)
    task, readable, given = ready.task, ready.readable, ready.given
    assert task.settings.lr_milestones == (0.75,)
    assert list(given.classes) == ["dark", "light"]
    assert len(readable.rows) == 24
    net = train_plain_net(task.problem, task.make_net, task.settings)
    assert (answers(net, task.problem) == given.codes).mean() > 0.9
    make = partial(make_config, "paper", width=4, device="cpu")
    large = picture_task(read_source(np.zeros((24, 80, 80, 3), np.uint8), labels), "train", make, size=80).task.settings
    assert (large.batch_size, large.n_rounds, large.weight_decay) == (64, 15, 5e-3)
