"""The document's table of time shares beside what a measured run has reported (time_shares.py), as Markdown.

    python -m paceline run zelda_overworld --set variant=baseline --document baseline.json
    python trainers/zelda_overworld/table.py baseline.json               # print it
    python trainers/zelda_overworld/table.py baseline.json README.md     # write it between the README's marks

In the profiler every call costs more, and most where functions are small: so what phases measure without one
stands beside it, where there is a phase for it.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DECISIONS = 10_000

MARKS = ("<!-- time shares: written by table.py -->", "<!-- end of time shares -->")


@dataclass(frozen=True)
class Row:
    """A category: its name among the gauges, the document's seconds and per cent, and our phases for it."""

    title: str
    name: str
    seconds: float | None = None
    percent: float | None = None
    phases: tuple[str, ...] = ()


ROWS = (
    Row("NES emulator", "emulator", 10.3, 21, ("emulator",)),
    Row("Neural network (conv2d, linear, relu)", "network", 7.6, 16, ("policy/forward", "ppo/forward")),
    Row("Observation construction", "observation", 5.8, 12, ("observation",)),
    Row("Backpropagation", "backpropagation", 1.0, 2, ("ppo/backward",)),
    Row("Action sampling (Categorical, multinomial)", "sampling", 2.1, 4, ("policy/distribution",)),
    Row("action_to_array", "action_to_array", 1.0, 2),
    Row("Equipment check", "equipment", 1.2, 2.5, ("equipment",)),
    Row("Room.is_loaded", "is_loaded", 1.0, 2),
    Row("full_location", "full_location", 0.7, 1.5),
    Row("cached_property overhead", "cached_property", 1.5, 3),
    Row("Other", "other", 17, 35),
    Row("All", "all", 48.6, 100),
    Row("Not optimizable, as the document says", "external", 19.9, 41),
    Row("*Of these:* frame stacking", "stack", 2.7, None, ("observation/stack",)),
    Row("*Of these:* image", "image", 1.28, None, ("observation/image",)),
    Row("*Of these:* information", "information", 0.35, None, ("observation/information",)),
    Row("*Of these:* MapLocation.\\_\\_init\\_\\_", "location_init", 0.24),
    Row("*Of these:* advantages", "advantages", 0.36, None, ("ppo/advantages",)),
)

HEADER = ("category", "document", "share", "here, in the profiler", "share", "here, by the clock")


def gauge(document: dict[str, Any], name: str) -> float | None:
    """A gauge's value; None where the run has none of that name."""
    wanted = f"gauge.{name}"
    return next((float(row["value"]) for row in document["metrics"] if row["name"] == wanted), None)


def seconds_by_clock(document: dict[str, Any], row: Row) -> float | None:
    """Seconds of the row's phases in 10,000 decisions; of all of them, the steps' own time."""
    if row.name == "all":
        times = [metric for metric in document["metrics"] if metric["name"] == "step_time"]
        return DECISIONS * float(times[0]["value"])
    found = [phase["total"] for phase in document["phases"] if phase["path"] in row.phases]
    return DECISIONS * sum(found) if found else None


def table(document: dict[str, Any]) -> str:
    """All rows, and how many functions were called; ValueError where the run has not reported its shares."""
    if gauge(document, "profiled_seconds.all") is None:
        raise ValueError("it has no gauges profiled_seconds: the run ended before its profiled rollout")
    lines = ["| " + " | ".join(HEADER) + " |", "|" + "---|" * len(HEADER)]
    for row in ROWS:
        cells = (
            (row.seconds, "{:.2f} s"),
            (row.percent, "{:.1f} %"),
            (gauge(document, f"profiled_seconds.{row.name}"), "{:.2f} s"),
            (gauge(document, f"profiled_percent.{row.name}"), "{:.1f} %"),
            (seconds_by_clock(document, row), "{:.2f} s"),
        )
        said = ("" if value is None else form.format(value) for value, form in cells)
        lines.append(f"| {row.title} | " + " | ".join(said) + " |")
    return "\n".join([*lines, "", sentence(document)])


def sentence(document: dict[str, Any]) -> str:
    """The run, and its number of calls beside the document's."""
    calls = gauge(document, "profiled_calls.all") or 0.0
    case, environment = document["benchmark"]["case"], document["environment"]
    disturbed = any(warning["code"] == "processor_contention" for warning in document["warnings"])
    doubt = " The run waited for a processor: take the times as hints." if disturbed else ""
    return (
        f"For 10,000 steps of `{case}` on {environment['cpu_model']}, torch {environment['torch']}. In the "
        f"profiler {calls / 1e6:.1f} million calls (document: 17.9 million before, 16.1 million after)."
        f"{doubt}"
    )


def insert(path: Path, text: str) -> None:
    """Replace what stands between the marks of a file; ValueError where it lacks them."""
    before, first, rest = path.read_text().partition(MARKS[0])
    _, last, after = rest.partition(MARKS[1])
    if not first or not last:
        raise ValueError(f"{path} lacks the lines {MARKS[0]!r} and {MARKS[1]!r}")
    path.write_text(f"{before}{first}\n\n{text}\n\n{last}{after}")


def main() -> None:
    """Print the table of the document that the argument names, or write it into the second one."""
    if len(sys.argv) not in (2, 3):
        sys.exit("table.py: give it one document, as `python -m paceline run ... --document PATH` writes it")
    try:
        text = table(json.loads(Path(sys.argv[1]).read_text()))
        if len(sys.argv) == 3:
            insert(Path(sys.argv[2]), text)
        else:
            print(text)
    except (OSError, ValueError, KeyError, TypeError) as error:
        sys.exit(f"table.py: no table can be made of {sys.argv[1]}: {error}")


if __name__ == "__main__":
    main()
