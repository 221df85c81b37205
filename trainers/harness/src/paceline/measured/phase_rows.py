"""The phases of a timed window as rows of plain data."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .. import statistics
from ..phase_names import UNATTRIBUTED
from .cuda_device import PhaseEvents
from .mark_recorder import MAIN
from .phase_nodes import PhaseNode, ThreadState

# Of both sides of a pair in turns: so many values of each of the largest phases.
MOST_TIMES, MOST_PHASES = 500, 64
UNKNOWN = {"p50": None, "p90": None, "p99": None}


class TimedPhaseNode(PhaseNode):
    """A node with a series: its time in each sampled step of the window."""

    __slots__ = ("base_count", "base_total", "sampled_total", "series")

    def __init__(self, name: str, parent: PhaseNode | None, state: ThreadState) -> None:
        super().__init__(name, parent, state)
        self.base_count = 0
        self.base_total = 0.0
        self.sampled_total = 0.0
        self.series = array("d")


@dataclass(frozen=True, slots=True)
class TimedWindow:
    """The times of a complete window.

    `sampled` are the times of those steps that nodes have a value of in their series, `totals` each node's
    seconds and entries within the window, by the node's id.
    """

    steps: int
    seconds: float
    sampled: Sequence[float]
    totals: Mapping[int, tuple[float, int]]
    device: PhaseEvents


def phase_rows(nodes: Sequence[TimedPhaseNode], window: TimedWindow) -> list[dict[str, Any]]:
    """Return one row per path and thread name; threads of one name, as in a pool, are summed."""
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for node in nodes:
        # One that was open all along was left in no step, and took its time all the same.
        if any(window.totals.get(id(node), (0.0, 0))):
            key = node.path, node.state.name
            rows[key] = _merge_thread_rows(rows.get(key), _phase_row(node, window))
    outermost = [
        node
        for node in nodes
        if (node.state.name, node.parent) == (MAIN, node.state.root) and any(window.totals.get(id(node), ()))
    ]
    return [*rows.values(), _unattributed_row(outermost, window)]


def _merge_thread_rows(before: dict[str, Any] | None, row: dict[str, Any]) -> dict[str, Any]:
    if before is None:
        return row
    """Return both as one; what a thread's own steps took, or its device, says nothing of the other's."""
    unknown = {**UNKNOWN, "device_total": None}
    return {**row, **unknown, **{name: before[name] + row[name] for name in ("count", "total", "self")}}


def _phase_row(node: TimedPhaseNode, window: TimedWindow) -> dict[str, Any]:
    total, count = window.totals[id(node)]
    nested = math.fsum(window.totals.get(id(child), (0.0, 0))[0] for child in node.children.values())
    quantiles = statistics.quantile_summary(node.series) if node.series else UNKNOWN
    return {
        "path": node.path,
        "thread": node.state.name,
        "count": count / window.steps,
        "total": total / window.steps,
        "self": max(0.0, total - nested) / window.steps,
        "device_total": window.device.seconds_per_step(node.path) if node.series else None,
        **quantiles,
    }


def _unattributed_row(outermost: Sequence[TimedPhaseNode], window: TimedWindow) -> dict[str, Any]:
    covered = math.fsum(window.totals.get(id(node), (0.0, 0))[0] for node in outermost)
    uncovered = max(0.0, window.seconds - covered) / window.steps
    return {
        "path": UNATTRIBUTED,
        "thread": "main",
        "count": 1.0,
        "total": uncovered,
        "self": uncovered,
        "device_total": None,
        **_uncovered_quantiles(outermost, window),
    }


def _uncovered_quantiles(outermost: Sequence[TimedPhaseNode], window: TimedWindow) -> Mapping[str, Any]:
    if not all(node.series for node in outermost):
        return UNKNOWN
    rest = [
        max(0.0, took - math.fsum(node.series[index] for node in outermost))
        for index, took in enumerate(window.sampled)
    ]
    return statistics.quantile_summary(rest)


def own_step_times(
    nodes: Sequence[TimedPhaseNode], main_root: PhaseNode, window: TimedWindow
) -> dict[str, Any]:
    """Return each phase's own seconds in single steps of the main thread, without the phases nested in it.

    `every` and `phases`: by path the means of so many consecutive sampled steps, at most MOST_TIMES of them,
    of the MOST_PHASES largest. What lies in no phase has a path of its own.
    """
    timed = [node for node in nodes if node.series and any(window.totals.get(id(node), (0.0, 0)))]
    own = {node.path: _less_nested(node.series, node, timed, window) for node in timed}
    own[UNATTRIBUTED] = _less_nested(window.sampled, main_root, timed, window)
    largest = sorted(own, key=lambda path: -math.fsum(own[path]))[:MOST_PHASES]
    thinned = {path: statistics.thin_values(own[path], MOST_TIMES) for path in largest}
    return {
        "every": thinned[largest[0]]["every"],
        "phases": {path: [float(f"{took:.5g}") for took in row["values"]] for path, row in thinned.items()},
    }


def _less_nested(
    times: Sequence[float], outer: PhaseNode, nodes: Sequence[TimedPhaseNode], window: TimedWindow
) -> list[float]:
    nested = [node.series for node in nodes if node.parent is outer]
    return [
        max(0.0, times[index] - math.fsum(series[index] for series in nested))
        for index in range(len(window.sampled))
    ]
