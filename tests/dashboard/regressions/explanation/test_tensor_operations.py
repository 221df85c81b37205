"""Which tensor operations grew between two profiles."""

from __future__ import annotations

from typing import Any

import pytest

from dashboard.regressions.explanation.tensor_operations import MOST_OPERATIONS, rank_operations

PHASE = "replay/sample"


def make_operation(name: str, *phases: tuple[str, float, float], by_phase: bool = True) -> dict[str, Any]:
    """Phases are (path, number, seconds)."""
    rows = [{"phase": path, "count": number, "seconds": seconds} for path, number, seconds in phases]
    whole = {"count": sum(row["count"] for row in rows), "seconds": sum(row["seconds"] for row in rows)}
    return {"name": name, **whole, **({"phases": rows} if by_phase else {})}


def make_profile(*operations: dict[str, Any]) -> dict[str, Any]:
    return {"steps": 200, "functions": [], "operations": list(operations)}


BEFORE = make_profile(
    make_operation("aten::stack", (PHASE, 1, 1e-4)),
    make_operation("aten::mm", ("learn", 10, 1e-3)),
    make_operation("aten::add", ("learn", 8, 2e-4), (PHASE, 2, 1e-5)),
)
AFTER = make_profile(
    make_operation("aten::stack", (PHASE, 256, 2e-3)),
    make_operation("aten::mm", ("learn", 10, 4e-3)),
    make_operation("aten::add", ("learn", 8, 1e-4), (PHASE, 2, 1.2e-5)),
    make_operation("aten::lift_fresh", (PHASE, 256, 9e-4)),
)


def ranked_operations(
    kind: str = "time", phase: str = PHASE, delta: float | None = None, after: Any = AFTER
) -> list[tuple[str, str]]:
    found = rank_operations(BEFORE, after, kind=kind, phase=phase, delta=delta)
    return [(row["operation"], row["phase"]) for row in found]


def test_those_of_the_phase_stand_first_and_then_what_grew_most() -> None:
    assert ranked_operations() == [("aten::stack", PHASE), ("aten::lift_fresh", PHASE)]
    more = make_profile(*AFTER["operations"], make_operation("aten::cat", ("learn", 3, 5e-3)))
    assert ranked_operations(after=more)[2] == ("aten::cat", "learn")


def test_what_is_dearer_but_as_frequent_in_another_phase_is_noise() -> None:
    assert ("aten::mm", "learn") not in ranked_operations()
    assert ranked_operations(phase="learn")[0] == ("aten::mm", "learn")
    # Where no phase explains the loss, it may be any of them.
    assert ranked_operations(phase="")[-1] == ("aten::mm", "learn")


def test_what_is_done_as_often_has_to_explain_a_part_of_the_loss() -> None:
    assert ranked_operations(phase="learn", delta=0.01)[0] == ("aten::mm", "learn")
    assert ("aten::mm", "learn") not in ranked_operations(phase="learn", delta=0.1)
    # Done 256 times instead of once is worth a line all the same.
    assert ranked_operations(delta=0.1) == [("aten::stack", PHASE), ("aten::lift_fresh", PHASE)]


def test_a_counter_is_explained_by_numbers() -> None:
    assert ranked_operations("counter") == [("aten::lift_fresh", PHASE), ("aten::stack", PHASE)]


def test_each_says_how_often_and_how_long_before_and_after() -> None:
    first = rank_operations(BEFORE, AFTER, kind="time", phase=PHASE, delta=None)[0]
    assert (first["count_before"], first["count_after"]) == (1, 256)
    assert (first["seconds_before"], first["seconds_after"]) == (1e-4, 2e-3)
    assert first["share"] == pytest.approx(1.9e-3 / (1.9e-3 + 3e-3 + 9e-4 + 2e-6))


def test_documents_without_phases_are_compared_as_a_whole() -> None:
    old = make_profile(make_operation("aten::stack", (PHASE, 1, 1e-4), by_phase=False))
    found = rank_operations(old, AFTER, kind="counter", phase=PHASE, delta=None)
    assert [(row["operation"], row["phase"]) for row in found[:2]] == [
        ("aten::lift_fresh", ""),
        ("aten::stack", ""),
    ]


def test_nothing_is_said_of_memory_or_where_a_profile_is_missing() -> None:
    assert rank_operations(BEFORE, AFTER, kind="memory", phase=PHASE, delta=None) == []
    assert rank_operations(None, AFTER, kind="time", phase=PHASE, delta=None) == []
    assert rank_operations(BEFORE, make_profile(), kind="time", phase=PHASE, delta=None) == []


def test_what_shrank_is_no_suspect_and_there_are_few() -> None:
    assert rank_operations(AFTER, BEFORE, kind="counter", phase=PHASE, delta=None) == []
    many = make_profile(
        *(make_operation(f"aten::op{place}", (PHASE, 100, 1e-3)) for place in range(MOST_OPERATIONS + 5))
    )
    assert len(rank_operations(BEFORE, many, kind="time", phase=PHASE, delta=None)) == MOST_OPERATIONS
