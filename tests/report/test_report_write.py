import dataclasses
import json
import subprocess
import sys

import numpy as np
import pytest
import result_by_hand as by_hand

import labelmend
from blobs import QUICK, blobs, plant
from blobs import as_options as options_of
from labelmend.cli.main import main
from labelmend.errors import RunFolderError

QUICK_OPTIONS = options_of(QUICK)


@pytest.fixture
def table(tmp_path):
    features, true = blobs(60)
    given, _ = plant(true, 0.1)
    lines = ["name,width,height,depth,weight,species"]
    lines += [f"row {i},{','.join(f'{x:.3f}' for x in row)},kind {given[i]}" for i, row in enumerate(features)]
    path = tmp_path / "table.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def run(table, tmp_path, capsys):
    out = tmp_path / "run"
    command = ["correct", str(table), "--labels", "species", "--id", "name", "--out", str(out), "--quiet"]
    assert main([*command, *QUICK_OPTIONS]) == 0
    return out


def test_correct_writes_the_report_and_names_it(run, capsys):
    assert str(run / "report.html") in capsys.readouterr().out
    text = (run / "report.html").read_text(encoding="utf-8")
    assert "Labels of table.csv" in text
    assert ">width</th>" in text  # rows were found again
    assert not list(run.glob(".*"))


def test_the_report_says_the_command_that_repeats_the_run(run, table, tmp_path, capsys):
    repeat = labelmend.load(run).repeat
    assert repeat.startswith(f"labelmend correct {table} --labels species --id name ")
    again = tmp_path / "again"
    words = repeat.replace(str(run), str(again)).split()
    assert words[-2:] == ["--out", str(again)]
    assert main(words[1:]) == 0
    assert (again / "labels.csv").read_bytes() == (run / "labels.csv").read_bytes()


def test_report_writes_the_same_page_again_in_its_place(run, capsys):
    before = (run / "report.html").read_bytes()
    (run / "report.html").write_text("old")
    assert main(["report", str(run)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == str(run / "report.html")
    assert (run / "report.html").read_bytes() == before


def test_another_file_is_replaced_only_with_force(run, tmp_path, capsys):
    target = tmp_path / "page.html"
    target.write_text("mine")
    assert main(["report", str(run), "--out", str(target)]) == 2
    assert "must not exist" in capsys.readouterr().err
    assert target.read_text() == "mine"
    assert main(["report", str(run), "--out", str(target), "--force"]) == 0
    assert target.read_bytes() == (run / "report.html").read_bytes()
    assert main(["report", str(run), "--out", str(tmp_path), "--force"]) == 2
    assert "plain files only" in capsys.readouterr().err


def test_the_data_and_other_files_of_the_run_are_never_replaced(run, table, capsys):
    kept = [table, run / "labels.csv"]
    before = [path.read_bytes() for path in kept]
    for target in (*kept, run / "page.html"):
        assert main(["report", str(run), "--out", str(target), "--force"]) == 2
        assert "must not be a run or the data, or in them" in capsys.readouterr().err
    assert [path.read_bytes() for path in kept] == before
    assert not (run / "page.html").exists()


def test_data_that_moved_are_found_with_data(run, table, tmp_path, capsys):
    moved = tmp_path / "elsewhere" / "renamed.csv"
    moved.parent.mkdir()
    table.rename(moved)
    assert main(["report", str(run)]) == 0
    reason = f"there must be data at {table}. There are none any more; say where they are with --data"
    assert capsys.readouterr().out.splitlines()[-2:] == [str(run / "report.html"), f"note: {reason}"]
    assert f"Samples cannot be shown: {reason}.<" in (run / "report.html").read_text(encoding="utf-8")
    assert main(["report", str(run), "--data", str(moved)]) == 0
    assert ">width</th>" in (run / "report.html").read_text(encoding="utf-8")
    assert main(["report", str(run), "--data", str(tmp_path / "nowhere")]) == 2


def test_a_folder_that_is_no_run_is_refused(tmp_path, capsys):
    assert main(["report", str(tmp_path)]) == 2
    assert "run folder" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_result_in_memory_has_a_report_too(tmp_path):
    target = by_hand.result().report(tmp_path / "page.html")
    assert "cat" in target.read_text(encoding="utf-8")
    with pytest.raises(RunFolderError, match="must not exist"):
        by_hand.result().report(target)
    by_hand.result().report(str(target), force=True)
    assert by_hand.result().report(tmp_path / "new folder" / "page.html").is_file()


def test_templates_are_loaded_when_a_page_is_written_and_not_before():
    unloaded = "{'jinja2', 'labelmend.report.contents'}"
    program = f"import sys, labelmend, labelmend.report.write; assert not {unloaded} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_report_that_cannot_be_written_leaves_nothing_behind(tmp_path, monkeypatch):
    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(RunFolderError, match="No space left"):
        by_hand.result().report(tmp_path / "new folder" / "page.html")
    assert list(tmp_path.iterdir()) == []


def test_a_report_that_fails_does_not_lose_the_run(table, tmp_path, monkeypatch, capsys):
    def fail(*_):
        raise ValueError("no ink")

    monkeypatch.setattr("labelmend.report.contents.make_contents", fail)
    out = tmp_path / "run"
    command = ["correct", str(table), "--labels", "species", "--id", "name", "--out", str(out), "--quiet", "--json"]
    assert main([*command, *QUICK_OPTIONS]) == 0
    assert any("no ink" in note for note in json.loads(capsys.readouterr().out)["warnings"])
    assert len(labelmend.load(out)) == 60
    assert not (out / "report.html").exists()


def test_old_runs_without_map_versions_or_source_have_a_report(run, capsys):
    (run / "map.npz").unlink()
    (run / "source.json").unlink()
    config = json.loads((run / "config.json").read_text())
    del config["repeat"]
    (run / "config.json").write_text(json.dumps({**config, "format_version": 2}))
    assert main(["report", str(run)]) == 0
    text = (run / "report.html").read_text(encoding="utf-8")
    assert "This run has no map" in text
    assert "is not recorded" in text


def test_pictures_of_a_list_of_files_are_in_the_report(tmp_path):
    from PIL import Image

    features, true = blobs(40, 2)
    paths = []
    for i in range(40):
        paths.append(tmp_path / f"{i}.png")
        Image.new("RGB", (20, 20), (i, 100, 0)).save(paths[-1])
    from labelmend.result import Source

    result = labelmend.correct(features, plant(true, 0.2)[0], ids=[str(p) for p in paths], expert=QUICK)
    result = dataclasses.replace(result, source=Source("pictures", files=tuple(map(str, paths))))
    text = result.report(tmp_path / "page.html").read_text(encoding="utf-8")
    assert text.count('<img src="data:image/png;base64,') > result.count("corrected")
    assert result.repeat.startswith("labelmend.correct(X, y, ids=ids, preset='default', expert={'n_rounds': 2")
    assert np.isfinite(result.map.positions).all()


def test_after_a_review_the_report_shows_the_merged_labels(run, capsys):
    from labelmend.review.decisions import FILE, LABEL, Choice, Decisions, Subject
    from labelmend.storage.run_folder import read_run

    before = read_run(run)
    log = Decisions(run / FILE, Subject.of(before))
    for sample in np.flatnonzero(before.status == "kept")[:2].tolist():
        other = int(before.corrected_codes[sample] + 1) % 3
        log.decide([Choice(sample, LABEL, other, int(log.standing.number[sample]))], "tab", str(sample))
    log.close()
    assert main(["apply", str(run)]) == 0
    assert main(["report", str(run)]) == 0
    text = (run / "report.html").read_text(encoding="utf-8")
    assert "2 were decided by a person" in text
    assert 'class="dot dot-reviewed"></span> 2 reviewed' in text
