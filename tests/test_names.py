"""Names say what they name: no function of one general word, no loop over `one`, no docstring that asks."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# The folders and files that are held to it. Not the trainers that are measured: small programs, whose
# functions are called `parse`, `push`, `learn` and `score`, as in their claims and profiles.
HELD: tuple[str, ...] = (
    "bench",
    "dashboard",
    "manage.py",
    "tests",
    "trainers/harness/src/paceline",
    "trainers/planted",
    "workers",
)
# Contracts that scripts outside call, and terms that an engineer of the field searches for as they are.
# `decide` is the decision of all regressions; `lap` is a mark like `phase`; statistics have no other word for
# a mean or a histogram.
TERMS = frozenset(
    {
        *("main", "decide", "detect", "suspect"),
        *("phase", "lap", "steps", "count", "gauge", "quality", "setting"),
        *("mean", "median", "quantile", "histogram"),
    }
)


def python_files(entry: str) -> list[Path]:
    """The files of an entry of HELD, none where it isn't there."""
    path = ROOT / entry
    files = [path] if path.is_file() else sorted(path.rglob("*.py"))
    return [file for file in files if "migrations" not in file.parts and "build" not in file.parts]


def is_fixture(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """A fixture is named like the argument that tests get by it: a value, not an action."""
    decorators = [node.func if isinstance(node, ast.Call) else node for node in node.decorator_list]
    return any(ast.unparse(decorator) == "pytest.fixture" for decorator in decorators)


def find_complaints(source: str) -> Iterator[str]:
    tree = ast.parse(source)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not is_fixture(node):
            name = node.name.strip("_")
            if "_" not in name and name not in TERMS:
                yield f"{node.lineno} function {node.name}: one general word"
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module):
            if "?" in (ast.get_docstring(node) or ""):
                yield f"{getattr(node, 'lineno', 1)} a docstring that asks"
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id == "one":
            yield f"{node.lineno} a variable named `one`"
        elif isinstance(node, ast.arg) and node.arg == "one":
            yield f"{node.lineno} an argument named `one`"


def test_names_say_what_they_name() -> None:
    complaints = [
        f"{file.relative_to(ROOT)}:{complaint}"
        for entry in HELD
        for file in python_files(entry)
        for complaint in find_complaints(file.read_text())
    ]
    assert complaints == []


def test_every_entry_holds_something() -> None:
    assert [entry for entry in HELD if not python_files(entry)] == []
    assert list(HELD) == sorted(set(HELD))


def test_a_planted_name_is_found() -> None:
    source = 'def settle(one):\n    "Is it settled?"\n    return [one for one in ()]\n'
    assert len(list(find_complaints(source))) == 4


def test_a_fixture_may_have_one_word() -> None:
    source = "@pytest.fixture(scope='module')\ndef project(): ...\n\ndef case(): ...\n"
    assert len(list(find_complaints(source))) == 1
