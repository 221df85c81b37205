"""The report of `manage.py demo` for people: what was planted beside what was found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dashboard.sentences.measurements.processes import describe_slow_process

Entry = Mapping[str, Any]
COLUMNS = ("commit", "planted", "what it does", "found")


def format_table(result: Entry) -> list[str]:
    """Each planted change beside what was found at its commit, then all else that was found."""
    planted = {entry["commit"] for entry in result["planted"]}
    rows = [
        (
            entry["commit"][:10],
            entry.get("event", entry["kind"]),
            describe_planted(entry),
            describe_found_at(entry["commit"], result),
        )
        for entry in result["planted"]
    ]
    lines = align_columns([COLUMNS, *rows])
    others = [regression for regression in result["regressions"] if culprit_of(regression) not in planted]
    lines += [f"nothing planted: {culprit_of(entry)[:10]} {describe_found(entry)}" for entry in others]
    for kind in ("refuted", "withdrawn"):
        lines += [f"{kind}: {entry['first_bad'][:10]} {describe_found(entry)}" for entry in result[kind]]
    better = [entry for entry in result["improvements"] if entry["commit"] not in planted]
    return lines + [f"improvement: {entry['commit'][:10]} {describe_found(entry)}" for entry in better]


def align_columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table; the first row names the columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]


def culprit_of(regression: Entry) -> str:
    """The one commit that a regression names: that of a merged branch, where a merge brought it."""
    return str(regression["culprit"] or regression["first_bad"])


def describe_planted(entry: Entry) -> str:
    """What a planted commit changes: how much of what, in which phase, by which function."""
    facts = [f"{entry['metric']} {entry['percent']:+.0f}%"] if "percent" in entry else []
    facts = facts or [entry["metric"]] if "benchmark" in entry else facts
    facts += [str(entry[name]) for name in ("phase", "function") if entry.get(name)]
    facts += [f"{name} {entry[name]}" for name in ("rank", "worker") if name in entry]
    return ", ".join(facts)


def describe_found_at(commit: str, result: Entry) -> str:
    """The regressions that name a commit, and the improvement at it."""
    found = [regression for regression in result["regressions"] if culprit_of(regression) == commit]
    found += [improvement for improvement in result["improvements"] if improvement["commit"] == commit]
    return "; ".join(map(describe_found, found)) or "nothing"


def describe_found(entry: Entry) -> str:
    """What was found at a commit: how large, which phase, which function, how sure, why."""
    percent = entry["change_percent"]
    # Of what has no ratio, as a number of graph breaks from 0 and a loss of accuracy.
    facts = [f"{entry['metric']} {entry['levels'] if percent is None else f'{percent:+.0f}%'}"]
    if entry.get("phase"):
        facts.append(entry["phase"])
    facts += [describe_slow_process(found) for found in entry.get("slow_processes", [])[:1]]
    if entry.get("suspects"):
        facts.append(entry["suspects"][0]["function"])
    if entry.get("recovered_by"):
        facts.append(f"repaired by {entry['recovered_by'][:10]}")
    if entry.get("cause") not in (None, "", "code"):
        facts.append(entry["cause"])
    words = ", ".join(facts)
    return f"{words} ({entry['state']})" if "state" in entry else words
