"""The document's table of one measured run: category, seconds per 10,000 steps, share, and the document's.

    python -m paceline run zelda_overworld --set variant=baseline --document baseline.json
    python trainers/zelda_overworld/table.py baseline.json

Phases are timed. Functions, marked by *, come from the profile, which is slower, so that only their share
counts: their seconds are that share of the step's time. Rows of functions are parts of rows of phases.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

STEPS = 10_000


@dataclass(frozen=True)
class Category:
    """A row: phases that are summed, or functions that are, and the document's seconds and percent."""

    name: str
    phases: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    seconds: float | None = None
    percent: float | None = None


CATEGORIES = (
    Category("Emulator", ("emulator",), seconds=10.3, percent=21),
    Category("Neural network, forward", ("policy/forward", "ppo/forward"), seconds=7.6, percent=16),
    Category("Observation construction", ("stack", "image", "information"), seconds=5.8, percent=12),
    Category("  of it frame stacking", ("stack",), seconds=2.7),
    Category("  of it image", ("image",), seconds=1.28),
    Category("  of it information", ("information",), seconds=0.35),
    Category("Backpropagation", ("ppo/backward",), seconds=1.0, percent=2),
    Category("Action sampling", ("policy/distribution",), seconds=2.1, percent=4),
    Category("action_to_array *", functions=("action_to_array",), seconds=1.0, percent=2),
    Category("Equipment check", ("equipment",), seconds=1.2, percent=2.5),
    Category("Room.is_loaded *", functions=("is_loaded",), seconds=1.0, percent=2),
    Category("full_location *", functions=("full_location",), seconds=0.7, percent=1.5),
    Category("MapLocation.__init__ *", functions=("Location.__init__",), seconds=0.24),
    Category("cached_property *", functions=("cached_property.__get__",), seconds=1.5, percent=3),
    Category("Critics", ("critics",)),
    Category("State and room", ("state", "room")),
    Category("Advantages", ("ppo/advantages",), seconds=0.36),
    Category("Optimizer", ("ppo/optimizer",)),
)


def seconds(document: dict[str, Any], category: Category) -> float | None:
    """Seconds in 10,000 steps; None where nothing of it is in the document."""
    phases = [phase["total"] for phase in document["phases"] if phase["path"] in category.phases]
    if category.phases:
        return STEPS * sum(phases) if phases else None
    functions = (document["profile"] or {}).get("functions", [])
    found = [row for row in functions if row["function"].endswith(category.functions)]
    # What runs inside such a function counts as its own, as in the document's cumulative times.
    profiled = sum(row["self"] for row in functions) + (document["profile"] or {})["rest"]["self"]
    return STEPS * step_time(document) * sum(row["cumulative"] for row in found) / profiled if found else None


def step_time(document: dict[str, Any]) -> float:
    """Seconds per step."""
    return next(float(metric["value"]) for metric in document["metrics"] if metric["name"] == "step_time")


def calls(document: dict[str, Any]) -> float | None:
    """Function calls per step; None where nothing was counted."""
    counted = [m for m in document["metrics"] if m["name"] == "function_calls" and m["phase"] is None]
    return float(counted[0]["value"]) if counted else None


def lines(document: dict[str, Any]) -> list[str]:
    """The table."""
    whole = STEPS * step_time(document)
    found = [f"{'category':26}{'seconds':>9}{'share':>8}{'document':>11}{'share':>8}"]
    for category in CATEGORIES:
        measured = seconds(document, category)
        here = f"{'-':>9}{'-':>8}" if measured is None else f"{measured:9.2f}{measured / whole:8.1%}"
        there = "-" if category.seconds is None else f"{category.seconds:.2f}"
        share = "-" if category.percent is None else f"{category.percent:.1f}%"
        found.append(f"{category.name:26}{here}{there:>11}{share:>8}")
    number = calls(document)
    said = "-" if number is None else f"{number * STEPS / 1e6:.1f} million"
    found += ["", f"All: {whole:.1f} s (document: 70.8 s, of it 48.6 s of CPU)"]
    return [*found, f"Function calls: {said} (document: 17.9 million before, 16.1 million after)"]


def main() -> None:
    """Print the table of the document that the argument names."""
    if len(sys.argv) != 2:
        sys.exit("table.py: give it one document, as `python -m paceline run ... --document PATH` writes it")
    try:
        document = json.loads(Path(sys.argv[1]).read_text())
        print("\n".join(lines(document)))
    except (OSError, ValueError, KeyError, TypeError) as error:
        sys.exit(f"table.py: {sys.argv[1]} is no document of a measurement: {error!r}")


if __name__ == "__main__":
    main()
