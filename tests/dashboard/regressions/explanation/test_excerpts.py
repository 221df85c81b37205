from __future__ import annotations

import pytest

from dashboard.models import Project
from dashboard.regressions.explanation.excerpts import (
    MOST_LETTERS,
    Body,
    changed_lines,
    diff_bodies,
    function_body,
)
from tests.dashboard import factories
from tests.dashboard.conftest import Repository

BEFORE = """import numpy as np

SIZE = 8


class Ring:
    def push(self, batch):
        self.states[self.place] = batch
        self.place += len(batch)

    def sample(self):
        return self.states[:SIZE]
"""
AFTER = BEFORE.replace("import numpy", "import math\nimport numpy").replace(
    "        self.states[self.place] = batch\n", "        for one in batch:\n            self.write(one)\n"
)
PUSH = {"file": "ring.py", "function": "Ring.push", "line": 7, "changed": True}


def shown_lines(before: str, after: str, name: str = "push") -> list[str]:
    return [
        f"{line.sign}{line.text}"
        for line in diff_bodies(function_body(before, name), function_body(after, name))
    ]


@pytest.fixture
def ends(repository: Repository, tracked: Project) -> tuple[str, str]:
    good = repository.commit("old", ring_py=BEFORE)
    bad = repository.commit("new", ring_py=AFTER)
    tracked.mirror.fetch()
    return good, bad


def test_a_function_is_shown_without_its_indentation() -> None:
    assert shown_lines(BEFORE, AFTER) == [
        " def push(self, batch):",
        "-    self.states[self.place] = batch",
        "+    for one in batch:",
        "+        self.write(one)",
        "     self.place += len(batch)",
    ]


def test_lines_have_the_numbers_of_their_file() -> None:
    lines = diff_bodies(function_body(BEFORE, "Ring.push"), function_body(AFTER, "Ring.push"))
    assert [(line.old, line.new) for line in lines] == [(7, 8), (8, None), (None, 9), (None, 10), (9, 11)]


def test_what_stands_outside_all_functions_is_the_file() -> None:
    assert shown_lines(BEFORE, BEFORE.replace("SIZE = 8", "SIZE = 64"), "<module>")[2:4] == [
        "-SIZE = 8",
        "+SIZE = 64",
    ]


def test_a_new_function_is_all_added() -> None:
    assert shown_lines("", "def one():\n    pass\n", "one") == ["+def one():", "+    pass"]


@pytest.mark.parametrize("source", ["def (", "def other(): pass", ""])
def test_what_can_not_be_found_is_not_shown(source: str) -> None:
    assert shown_lines(source, source) == []


def test_a_long_line_is_cut_and_a_huge_file_left_out() -> None:
    long = diff_bodies(Body(1, ["a"]), Body(1, ["b" * 10_000]))
    assert len(long[-1].text) == MOST_LETTERS + 1
    assert diff_bodies(Body(1, ["a"] * 2000), Body(1, ["b"])) == []


def test_the_mirror_tells_what_was_changed(tracked: Project, ends: tuple[str, str]) -> None:
    other = {"file": "ring.py", "function": "Ring.sample", "line": 11, "changed": False}
    (excerpt,) = changed_lines(tracked, *ends, [other, PUSH])
    assert (excerpt["file"], excerpt["function"], excerpt["left_out"]) == ("ring.py", "Ring.push", 0)
    assert [line["sign"] for line in excerpt["lines"]] == [" ", "-", "+", "+", " "]


def test_without_a_mirror_nothing_is_shown(project: Project) -> None:
    line = factories.create_commits(project, 2)
    assert changed_lines(project, line[0].hash, line[1].hash, [PUSH]) == []
