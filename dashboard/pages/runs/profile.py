"""A run's profile: where the time of a step goes, function by function and as stacks."""

from __future__ import annotations

from typing import Any

from dashboard.charts import icicle, phases

MOST_FUNCTIONS = 30
MOST_OPERATIONS = 30
MOST_COSTS = 20
# Of the frames above the shown one; the whole is always named.
MOST_ABOVE = 3

Json = dict[str, Any]


def profile_context(document: Json) -> Json:
    profile = document.get("profile") or {}
    functions = sorted(profile.get("functions") or [], key=lambda row: -row["self"])
    operations = sorted(
        profile.get("operations") or [], key=lambda row: (-(row.get("seconds") or 0.0), -row["count"])
    )
    for row in operations:
        seconds = row.setdefault("seconds", None)
        row["each"] = seconds / row["count"] if seconds is not None and row["count"] else None
    return {
        "functions": functions[:MOST_FUNCTIONS],
        "more_functions": max(0, len(functions) - MOST_FUNCTIONS),
        "rest": profile.get("rest"),
        "operations": operations[:MOST_OPERATIONS],
        "more_operations": max(0, len(operations) - MOST_OPERATIONS),
        "operation_times": any(row["seconds"] is not None for row in operations),
        "profile_steps": profile.get("steps"),
    }


def icicle_context(document: Json, number: int, by_calls: bool) -> Json:
    """The icicle of the profile's stacks below frame `number`; empty where the document has no stacks."""
    stacks = (document.get("profile") or {}).get("stacks") or []
    if not stacks:
        return {}
    hues = _phase_hues(document)
    whole = icicle.build_call_tree(
        icicle.Stack(row["stack"], row["self"], row["calls"], _stack_hue(row["phase"], hues))
        for row in stacks
    )
    by_calls = by_calls or not whole.total
    shown = icicle.find_frame(whole, number)
    drawn = icicle.layout_icicle(shown, whole, by_calls)
    ancestors = shown.ancestors()
    drawn_hues = {block.frame.hue for block in drawn.blocks}
    return {
        "icicle": drawn,
        "frame": shown,
        "whole": whole,
        "above": ancestors[:1] + ancestors[1:][-MOST_ABOVE:],
        "above_cut": len(ancestors) > MOST_ABOVE + 1,
        "by_calls": by_calls,
        "rest": document["profile"].get("rest"),
        # Of the whole, the table of functions says it.
        "costs": icicle.sum_function_costs(shown)[:MOST_COSTS] if shown is not whole else [],
        "frame_hues": sorted(
            (hue, path)
            for path, hue in hues.items()
            if hue >= 0 and hue in drawn_hues and path == _outermost_path(path, hues)
        ),
    }


def _phase_hues(document: Json) -> dict[str, int]:
    rows = [row for row in document.get("phases") or [] if (row.get("thread") or "main") == "main"]
    return phases.phase_hues(
        [phases.Phase(row["path"], row["total"], row["self"], row["share"] or 0.0) for row in rows]
    )


def _stack_hue(path: str | None, hues: dict[str, int]) -> int:
    """The hue of the phase, or of the nearest phase around it that has one."""
    inside_out = reversed(_path_and_ancestors(path or ""))
    return next((hues[ancestor] for ancestor in inside_out if ancestor in hues), icicle.GREY)


def _outermost_path(path: str, hues: dict[str, int]) -> str:
    return next(ancestor for ancestor in _path_and_ancestors(path) if ancestor in hues)


def _path_and_ancestors(path: str) -> list[str]:
    """`a`, `a/b` and `a/b/c` of `a/b/c`."""
    parts = path.split("/")
    return ["/".join(parts[:depth]) for depth in range(1, len(parts) + 1)]
