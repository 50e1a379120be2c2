"""The counting, on a package of a few lines; the library's own figures are `python -m bench house`."""

import json
import textwrap

import pytest

from bench import house

FILES = {
    "__init__.py": "",
    "api.py": """
        from typing import TYPE_CHECKING
        from tiny.ensemble import run
        if TYPE_CHECKING:
            from tiny.report import page
        def correct(X, y):
            return run.play(X)
        """,
    "result.py": """
        def show():
            from tiny.report import page
        """,
    "errors.py": "class TinyError(Exception): pass",
    "ensemble/__init__.py": "",
    "ensemble/run.py": """
        import tiny.errors
        from . import graphs
        from .graphs import build
        def play(X):
            return build(X)
        """,
    "ensemble/graphs.py": """
        from ..storage.disk import keep
        def build(X):
            return [row for row in X]
        """,
    "ensemble/unused.py": "def never(): pass",
    "storage/__init__.py": "",
    "storage/disk.py": """
        NUMBERS = [n for n in range(3)]
        class Disk:
            size = 3
        def keep():
            from tiny.ensemble.run import play
        """,
    "report/__init__.py": "",
    "report/page.py": "import tiny.result",
}


@pytest.fixture
def tiny(tmp_path):
    root = tmp_path / "tiny"
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(textwrap.dedent(text))
    return root


def by_name(figures):
    return {figure.name: figure for figure in figures}


def test_the_hall_modules_and_lines_are_counted(tiny):
    found = by_name(house.figures_of_source(tiny))
    hall = found["modules in the hall"]
    assert (hall.found, hall.detail) == (4, ["__init__.py", "api.py", "errors.py", "result.py"])
    assert hall.holds
    assert found["installed modules"].found == len(FILES)
    assert found["installed lines"].found == sum(len(path.read_text().splitlines()) for path in tiny.rglob("*.py"))
    for number in range(6):
        (tiny / f"more{number}.py").touch()
    hall = by_name(house.figures_of_source(tiny))["modules in the hall"]
    assert (hall.found, hall.holds) == (10, False)


def test_the_longest_chain_is_of_imports_that_run(tiny):
    chain = by_name(house.figures_of_source(tiny))["longest chain of imports below ensemble.run, modules"]
    assert chain.detail == ["tiny.ensemble.run -> tiny.ensemble.graphs -> tiny.storage.disk"]
    assert chain.found == 2


def test_lazy_imports_close_a_cycle_and_those_for_type_checkers_do_not(tiny):
    found = by_name(house.figures_of_source(tiny))
    knots = found["knots of folders that import each other"]
    assert knots.found == 1
    assert knots.detail == [
        "ensemble -> storage, by tiny.ensemble.graphs",
        "storage -> ensemble, by tiny.storage.disk",
    ]
    assert not knots.holds
    assert found["imports excepted from that"].detail == ["result -> report"]
    assert house.cycles({("result", "report"): "", ("report", "result"): ""}) == []
    assert house.cycles({("a", "b"): "", ("b", "a"): ""}) == [["a", "b"]]


def test_files_count_where_a_function_of_theirs_is_called(tiny):
    called = house.in_child(
        tiny, "called", "from tiny.api import correct", "import tiny.ensemble.unused; correct([1], 2)"
    )
    assert called == ["api.py", "ensemble/graphs.py", "ensemble/run.py"]


def test_files_count_that_are_loaded_when_the_table_is_opened(tiny, tmp_path):
    table = tmp_path / "table.csv"
    table.write_text("a,b\n")
    statement = f"import tiny.storage.disk; open({str(table)!r}).read(); import tiny.errors"
    assert house.in_child(tiny, "imported", str(table), statement) == ["storage/disk.py"]
    with pytest.raises(RuntimeError, match="never opened"):
        house.in_child(tiny, "imported", str(table), "import tiny")


def test_a_figure_that_is_over_shows_in_the_exit_code(monkeypatch, capsys):
    monkeypatch.setattr(house, "figures_of_runs", lambda root: [house.Figure("parameters", 30, 25, ["x", "y"])])
    monkeypatch.setattr(house, "figures_of_source", lambda root: [house.Figure("modules", 1_000, 1_300)])
    assert house.main([]) == house.OVER
    printed = capsys.readouterr().out.splitlines()
    assert [line.endswith("OVER") for line in printed] == [False, True]
    assert house.main(["--json"]) == house.OVER
    assert [figure["holds"] for figure in json.loads(capsys.readouterr().out)] == [True, False]
