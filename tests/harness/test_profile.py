from __future__ import annotations

import gc
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from paceline import document, profile
from paceline.counting import profile_rows
from paceline.document_rows import Profile
from paceline.reports import comparison, report

from tests.harness.counting.test_counting import call_itself, profile_of, profile_rows_of

GOLDEN = Path(__file__).parent.parent / "golden" / "paceline.document-1-complete.json"


def measure_length() -> int:
    return len("abc")


def measure_twice() -> None:
    measure_length()
    measure_length()


def call_both(depth: int) -> None:
    if depth:
        call_left(depth - 1)
        call_right(depth - 1)


def call_left(depth: int) -> None:
    call_both(depth)


def call_right(depth: int) -> None:
    call_both(depth)


def stacks_of(work: Callable[[], object], room: int = 1000) -> dict[str, Any]:
    return profile_rows.stack_rows([profile_of(work, room)], Path(__file__).parent, 1)


def test_a_stack_names_its_frames_from_the_outermost() -> None:
    rows = {tuple(row["stack"][-3:]): row["calls"] for row in stacks_of(measure_twice)["rows"]}
    here, line = Path(__file__).name, measure_twice.__code__.co_firstlineno
    innermost = (
        f"measure_twice {here}:{line}",
        f"measure_length {here}:{measure_length.__code__.co_firstlineno}",
        "len (built-in)",
    )
    assert rows[innermost] == 2


def test_stacks_and_functions_sum_to_the_same() -> None:
    found = profile_of(lambda: call_both(5))
    rows = profile_rows.function_rows([found], Path("/"), 1)
    seen = profile_rows.stack_rows([found], Path("/"), 1)
    for name in ("self", "calls"):
        whole = sum(row[name] for row in seen["rows"]) + seen["rest"][name]
        function = sum(sum(row["calls"].values()) if name == "calls" else row["self"] for row in rows)
        assert whole == pytest.approx(function)


@pytest.fixture
def no_collections() -> Iterator[None]:
    """Libraries of tests have callbacks in the garbage collector: calls at any time."""
    gc.disable()
    yield
    gc.enable()


def test_calls_without_room_for_their_stack_are_counted_all_the_same(no_collections: None) -> None:
    roomy, tight = (profile_rows_of(lambda: call_both(6), room) for room in (10_000, 60))
    assert {name: row["calls"] for name, row in tight.items()} == {
        name: row["calls"] for name, row in roomy.items()
    }
    assert tight["call_both"]["cumulative"] >= tight["call_both"]["self"]
    assert stacks_of(lambda: call_both(6), 60)["rest"]["calls"] > 100


def test_what_a_full_tree_calls_is_in_its_callers_cumulative_time() -> None:
    found = profile_rows_of(lambda: call_itself(200), 100)
    assert found["call_itself"]["calls"] == 201
    assert found["<lambda>"]["cumulative"] >= found["call_itself"]["self"]


def test_stacks_deeper_than_the_limit_are_in_the_rest() -> None:
    found = stacks_of(lambda: call_itself(200))
    assert max(len(row["stack"]) for row in found["rows"]) == profile_rows.DEPTH_LIMIT
    assert found["rest"]["calls"] > 100


@pytest.fixture
def complete() -> Profile:
    """The profile of a document that holds every optional member."""
    kept = document.read_document(GOLDEN.read_text()).profile
    assert kept is not None
    return kept


def change_profile(**members: list[dict[str, Any]]) -> Profile:
    raw = json.loads(GOLDEN.read_text())
    raw["profile"].update(members)
    kept = document.read_document(json.dumps(raw)).profile
    assert kept is not None
    return kept


def test_a_profile_less_itself_is_nothing(complete: Profile) -> None:
    assert profile.subtract_profiles(complete, complete) == profile.Differences([], [], [])
    assert complete.stacks
    assert complete.operation_seconds


def test_the_largest_difference_comes_first_and_lines_do_not_matter() -> None:
    def row(name: str, line: int, own: float) -> dict[str, Any]:
        return {"stack": [f"main a.py:{line}", f"{name} a.py:{line}"], "phase": None, "calls": 1, "self": own}

    before = change_profile(stacks=[row("f", 1, 0.1), row("g", 2, 0.2)])
    after = change_profile(stacks=[row("f", 5, 0.4), row("g", 9, 0.3), row("h", 1, 0.2)])
    differences = profile.subtract_profiles(before, after).stacks
    rows = [(difference.name[-1], difference.calls) for difference in differences]
    assert rows == [("f a.py", 0), ("h a.py", 1), ("g a.py", 0)]


@pytest.mark.parametrize(
    ("rest", "calls", "own", "told"),
    [(5, 2, 1e-6, []), (5, 2, 1.0, ["f"]), (5, 9, 1e-6, ["f"]), (0, 2, 1e-6, ["f"])],
)
def test_a_function_that_may_be_in_the_rest_is_not_called_new(
    complete: Profile, rest: int, calls: float, own: float, told: list[str]
) -> None:
    function = replace(complete.functions[0], function="f", calls=calls, self_time=own)
    before = replace(complete, rest={**complete.rest, "functions": rest, "calls": float(rest)})
    after = replace(before, functions=(*before.functions, function))
    for pair in ((before, after), (after, before)):
        assert [row.name[0] for row in profile.subtract_profiles(*pair).functions] == told


def test_an_operation_that_is_new_is_compared_and_shown() -> None:
    raw = json.loads(GOLDEN.read_text())
    before = document.read_document(json.dumps(raw))
    raw["profile"]["operations"].append({"name": "aten::nonzero", "count": 3.0, "seconds": 0.002})
    after = document.read_document(json.dumps(raw))
    texts = [comparison.compare_documents(before, after), report.format_document(after)]
    compared, shown = (
        next(line.split() for line in text.splitlines() if "aten::nonzero" in line) for text in texts
    )
    assert compared == ["aten::nonzero", "+3", "+2", "ms"]
    assert shown == ["aten::nonzero", "3", "2", "ms"]
    assert "tensor operation" not in comparison.compare_documents(before, before)


def test_a_document_without_stacks_stays_readable() -> None:
    old = document.read_document((GOLDEN.parent / "paceline.document-1.json").read_text()).profile
    assert old is not None
    assert (old.stacks, dict(old.operation_seconds)) == ((), {})
