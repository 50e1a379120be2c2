"""`labelmend demo`: plants errors in the labels of pictures of clothes, corrects them, and says how it went."""

from __future__ import annotations

import dataclasses
import json
import warnings
from pathlib import Path
from typing import Any

from labelmend.cli.demo_data import CLOTHES, DEMO_TREES, RATE, clothes, clothes_with_errors
from labelmend.cli.terminal import ProgressLine, summary_lines
from labelmend.errors import LabelmendWarning
from labelmend.report.write import with_report
from labelmend.result import Correction
from labelmend.self_test.comparison import Figures, score
from labelmend.storage.run_folder import refuse_existing
from labelmend.storage.source import picture_source


def demo(out: Path | None, seed: int, as_json: bool, n_rows: int | None = None) -> int:
    """`n_rows`: only the first pictures."""
    if out is not None:
        refuse_existing(out, force=False)
    if not as_json:
        print("Planting errors: the pictures most easily mistaken for another kind of clothes get the wrong label ...")
    data, names = clothes_with_errors(seed, n_rows), clothes().class_names
    result = correct_with_progress(data.features, names[data.given_labels], seed)
    result = dataclasses.replace(
        result, source=picture_source(CLOTHES, "true_labels"), repeat=f"labelmend demo --seed {seed}"
    )
    figures = score(names[data.true_labels], names[data.given_labels], result.labels)
    folder = result.save(out) if out is not None else None
    if folder is not None:
        result = with_report(result, folder)
    if as_json:
        where = {"out": str(folder)} if folder else {}
        print(json.dumps({**figures, **result.summary(), **where}, ensure_ascii=False))
    else:
        lines = [*measured_lines(figures, len(result)), "", "what labelmend says without knowing the truth:"]
        print("\n".join([*lines, *summary_lines(result.summary(), folder)]))
    return 0


def correct_with_progress(features: Any, given: Any, seed: int) -> Correction:
    from labelmend.api import correct

    line = ProgressLine()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LabelmendWarning)  # they are in the summary
        try:
            return correct(features, given, seed=seed, callback=line.round, progress=line.stage)
        finally:
            line.finish()


def measured_lines(figures: Figures, n: int) -> list[str]:
    """Against the truth, in plain words."""
    wrong, broken = round((figures["true_noise_rate"] or 0) * n), round((figures["wrongly_changed"] or 0) * n)
    found = round((figures["recall"] or 0) * wrong)
    return [
        f"{n:,} pictures of clothes, {RATE:.0%} of the labels made wrong: those where a forest of {DEMO_TREES} trees "
        "hesitates most",
        f"labels right            {figures['given_accuracy']:>8.1%}  before",
        f"                        {figures['label_accuracy']:>8.1%}  after",
        f"wrong labels found      {found:>8,}  of {wrong:,} (recall {_percent(figures['recall'])}, "
        f"precision {_percent(figures['precision'])})",
        f"good labels broken      {broken:>8,}  of {n - wrong:,}",
    ]


def _percent(share: float | None) -> str:
    return "undefined" if share is None else f"{share:.1%}"
