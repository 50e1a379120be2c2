"""One run on photographs: the method or a plain net, then fine-tuning or a new classifier where the table asks for it.

Knows a task made ready; does not know where its pictures came from, nor tables. What people verified chooses nothing.
"""

from __future__ import annotations

from dataclasses import replace

import torch

from bench.paper.experiment import Measured
from bench.paper.photo_lists import IntArray
from bench.paper.photo_task import PhotoTask
from bench.paper.plain_net import Draw
from bench.paper.trial import Outcome, mend, train_plainly
from bench.record import Say
from labelmend.config import Settings
from labelmend.ensemble.fit import balanced
from labelmend.ensemble.train import FINE_TUNE_RATE
from labelmend.runs.task import Task
from labelmend.self_test.comparison import Figures

FIGURES = ("test_last", "test_final", "test_best")


def corrected(found: PhotoTask, say: Say) -> Outcome:
    """The method."""
    return mend(found.task, found.truth, say)


def as_they_are(found: PhotoTask, say: Say) -> Outcome:
    """A plain net on the labels as they are given."""
    return train_plainly(found.task, found.truth, say, _draw(found.task))


def fine_tuned(found: PhotoTask, outcome: Outcome, plain: Settings, epochs: int, say: Say) -> Measured:
    """What the run gave, and the same net after more epochs on the certain labels alone."""
    problem = found.task.problem
    certain = replace(problem, given_labels=problem.given_labels.masked_fill(~problem.trusted, -1))
    settings = replace(plain, n_rounds=epochs, lr=FINE_TUNE_RATE * plain.lr, lr_milestones=())
    task = replace(found.task, problem=certain, settings=settings, make_net=lambda: outcome.net.requires_grad_(True))
    tuned = as_they_are(replace(found, task=task), say)
    after = {f"{name}_fine_tuned": tuned.figures.get(name) for name in (*FIGURES, "seconds")}
    curves = {**outcome.curves, "test_fine_tuned": tuned.curves.get("test", [])}
    return Measured({**outcome.figures, **after}, curves, found.more)


def new_classifier(found: PhotoTask, outcome: Outcome, plain: Settings, say: Say) -> Measured:
    """A net that begins anew and learns from the corrected labels; `own_` figures are those of the corrected net."""
    problem = found.task.problem
    given = problem.given_labels.cpu().numpy()
    corrected = replace(problem, given_labels=torch.from_numpy(outcome.labels).to(problem.given_labels))
    task = replace(found.task, problem=corrected, settings=plain)
    learnt = as_they_are(replace(found, task=task), say)
    own: Figures = {f"own_{name}": outcome.figures.get(name) for name in FIGURES}
    seconds = {"seconds": sum(each.figures["seconds"] or 0.0 for each in (outcome, learnt))}
    found_wrong = {} if found.verified is None else verified_figures(found.verified, given, outcome.labels)
    noise = {"noise_rate": outcome.figures.get("noise_rate"), "changed": float((outcome.labels != given).mean())}
    curves = {**learnt.curves, **{f"own_{name}": curve for name, curve in outcome.curves.items()}}
    return Measured({**learnt.figures, **own, **found_wrong, **noise, **seconds}, curves, found.more)


def verified_figures(verified: IntArray, given: IntArray, labels: IntArray) -> Figures:
    """How well the changes find the wrong labels, of those pictures whose labels people looked at."""
    wrong, changed = verified == 0, (labels != given) & (verified >= 0)
    hits = int((wrong & changed).sum())
    n_wrong, n_changed = int(wrong.sum()), int(changed.sum())
    return {
        "precision": hits / n_changed if n_changed else None,
        "recall": hits / n_wrong if n_wrong else None,
        "f1": 2 * hits / (n_wrong + n_changed) if n_wrong else None,
        "true_noise_rate": n_wrong / max(int((verified >= 0).sum()), 1),
    }


def _draw(task: Task) -> Draw | None:
    """Class-balanced passes of a plain net, where they are asked for."""
    if not task.settings.balanced:
        return None
    labels = task.problem.given_labels
    labelled = torch.nonzero(labels >= 0).squeeze(1)
    return lambda generator: balanced(labelled, labels[labelled], generator)
