"""The document's tables of one measured run: shares of the time, memory of each part, beside the document's.

    python -m paceline run cs2_vision --set variant=baseline --document baseline.json
    python trainers/cs2_vision/table.py baseline.json

Where groups of games take turns, `api` is only what the agent waits for.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

SHARES = (
    ("API: serialize and call", ("serialize", "api"), "about 75%"),
    ("  of it screens without play", ("api/ui",), "-"),
    ("Parsing", ("parse",), "about 5%"),
    ("Cache", ("cache",), "-"),
    ("Observation history", ("history",), "-"),
    ("Game", ("env",), "-"),
    ("Policy", ("policy",), "-"),
    ("Training", ("train",), "-"),
    ("Checkpoints", ("checkpoint",), "-"),
    ("Reports", ("report",), "-"),
)
"""Rows: their name, their phases, the document's share."""

MEMORY = (
    ("Vision service", "gauge.service_memory", "60-70%"),
    ("Agent, its history included", "gauge.trainer_memory", "-"),
    ("  of it observation history", "gauge.history_bytes", "-"),
    ("Checkpoints, on the disk", "gauge.checkpoint_bytes", "-"),
)
"""Rows: their name, their metric, the document's share."""

COUNTS = ("api_calls", "bytes_sent", "parsed", "cache_lookups", "cache_hits", "ui_skipped", "checkpoints")


def metric(document: dict[str, Any], name: str) -> float | None:
    """A metric of the whole step; None where it was not measured."""
    found = [m["value"] for m in document["metrics"] if m["name"] == name and m["phase"] is None]
    return float(found[0]) if found and found[0] is not None else None


def shares(document: dict[str, Any]) -> list[str]:
    """Where a step's time goes."""
    times = {phase["path"]: phase["total"] for phase in document["phases"]}
    step = metric(document, "step_time") or 1.0
    lines = [f"{'time':30}{'ms a step':>12}{'share':>8}{'document':>12}"]
    for name, phases, said in SHARES:
        here = sum(times.get(phase, 0.0) for phase in phases)
        lines.append(f"{name:30}{here * 1e3:12.2f}{here / step:8.1%}{said:>12}")
    return [*lines, f"{'All':30}{step * 1e3:12.2f}{1:8.1%}{'-':>12}"]


def memory(document: dict[str, Any]) -> list[str]:
    """What each part needs; shares are of the service's and the agent's memory together."""
    values = {name: metric(document, name) or 0.0 for _, name, _ in MEMORY}
    whole = values["gauge.service_memory"] + values["gauge.trainer_memory"]
    lines = [f"{'memory':30}{'MB':>12}{'share':>8}{'document':>12}"]
    for name, key, said in MEMORY:
        share = f"{values[key] / whole:.1%}" if whole and "disk" not in name else "-"
        lines.append(f"{name:30}{values[key] / 1e6:12.2f}{share:>8}{said:>12}")
    return lines


def counts(document: dict[str, Any]) -> list[str]:
    """What was counted, per step."""
    lines = [f"{'count':30}{'a step':>12}"]
    for name in COUNTS:
        value = metric(document, f"count.{name}")
        lines.append(f"{name:30}{'-' if value is None else f'{value:,.2f}':>12}")
    return lines


def main() -> None:
    """Print the tables of the document that the argument names."""
    if len(sys.argv) != 2:
        sys.exit("table.py: give it one document, as `python -m paceline run ... --document PATH` writes it")
    try:
        document = json.loads(Path(sys.argv[1]).read_text())
        print("\n".join([*shares(document), "", *memory(document), "", *counts(document)]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        sys.exit(f"table.py: {sys.argv[1]} is no document of a measurement: {error!r}")


if __name__ == "__main__":
    main()
