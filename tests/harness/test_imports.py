"""The harness's modules form layers: none imports, directly or not, a module that imports it."""

from __future__ import annotations

import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.rooms import imported_names

SOURCE = Path(__file__).resolve().parents[2] / "trainers/harness/src"


def import_graph(source: Path) -> dict[str, set[str]]:
    """Return each module's imports of modules below `source`, those for type checkers included."""
    files = {".".join(path.relative_to(source).with_suffix("").parts): path for path in source.rglob("*.py")}
    modules = {name.removesuffix(".__init__"): path for name, path in files.items()}
    graph = {}
    for name, path in modules.items():
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        imported = {target for _, target in imported_names(path.read_text(), package)}
        found = {target if target in modules else target.rpartition(".")[0] for target in imported}
        graph[name] = found & set(modules) - {name}
    return graph


def test_no_two_modules_import_each_other() -> None:
    graph = import_graph(SOURCE)
    assert len(graph) > 10
    assert len(list(TopologicalSorter(graph).static_order())) == len(graph)  # Raises CycleError at a circle.


def test_a_planted_circle_for_types_is_found(tmp_path: Path) -> None:
    package = tmp_path / "planted"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "one.py").write_text("from . import two\n")
    typed = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .one import A\n"
    (package / "two.py").write_text(typed)
    with pytest.raises(CycleError):
        TopologicalSorter(import_graph(tmp_path)).prepare()


# What the site and its hosts read manifests and documents with.
FORMATS = frozenset(
    {
        *("document", "document_rows", "manifest", "metrics"),
        *("phase_names", "schema", "statistics", "step_kinds"),
    }
)


def room_of(module: str) -> str:
    return [*module.split("."), ""][1]


def test_formats_import_nothing_that_measures() -> None:
    graph = import_graph(SOURCE)
    assert {room_of(name) for name in graph} >= FORMATS
    pairs = [(name, other) for name, others in graph.items() for other in others if room_of(name) in FORMATS]
    assert len(pairs) > 10
    assert [pair for pair in pairs if room_of(pair[1]) not in FORMATS] == []


STARTED = """
import gc
import paceline
before = gc.get_stats()[0]["collections"]
from paceline import __main__
print(gc.get_stats()[0]["collections"] - before, gc.get_threshold()[0])
"""


def test_the_command_line_starts_without_looking_for_garbage() -> None:
    command = [sys.executable, "-P", "-c", STARTED]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    collections, young = map(int, done.stdout.split())
    assert (collections, young) == (0, 100_000)
