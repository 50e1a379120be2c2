"""The figures of the house: modules, lines, chains and cycles of imports, files walked, parameters, help, start-up.

`python -m bench house` prints each beside what is asked and fails where one is over; `--explain` names what was
counted, `--json` prints all of it for a program. What is read from the source needs nothing installed; what is measured
runs in child processes, so that nothing loaded here counts.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1] / "src" / "labelmend"
METHOD = "ensemble.run"  # inside the package
# A result saves, shows and exports itself; the imports are made when it is asked to.
EXCEPTIONS = frozenset((("result", "storage"), ("result", "report"), ("result", "export")))
STARTS = 5  # processes whose median is the time of an import
ROWS = "width,length,kind\n" + "1.0,2.0,a\n5.0,6.0,b\n" * 20
OK, OVER = 0, 1


@dataclass(frozen=True)
class Import:
    """Of one module of the package by another; those for type checkers are no imports."""

    source: str
    target: str
    lazy: bool  # inside a function


@dataclass(frozen=True)
class Figure:
    name: str
    found: float
    asked: float  # at most
    detail: Sequence[str] = ()

    @property
    def holds(self) -> bool:
        return self.found <= self.asked


def figures_of_source(root: Path, method: str = METHOD) -> list[Figure]:
    """What can be read without running anything."""
    modules, imports = modules_of(root), imports_of(root)
    hall = sorted(path.name for path in root.glob("*.py"))
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in modules.values())
    chain = longest_chain(imports, f"{root.name}.{method}")
    edges = between_folders(imports)
    knots = cycles(edges)
    tied = [
        f"{a} -> {b}, by {edges[a, b]}"
        for knot in knots
        for a, b in sorted(edges.keys() - EXCEPTIONS)
        if {a, b} <= set(knot)
    ]
    used = [f"{a} -> {b}" for a, b in sorted(edges) if (a, b) in EXCEPTIONS]
    return [
        Figure("modules in the hall", len(hall), 9, hall),
        Figure("installed modules", len(modules), 130),
        Figure("installed lines", lines, 17_500),
        Figure(f"longest chain of imports below {method}, modules", len(chain) - 1, 5, [" -> ".join(chain)]),
        Figure("knots of folders that import each other", len(knots), 0, tied),
        Figure("imports excepted from that", len(used), len(EXCEPTIONS), used),
    ]


def modules_of(root: Path) -> dict[str, Path]:
    """Files by the name they are imported by."""
    found = {}
    for path in sorted(root.rglob("*.py")):
        parts = [root.name, *path.relative_to(root).with_suffix("").parts]
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports_of(root: Path) -> list[Import]:
    modules, found = modules_of(root), []
    for source, path in modules.items():
        package = source if path.name == "__init__.py" else source.rpartition(".")[0]
        for statement, lazy in import_statements(ast.parse(path.read_text(encoding="utf-8")), False):
            targets = dict.fromkeys(names_in(statement, package, modules))
            found += [Import(source, target, lazy) for target in targets if target != source]
    return found


def import_statements(node: ast.AST, lazy: bool) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    """All but those under `if TYPE_CHECKING`; lazy ones stand in a function."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        yield node, lazy
    children: Sequence[ast.AST] = list(ast.iter_child_nodes(node))
    if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
        children = node.orelse
    for child in children:
        yield from import_statements(child, lazy or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def names_in(statement: ast.Import | ast.ImportFrom, package: str, modules: Mapping[str, Path]) -> Iterator[str]:
    """The modules of the package that a statement imports."""
    if isinstance(statement, ast.Import):
        yield from (alias.name for alias in statement.names if alias.name in modules)
        return
    start = package.split(".")[: len(package.split(".")) + 1 - statement.level] if statement.level else []
    base = ".".join([*start, *filter(None, [statement.module])])
    for alias in statement.names:
        names = (f"{base}.{alias.name}", base)
        yield from [name for name in names if name in modules][:1]


def longest_chain(imports: Sequence[Import], start: str) -> list[str]:
    """Of imports that run when a module is imported, the one named first; an import back into the chain ends it."""
    edges = grouped((one.source, one.target) for one in imports if not one.lazy)
    known: dict[str, list[str]] = {}

    def chain(name: str, above: frozenset[str]) -> list[str]:
        if name not in known:
            below = [chain(other, above | {name}) for other in sorted(edges.get(name, ())) if other not in above]
            known[name] = [name, *max(below, key=len, default=[])]
        return known[name]

    return chain(start, frozenset({start}))


def between_folders(imports: Sequence[Import]) -> dict[tuple[str, str], str]:
    """Who imports whom, lazily, too, and a module that does. Files of the hall count as folders of their own."""
    pairs = {(folder_of(one.source), folder_of(one.target)): one.source for one in reversed(imports)}
    return {(one, other): module for (one, other), module in pairs.items() if one != other}


def folder_of(module: str) -> str:
    return (module.split(".")[1:] or ["__init__"])[0]


def cycles(pairs: Iterable[tuple[str, str]]) -> list[list[str]]:
    """Folders each of which comes back to itself through the others; the excepted imports are left out."""
    edges = grouped(pair for pair in pairs if pair not in EXCEPTIONS)
    reach = {name: reachable(edges, name) for name in edges}
    knots = {frozenset(b for b in reach[a] if a in reach.get(b, ())) for a in reach if a in reach[a]}
    return sorted(sorted(knot) for knot in knots)


def reachable(edges: Mapping[str, set[str]], start: str) -> set[str]:
    found, todo = set(), [start]
    while todo:
        new = edges.get(todo.pop(), set()) - found
        found |= new
        todo += new
    return found


def grouped(pairs: Iterable[tuple[str, str]]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for one, other in pairs:
        found.setdefault(one, set()).add(other)
    return found


def figures_of_runs(root: Path) -> list[Figure]:
    """What can only be seen by running it."""
    load = "from sklearn.datasets import load_iris; from labelmend import correct; X, y = load_iris(return_X_y=True)"
    called = in_child(root, "called", load, "correct(X, y)")
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "table.csv"
        table.write_text(ROWS)
        words = ["labelmend", "correct", str(table), "--labels", "kind", "--out", str(Path(folder) / "run")]
        start = f"import runpy, sys; sys.argv = {words}; runpy.run_module('labelmend', run_name='__main__')"
        imported = in_child(root, "imported", str(table), start)
    parameters = in_child(root, "parameters")
    help_lines = in_child(root, "help")
    return [
        Figure("files walked by correct(X, y)", len(called), 32, called),
        Figure("files imported by labelmend correct before it opens the table", len(imported), 40, imported),
        Figure("parameters of correct", len(parameters), 25, parameters),
        Figure("lines of labelmend correct --help", len(help_lines), 60),
        Figure("seconds of import labelmend", round(import_seconds(root), 3), 0.3),
    ]


def in_child(root: Path, name: str, *words: str) -> list[str]:
    """What the child of that name has counted, in a process that has loaded nothing else."""
    command = [sys.executable, "-P", __file__, "--child", name, str(root), *words]
    done = subprocess.run(command, env=environment(root), capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the child process {name!r} failed:\n{done.stderr}")
    counted: list[str] = json.loads(done.stdout.splitlines()[-1])
    return counted


def environment(root: Path) -> dict[str, str]:
    path = os.pathsep.join([str(root.parent), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "COLUMNS": "80"}


def files_called(root: Path, first: str, statement: str) -> list[str]:
    """Files of the package with a function that the statement calls; what runs when a module is imported is none."""
    found = set()

    def note(frame: Any, event: str, _: Any) -> None:
        code = frame.f_code
        is_function = code.co_flags & inspect.CO_OPTIMIZED and not code.co_name.endswith(("comp>", "expr>"))
        if event == "call" and is_function and code.co_filename.startswith(str(root)):
            found.add(code.co_filename)

    names: dict[str, Any] = {}
    exec(first, names)
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        exec(statement, names)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    return [str(Path(path).relative_to(root)) for path in sorted(found)]


class Opened(BaseException):
    """No handler of errors may take it for one."""


def files_imported(root: Path, table: str, statement: str) -> list[str]:
    """Files of the package, other than empty ones, that are loaded when the statement first opens the table."""
    loaded: list[str] = []

    def note(event: str, values: tuple[Any, ...]) -> None:
        if event == "open" and str(values[0]) == table and not loaded:
            files = {Path(file) for module in [*sys.modules.values()] if (file := getattr(module, "__file__", None))}
            inside = sorted(path for path in files if path.is_relative_to(root))
            loaded.extend(str(path.relative_to(root)) for path in inside if path.stat().st_size)
            raise Opened

    sys.addaudithook(note)
    try:
        exec(statement, {})
    except Opened:
        return loaded
    raise RuntimeError(f"{table} was never opened")


def parameters(root: Path) -> list[str]:
    from labelmend import correct

    return [str(parameter) for parameter in inspect.signature(correct).parameters.values()]


def help_lines(root: Path) -> list[str]:
    command = [sys.executable, "-m", "labelmend", "correct", "--help"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


CHILDREN: dict[str, Callable[..., list[str]]] = {
    "called": files_called,
    "imported": files_imported,
    "parameters": parameters,
    "help": help_lines,
}


def import_seconds(root: Path) -> float:
    """Beyond what Python itself needs to start."""

    def seconds(statement: str) -> float:
        began = time.perf_counter()
        subprocess.run([sys.executable, "-P", "-c", statement], env=environment(root), check=True)
        return time.perf_counter() - began

    bare, ours = (statistics.median(map(seconds, [code] * STARTS)) for code in ("pass", f"import {root.name}"))
    return ours - bare


def lines_of(figures: Sequence[Figure], explain: bool) -> Iterator[str]:
    width = max(len(figure.name) for figure in figures)
    for figure in figures:
        verdict = "" if figure.holds else "  OVER"
        yield f"{figure.name:<{width}}  {figure.found:>8,}  asked {figure.asked:>8,}{verdict}"
        yield from (f"    {line}" for line in figure.detail if explain)


def main(rest: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m bench house", description=__doc__)
    parser.add_argument("--json", action="store_true", help="everything, as JSON")
    parser.add_argument("--explain", action="store_true", help="name what was counted")
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    asked = parser.parse_args(rest)
    if asked.child:
        name, root, *words = asked.child
        print("\n" + json.dumps(CHILDREN[name](Path(root), *words)))
        return OK
    figures = [*figures_of_source(ROOT), *figures_of_runs(ROOT)]
    if asked.json:
        print(json.dumps([{**asdict(figure), "holds": figure.holds} for figure in figures], indent=1))
    else:
        print("\n".join(lines_of(figures, asked.explain)))
    return OK if all(figure.holds for figure in figures) else OVER


if __name__ == "__main__":
    sys.exit(main())
