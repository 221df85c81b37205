"""The exact counters that a host hands in of a counted repetition: a site reads whatever code reports."""

from __future__ import annotations

from typing import Any

from dashboard.host_protocol import MessageFields, read_counted
from workers.host.execution.experiment_executor import exact_counters, kept_members


def make_row(name: str, *samples: float, exact: bool = True, **fields: Any) -> dict[str, Any]:
    row = {"name": name, "unit": "count/step", "better": "lower", "kind": "counter", "phase": None}
    return {**row, "exact": exact, "headline": False, "samples": list(samples), **fields}


def make_measured(*rows: dict[str, Any], warnings: tuple[str, ...] = ()) -> dict[str, Any]:
    return {
        "environment": {},
        "processes": [],
        "phases": [],
        "metrics": list(rows),
        "warnings": [{"code": code} for code in warnings],
    }


def names_of(measured: dict[str, Any]) -> list[str]:
    return [row["name"] for row in exact_counters(measured)]


def test_counters_of_the_whole_step_that_may_be_exact() -> None:
    rows = [
        make_row("function_calls", 7, 7),
        make_row("function_calls", 5, 5, phase="learn"),
        make_row("scalar_reads", 5, 5, phase="learn/push", headline=True),
        make_row("step_time", 1, kind="time"),
        make_row("graph_breaks", 1, 2, exact=False),
        make_row("scalar_reads", 3, exact=False),
    ]
    assert names_of(make_measured(*rows)) == ["function_calls", "scalar_reads:learn/push", "scalar_reads"]
    assert names_of(make_measured(*rows, warnings=("counters_inexact",)))[-1] == "scalar_reads:learn/push"


def test_whatever_the_code_reports_a_site_reads_it() -> None:
    odd = [
        make_row("count.back", -1, -1, headline=True),
        make_row(f"count.{'x' * 190}", 1, 1, headline=True),
        *(make_row(f"count.{number}", 1, 1) for number in range(100)),
    ]
    measured = make_measured(*odd, make_row("count.episodes", 2, 2, headline=True))
    read = read_counted(MessageFields(kept_members(measured)))
    assert [row["name"] for row in read["counters"]] == ["count.episodes"]
