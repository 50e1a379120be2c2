import pytest
import torch
from torch import nn

from labelmend.ensemble.stepper import Stepper


def make(loss, lr=0.1, momentum=0.0, after=None):
    """A weight that begins at 2, and the stepper that moves it."""
    w = nn.Parameter(torch.tensor(2.0))
    optimizer = torch.optim.SGD([w], lr=lr, momentum=momentum)
    return w, Stepper(optimizer, lambda *inputs: loss(w, *inputs), torch.Generator(), after)


def test_one_step_by_hand():
    w, step = make(lambda w, x: (w * x).mean())
    step(torch.tensor([1.0, 3.0]))
    assert w.item() == pytest.approx(2.0 - 0.1 * 2.0)  # the gradient is the mean of x
    assert step.mean_loss() == pytest.approx(4.0)  # before the step


def test_gradients_do_not_add_up_but_momentum_does():
    w, step = make(lambda w, x: w * x, momentum=0.5)
    seen = []
    for _ in range(3):
        step(torch.tensor(1.0))
        seen.append(w.item())
    assert seen == pytest.approx([1.9, 1.9 - 0.15, 1.75 - 0.175])


def test_all_inputs_reach_the_loss_in_order():
    w, step = make(lambda w, a, b, c: w * (a - b) * c)
    step(torch.tensor(5.0), torch.tensor(3.0), torch.tensor(7.0))
    assert w.item() == pytest.approx(2.0 - 0.1 * 14.0)


def test_steps_may_differ_in_size():
    w, step = make(lambda w, x: (w * x).sum())
    for n in (3, 1, 2, 4, 1):
        step(torch.ones(n))
    assert w.item() == pytest.approx(2.0 - 0.1 * 11)
    assert step.n_steps == 5


def test_the_mean_loss_is_over_steps_whatever_their_size():
    _, step = make(lambda w, x: w * 0 + x.mean(), lr=0.0)
    step(torch.tensor([1.0, 1.0, 1.0]))
    step(torch.tensor([7.0]))
    assert step.mean_loss() == pytest.approx(4.0)


def test_without_a_step_the_mean_loss_is_zero():
    assert make(lambda w, x: w * x)[1].mean_loss() == 0.0


def test_a_new_pass_begins_its_own_mean():
    _, step = make(lambda w, x: w * 0 + x)
    step(torch.tensor(7.0))
    step.begin_pass()
    assert step.mean_loss() == 0.0
    step(torch.tensor(1.0))
    assert (step.mean_loss(), step.n_steps) == (1.0, 1)


def test_a_forgotten_momentum_begins_at_zero_in_its_place():
    w, step = make(lambda w, x: w * x, momentum=0.5)
    step.forget()  # before the first step there is none
    step(torch.tensor(1.0))
    (before,) = (state["momentum_buffer"] for state in step.optimizer.state.values())
    step.forget()
    (after,) = (state["momentum_buffer"] for state in step.optimizer.state.values())
    assert after is before
    assert after.item() == 0.0
    step(torch.tensor(1.0))
    assert w.item() == pytest.approx(2.0 - 2 * 0.1)


def test_after_every_step_the_weights_have_moved_already():
    seen = []
    w, step = make(lambda w, x: w * x, after=lambda: seen.append(w.item()))
    step(torch.tensor(1.0))
    step(torch.tensor(2.0))
    assert seen == pytest.approx([1.9, 1.7])


@pytest.mark.skipif(not torch.cuda.is_available(), reason="steps are recorded on a GPU only")
def test_recorded_steps_are_those_of_the_cpu():
    ends = []
    for device in ("cpu", "cuda"):
        w, followed = nn.Parameter(torch.tensor(2.0, device=device)), torch.zeros((), device=device)
        optimizer = torch.optim.SGD([w], lr=0.1, momentum=0.9, fused=device == "cuda")
        step = Stepper(
            optimizer,
            lambda x, w=w: (w * x).square().mean(),
            torch.Generator(device),
            lambda w=w, followed=followed: followed.lerp_(w.detach(), 0.1),
        )
        for number in range(8):
            step(torch.full((2 if number == 6 else 3,), 0.1 * number, device=device))  # one of another size
        ends.append((w.item(), followed.item(), step.mean_loss()))
    assert ends[0] == pytest.approx(ends[1], rel=1e-5)
