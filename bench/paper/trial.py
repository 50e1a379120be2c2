"""One run of the method, or of a plain net, on a task made ready; tested after every round or pass.

The same for vectors and pictures. Test labels and true labels choose nothing: after every round the deployed net
answers for the test samples, and the answers are only written down. Seconds are those of the rounds and the decision;
the tests have a clock of their own and are left out.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from bench.paper.experiment import Keeping
from bench.paper.keeping import kept
from bench.paper.plain_net import Draw, train_plain_net
from bench.paper.rounds import diagnose
from bench.record import Say
from bench.trial import wait_for
from labelmend.decision.deciding import decider
from labelmend.decision.ensemble_evidence import posterior_labels
from labelmend.decision.limits import final_decision
from labelmend.decision.posterior import STATUS_NAMES
from labelmend.ensemble.fit import embed
from labelmend.ensemble.records import RoundRecord
from labelmend.ensemble.run import run
from labelmend.ensemble.state import RoundState
from labelmend.ensemble.stepper import sgd
from labelmend.ensemble.torch_state import fast_arithmetic, seeded
from labelmend.runs.task import Task
from labelmend.samples import Samples
from labelmend.self_test.comparison import Figures, score, score_review

LAST_ROUNDS = 10  # whose mean is the test accuracy
TELL_EVERY = 10  # rounds
SECONDS = "seconds"  # what looking at a round took; it is no curve

Codes = NDArray[np.int64]  # classes by number, as the task counts them; -1: none of them
Curves = dict[str, list[float]]  # what was seen after every round


@dataclass(frozen=True)
class Truth:
    """What is true of a task, for those who only look: its labels, and other samples with theirs."""

    true_labels: Codes | None = None
    test_samples: Samples | None = None
    test_labels: Codes | None = None


@dataclass(frozen=True)
class Outcome:
    figures: Figures
    curves: Curves
    labels: Codes  # after correction, or predicted by the plain net
    net: nn.Module
    state: RoundState | None = None  # None: a plain net


class Observer:
    """Writes down what a run looks like after every round; `seconds` is what that took."""

    def __init__(
        self,
        truth: Truth,
        device: torch.device,
        say: Say,
        on_round: Callable[[RoundRecord, RoundState], None] | None = None,
        given_labels: Tensor | None = None,
    ) -> None:
        self.truth, self.device, self.say, self.on_round = truth, device, say, on_round
        self.seen: list[dict[str, float]] = []  # of every round
        self._test_labels = None if truth.test_labels is None else torch.from_numpy(truth.test_labels).to(device)
        self._given_labels = given_labels
        self._true_labels = None if truth.true_labels is None else torch.from_numpy(truth.true_labels).to(device)

    @property
    def curves(self) -> Curves:
        """What was seen, by name; a round in which there was nothing to see of a kind is left out."""
        names = dict.fromkeys(name for seen in self.seen for name in seen if name != SECONDS)
        return {name: [seen[name] for seen in self.seen if name in seen] for name in names}

    @property
    def seconds(self) -> float:
        return sum(seen[SECONDS] for seen in self.seen)

    def after_round(self, record: RoundRecord, state: RoundState) -> None:
        began = self._begin()
        self._test(state.deployed_net)
        if self._true_labels is not None:
            self._note("labels_right", (state.corrected_labels == self._true_labels).double().mean())
        self._note("certainty", record.mean_certainty)
        if record.correction is not None:
            self._note("similarity", np.mean(record.correction.graph_similarity))
            if self._true_labels is not None and self._given_labels is not None:
                for name, value in diagnose(state, self._given_labels, self._true_labels).items():
                    self._note(name, value)
        if self.on_round is not None:
            self.on_round(record, state)
        self._tell("round", record.round_index, record.n_rounds)
        self._end(began)

    def after_pass(self, done: int, net: nn.Module, n_passes: int) -> None:
        began = self._begin()
        self._test(net)
        self._tell("pass", done, n_passes)
        self._end(began)

    def figures(self) -> Figures:
        tests = self.curves.get("test", [])
        if not tests:
            return {}
        return {"test_last": float(np.mean(tests[-LAST_ROUNDS:])), "test_best": max(tests), "test_final": tests[-1]}

    def _begin(self) -> float:
        self.seen.append({})
        wait_for(self.device)  # what the round left to do on a GPU is the round's
        return time.perf_counter()

    def _end(self, began: float) -> None:
        self.seen[-1][SECONDS] = time.perf_counter() - began

    def _test(self, net: nn.Module) -> None:
        if self.truth.test_samples is None or self._test_labels is None:
            return
        answers = embed(net, self.truth.test_samples)[1].argmax(dim=1)
        self._note("test", (answers == self._test_labels).double().mean())

    def _note(self, name: str, value: Tensor | float | np.floating) -> None:
        self.seen[-1][name] = round(float(value), 6)

    def _tell(self, unit: str, number: int, of: int) -> None:
        if number % TELL_EVERY and number != of:
            return
        test = self.seen[-1].get("test")
        tested = "" if test is None else f", {test:.4f} of the test samples right"
        self.say(f"  {unit} {number} of {of}{tested}")


def mend(
    task: Task,
    truth: Truth,
    say: Say,
    on_round: Callable[[RoundRecord, RoundState], None] | None = None,
    keeping: Keeping | None = None,
) -> Outcome:
    """The method on this task. `on_round` may look at more than is written down for all, if nothing is kept."""
    problem, config = task.problem, task.settings
    device = problem.samples.device
    observer = Observer(truth, device, say, on_round, problem.given_labels)
    _load_optimizer(device)
    began = time.perf_counter()
    with (
        kept(keeping or Keeping(), observer, problem, config) as (checkpoints, limit),
        seeded(config.seed, device),
        fast_arithmetic(device),
    ):
        state = run(
            problem,
            task.make_net,
            config,
            checkpoints=checkpoints,  # rounds are looked at before they are kept
            limit=limit,
            relabel=posterior_labels(config.net_power) if config.round_labels == "posterior" else None,
        )
        found = decider(state, problem, task.inputs, task.make_net, config)(problem)
        decision = final_decision(found, problem, config)
    labels = decision.labels.cpu().numpy()  # waits for the GPU
    seconds = checkpoints.seconds + time.perf_counter() - began - observer.seconds
    figures = {**label_figures(task, truth, labels), **observer.figures(), "noise_rate": found.noise_rate}
    if truth.true_labels is not None:
        in_review = decision.status.cpu().numpy() == STATUS_NAMES.index("review")
        figures |= score_review(truth.true_labels, labels, in_review)
    figures |= {"epochs": float(state.round_index), "seconds": seconds, "test_seconds": observer.seconds}
    return Outcome(figures, observer.curves, labels, state.deployed_net, state)


def train_plainly(task: Task, truth: Truth, say: Say, draw: Draw | None = None) -> Outcome:
    """A plain net on the labels of the task; its labels are its predictions for the samples it learned from."""
    problem, config = task.problem, task.settings
    device, n_passes = problem.samples.device, config.n_rounds
    observer = Observer(truth, device, say)
    _load_optimizer(device)
    began = time.perf_counter()
    with seeded(config.seed, device), fast_arithmetic(device):
        net = train_plain_net(
            problem, task.make_net, config, lambda done, net: observer.after_pass(done, net, n_passes), draw
        )
        labels = embed(net, problem.samples)[1].argmax(dim=1).cpu().numpy()
    seconds = time.perf_counter() - began - observer.seconds
    figures = {**label_figures(task, truth, labels), **observer.figures()}
    figures |= {"epochs": float(n_passes), "seconds": seconds, "test_seconds": observer.seconds}
    return Outcome(figures, observer.curves, labels, net)


def _load_optimizer(device: torch.device) -> None:
    """The first optimiser on a GPU imports seconds of torch, which are not the time of a run."""
    sgd([torch.nn.Parameter(torch.zeros(1, device=device))], 0.1, 0.0, 0.0)


def label_figures(task: Task, truth: Truth, labels: Codes) -> Figures:
    if truth.true_labels is None:
        return {}
    return score(truth.true_labels, task.problem.given_labels.cpu().numpy(), labels)


def codes_of(values: NDArray[np.generic], classes: NDArray[np.generic]) -> Codes:
    """True labels in the numbers of a task; a class that nobody was given is -1."""
    place = np.searchsorted(classes, values).clip(max=len(classes) - 1)
    return np.where(classes[place] == values, place, -1).astype(np.int64)
