import json
import statistics

import pytest

from bench import table
from labelmend.errors import DataError


def figure(*values):
    spread = 0.0123 if len(values) > 1 else None
    middle = {"mean": sum(values) / len(values), "median": statistics.median(values)}
    return {"n": len(values), **middle, "spread": spread, "values": list(values)}


def row(case, method, note=None, **figures):
    return {"case": case, "method": method, "note": note, "figures": {name: figure(*v) for name, v in figures.items()}}


def record(name, *rows, quick=False, facts=None):
    return {
        "version": 1,
        "benchmark": name,
        "about": "what it is about",
        "command": f"python -m bench {name} --seeds 2",
        "quick": quick,
        "machine": {"cpu": "A Fast One", "cores": 2, "threads": 2, "gpu": None, "system": "Linux"},
        "versions": {"python": "3.11", "labelmend": "0.1.0", "cleanlab": None},
        "facts": facts or {},
        "rows": list(rows),
    }


ACCURACY = record(
    "digits",
    row("random", "labelmend", label_accuracy=(0.98, 0.99), f1=(0.9, 0.9), noise_rate=(0.2,), true_noise_rate=(0.2,)),
    row("random", "k-NN vote", label_accuracy=(0.97, 0.97), f1=(0.95, 0.95), true_noise_rate=(0.2,)),
    row("random", "cleanlab", note="not installed"),
    row("clean", "labelmend", label_accuracy=(0.9951,), noise_rate=(0.01,), true_noise_rate=(0.0,)),
    row("clean", "k-NN vote", label_accuracy=(0.9954,)),
    row("clean", "cleanlab", note="not installed"),
)


def test_markdown_shows_the_best_of_each_figure_in_bold_whoever_has_it():
    lines = table.markdown(ACCURACY).splitlines()
    assert lines[0] == "| digits | labelmend | k-NN vote | cleanlab | wrong labels, % | estimated by labelmend |"
    assert lines[1] == "| --- | --- | --- | --- | --- | --- |"
    assert lines[2] == (
        "| random | **98.5 ± 1.2** / 90.0 ± 1.2 | 97.0 ± 1.2 / **95.0 ± 1.2** | not installed | 20.0 | 20.0 |"
    )
    assert lines[3] == "| clean | **99.5** | **99.5** | not installed | 0.0 | 1.0 |"  # equal as printed
    assert lines[5].startswith("Labels right after correction, % / F1")
    assert "n = labelmend 2, k-NN vote 2, cleanlab 0" in lines[5]
    assert "A Fast One, cores 2, threads 2." in lines[5]
    assert "python 3.11, labelmend 0.1.0." in lines[5]
    assert lines[5].endswith("Command: `python -m bench digits --seeds 2`.")


def test_less_time_and_memory_is_better():
    cost = record(
        "speed",
        row("all", "labelmend", seconds=(20.0,), peak_bytes=(5e8,), times_cleanlab=(2.0,), label_accuracy=(0.9,)),
        row("all", "cleanlab", seconds=(10.0,), peak_bytes=(9e8,), times_cleanlab=(1.0,), label_accuracy=(0.8,)),
    )
    line = table.markdown(cost).splitlines()[2]
    assert line == "| all | 20.0 s, **0.50 GB**, **90.0 %** | **10.0 s**, 0.90 GB, 80.0 % | 2.00 |"


def test_nothing_is_best_without_a_neighbour():
    alone = record("classes", row("all", "labelmend", seconds=(20.0,)))
    assert table.markdown(alone).splitlines()[2] == "| all | 20.0 s |"


def test_a_table_without_labelmend_has_no_columns_about_it():
    assert (
        table.markdown(record("human", row("worst", "k-NN vote", f1=(0.5,)))).splitlines()[0] == "| human | k-NN vote |"
    )


def test_the_terminal_shows_every_figure_that_was_measured():
    lines = table.terminal_lines(ACCURACY)
    assert lines[0] == "digits: what it is about"
    head = next(line for line in lines if "labels right %" in line)
    assert "F1 %" in head
    assert "seconds" not in head
    assert any(line.startswith("random  labelmend  2  98.5 ± 1.2") for line in lines)
    assert any(line.startswith("random  cleanlab   0  not installed") for line in lines)


def test_a_quick_run_is_never_mistaken_for_a_result():
    quick = record("digits", row("random", "labelmend", f1=(0.5,)), quick=True)
    assert "QUICK RUN" in table.markdown(quick)
    assert any("QUICK RUN" in line for line in table.terminal_lines(quick))
    assert "QUICK RUN" not in table.markdown(ACCURACY)


def test_growth_is_told_in_words():
    names = ("seconds_exponent", "seconds_exponent_of_largest_three", "used_bytes_exponent")
    known = {**dict(zip(names, (1.1, 1.2, 0.9), strict=True)), "used_bytes_exponent_of_largest_three": None}
    facts = {"growth": {"labelmend": known, "cleanlab": dict.fromkeys(known)}}
    growth = record("growth", row("10 rows", "labelmend", seconds=(1.0,)), facts=facts)
    assert table.fact_lines(growth) == [
        "labelmend: time ~ rows^1.10 (three largest 1.20), memory above imports ~ rows^0.90 (three largest -)."
    ]


def test_times_of_the_same_work_are_told_by_their_median():
    rounds = record(
        "gpu-round", row("one round", "labelmend", round_seconds=(1.0, 1.2, 9.0)), facts={"repeated": "rounds"}
    )
    assert table.markdown(rounds).splitlines()[2] == "| one round | 1.200 ± 0.012 s |"
    assert "standard deviation over rounds" in table.markdown(rounds)


def test_accuracy_on_test_pictures_stands_beside_the_papers_and_is_no_race():
    ablation = record(
        "ablation",
        row("default", "labelmend", test_last=(0.8,), test_best=(0.9,), label_accuracy=(0.85,)),
        row("default", "paper, 200 epochs", test_last=(0.816,), test_best=(0.818,)),
    )
    assert table.markdown(ablation).splitlines()[2] == (
        "| all nets (the paper's default) | 80.0 / 90.0 | 81.6 / 81.8 | 85.0 |"
    )


def test_what_a_benchmark_wants_to_say_stands_under_the_table():
    said = record("embed", facts={"notes": ["One.", "Two."]})
    assert table.terminal_lines(said)[-2:] == ["One.", "Two."]
    assert not any("labels right" in line for line in table.terminal_lines(said))  # no table without rows


def test_files_become_tables_in_their_order(tmp_path, capsys):
    for name in ("b", "a"):
        (tmp_path / f"{name}.json").write_text(json.dumps(record(name, row("x", "labelmend", seconds=(1.0,)))))
    table.main([str(tmp_path / "b.json"), str(tmp_path / "a.json")])
    text = capsys.readouterr().out
    assert text.index("| b |") < text.index("| a |")


@pytest.mark.parametrize("content", ["{", "[]", '{"version": 2, "rows": []}', '{"version": 1}'])
def test_other_files_are_refused(tmp_path, content):
    path = tmp_path / "other.json"
    path.write_text(content)
    with pytest.raises(DataError, match="must be a JSON file"):
        table.read_record(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(DataError, match=r"absent\.json must be a JSON file"):
        table.read_record(tmp_path / "absent.json")
