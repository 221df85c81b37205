"""What `paceline check` prints of a check as a site tells it."""

from __future__ import annotations

from typing import Any

from paceline.site.check import format_check


def make_row(metric: str, change: str, verdict: str, **values: Any) -> dict[str, Any]:
    return {"case": "tiny", "metric": metric, "change": change, "verdict": verdict, "values": values}


def make_check(*rows: dict[str, Any]) -> dict[str, Any]:
    return {
        "project": "demo",
        "head": "a" * 40,
        "base": "",
        "onto": "main",
        "sentence": "Not slower.",
        "rows": list(rows),
        "causes": [],
        "left_out": [],
        "commands": [],
        "url": "https://site/checks/1/",
    }


def test_counters_that_are_alike_take_one_line() -> None:
    text = format_check(
        make_check(
            make_row("step_time", "0 % [-1, 1]", "~", pairs=12, ratio=1),
            make_row("function_calls", "+2.0 %", "~", pairs=0, ratio=1.02),
            make_row("scalar_reads", "0", "~", pairs=0, difference=0),
            make_row("graph_breaks", "0 %", "~", pairs=0, ratio=1),
        )
    )
    shown = text.splitlines()[3:-1]
    assert [line.split()[:2] for line in shown[1:3]] == [["tiny", "step_time"], ["tiny", "function_calls"]]
    assert shown[3:] == ["As often on both sides: graph_breaks, scalar_reads", ""]


def test_a_counter_that_moved_in_one_case_is_told_of_all() -> None:
    rows = [
        make_row("function_calls", change, "~", pairs=0, ratio=ratio)
        for change, ratio in (("0 %", 1), ("+9 %", 1.09))
    ]
    assert "As often" not in format_check(make_check(*rows))
