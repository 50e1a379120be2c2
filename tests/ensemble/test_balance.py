import pytest
import torch

from labelmend.ensemble.fit import balanced, net_step, train_pass
from labelmend.ensemble.stepper import sgd
from labelmend.samples import VectorSamples


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("n", [12, 13, 100, 101])
def test_classes_are_drawn_equally_often_whatever_their_sizes(n):
    labels = torch.tensor([0] * (n - 9) + [2] * 7 + [5] * 2)
    places = torch.arange(n) + 1000  # places among more samples
    drawn = balanced(places, labels, generator())
    counts = torch.bincount(labels[drawn - 1000], minlength=6)
    assert len(drawn) == n
    assert counts[[1, 3, 4]].sum() == 0
    assert counts[[0, 2, 5]].max() - counts[[0, 2, 5]].min() <= 1


def test_samples_of_a_class_take_turns():
    labels = torch.tensor([0] * 90 + [1] * 10)
    often = torch.bincount(balanced(torch.arange(100), labels, generator()), minlength=100)
    assert set(often[:90].tolist()) == {0, 1}
    assert set(often[90:].tolist()) == {5}


def test_another_pass_draws_others_and_the_same_seed_the_same():
    labels, places = torch.tensor([0] * 90 + [1] * 10), torch.arange(100)
    first, second = (set(balanced(places, labels, g).tolist()) for g in [generator()] * 2)
    assert first == set(balanced(places, labels, generator()).tolist())
    one = generator()
    first, second = (set(balanced(places, labels, one).tolist()) for _ in range(2))
    assert first != second


def test_nothing_to_draw_from():
    nothing = torch.tensor([], dtype=torch.long)
    assert len(balanced(nothing, nothing, generator())) == 0


@pytest.mark.skipif(not torch.cuda.is_available(), reason="steps are recorded on a GPU only")
def test_recorded_steps_fit_every_balanced_pass():
    device = torch.device("cuda")
    chance = torch.Generator(device).manual_seed(0)
    labels = torch.tensor([0] * 80 + [1] * 15 + [2] * 5, device=device)
    samples = VectorSamples(torch.nn.functional.one_hot(labels, 3).float())
    net = torch.nn.Linear(3, 3).to(device)

    def loss(net, indices, x):
        counted.index_add_(0, labels[indices], torch.ones(len(indices), device=device))
        return torch.nn.functional.cross_entropy(net(x), labels[indices])

    counted = torch.zeros(3, device=device)
    step = net_step(net, sgd(net.parameters(), 0.1, 0.9, 0.0), loss, chance)
    for done in range(4):
        train_pass(net, step, samples, balanced(torch.arange(100, device=device), labels, chance), 20, chance)
        assert counted.sum() == 100 * (done + 1)
        assert counted.max() - counted.min() <= done + 1
    assert step._recorded is not None
