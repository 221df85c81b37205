from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from paceline import compare, document, profile, show
from paceline.counting import profile_rows

from .test_counting import profile_of, profiled, recurse

GOLDEN = Path(__file__).parent.parent / "golden" / "paceline.document-1-complete.json"


def inner() -> int:
    return len("abc")


def outer() -> None:
    inner()
    inner()


def branch(depth: int) -> None:
    if depth:
        left(depth - 1)
        right(depth - 1)


def left(depth: int) -> None:
    branch(depth)


def right(depth: int) -> None:
    branch(depth)


def stacks_of(work: Callable[[], object], room: int = 1000) -> dict[str, Any]:
    return profile_rows.stack_rows([profile_of(work, room)], Path(__file__).parent, 1)


def test_a_stack_names_its_frames_from_the_outermost() -> None:
    rows = {tuple(row["stack"][-3:]): row["calls"] for row in stacks_of(outer)["rows"]}
    here, line = Path(__file__).name, outer.__code__.co_firstlineno
    innermost = (f"outer {here}:{line}", f"inner {here}:{inner.__code__.co_firstlineno}", "len (built-in)")
    assert rows[innermost] == 2


def test_stacks_and_functions_sum_to_the_same() -> None:
    found = profile_of(lambda: branch(5))
    rows = profile_rows.function_rows([found], Path("/"), 1)
    seen = profile_rows.stack_rows([found], Path("/"), 1)
    for name in ("self", "calls"):
        whole = sum(row[name] for row in seen["rows"]) + seen["rest"][name]
        function = sum(sum(row["calls"].values()) if name == "calls" else row["self"] for row in rows)
        assert whole == pytest.approx(function)


def test_calls_without_room_for_their_stack_are_counted_all_the_same() -> None:
    roomy, tight = (profiled(lambda: branch(6), room) for room in (10_000, 60))
    assert {name: row["calls"] for name, row in tight.items()} == {
        name: row["calls"] for name, row in roomy.items()
    }
    assert tight["branch"]["cumulative"] >= tight["branch"]["self"]
    assert stacks_of(lambda: branch(6), 60)["rest"]["calls"] > 100


def test_what_a_full_tree_calls_is_in_its_callers_cumulative_time() -> None:
    found = profiled(lambda: recurse(200), 100)
    assert found["recurse"]["calls"] == 201
    assert found["<lambda>"]["cumulative"] >= found["recurse"]["self"]


def test_stacks_deeper_than_the_limit_are_in_the_rest() -> None:
    found = stacks_of(lambda: recurse(200))
    assert max(len(row["stack"]) for row in found["rows"]) == profile_rows.DEPTH_LIMIT
    assert found["rest"]["calls"] > 100


@pytest.fixture
def found() -> document.Profile:
    """The profile of a document that holds every optional member."""
    kept = document.read_document(GOLDEN.read_text()).profile
    assert kept is not None
    return kept


def changed(**members: list[dict[str, Any]]) -> document.Profile:
    raw = json.loads(GOLDEN.read_text())
    raw["profile"].update(members)
    kept = document.read_document(json.dumps(raw)).profile
    assert kept is not None
    return kept


def test_a_profile_less_itself_is_nothing(found: document.Profile) -> None:
    assert profile.subtract(found, found) == profile.Differences([], [], [])
    assert found.stacks
    assert found.operation_seconds


def test_the_largest_difference_comes_first_and_lines_do_not_matter() -> None:
    def row(name: str, line: int, own: float) -> dict[str, Any]:
        return {"stack": [f"main a.py:{line}", f"{name} a.py:{line}"], "phase": None, "calls": 1, "self": own}

    before = changed(stacks=[row("f", 1, 0.1), row("g", 2, 0.2)])
    after = changed(stacks=[row("f", 5, 0.4), row("g", 9, 0.3), row("h", 1, 0.2)])
    rows = [(one.name[-1], one.calls) for one in profile.subtract(before, after).stacks]
    assert rows == [("f a.py", 0), ("h a.py", 1), ("g a.py", 0)]


def test_an_operation_that_is_new_is_compared_and_shown() -> None:
    raw = json.loads(GOLDEN.read_text())
    before = document.read_document(json.dumps(raw))
    raw["profile"]["operations"].append({"name": "aten::nonzero", "count": 3.0, "seconds": 0.002})
    after = document.read_document(json.dumps(raw))
    lines = [compare.table(before, after).splitlines(), show.table(after).splitlines()]
    compared, shown = (next(line.split() for line in found if "aten::nonzero" in line) for found in lines)
    assert compared == ["aten::nonzero", "+3", "+2", "ms"]
    assert shown == ["aten::nonzero", "3", "2", "ms"]
    assert "tensor operation" not in compare.table(before, before)


def test_a_document_without_stacks_stays_readable() -> None:
    old = document.read_document((GOLDEN.parent / "paceline.document-1.json").read_text()).profile
    assert old is not None
    assert (old.stacks, dict(old.operation_seconds)) == ((), {})
