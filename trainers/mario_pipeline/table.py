"""The document's table of two measured runs: metric, original, optimized, improvement, and the document's.

    python -m paceline run mario_pipeline --set variant=baseline --document baseline.json
    python -m paceline run mario_pipeline --set variant=optimized --document optimized.json
    python trainers/mario_pipeline/table.py baseline.json optimized.json

A lock wait is the mean of one acquisition; where queues need no lock it is 0. An epoch is of as many
experiences as the first run's.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

EPOCH = 256
"""Experiences in an epoch, where the arguments don't say another number."""


def value(document: dict[str, Any], name: str) -> float | None:
    """A metric of the whole run; None where it was not measured."""
    found = [metric["value"] for metric in document["metrics"] if metric["name"] == name]
    return None if not found or found[0] is None else float(found[0])


def per_second(count: str) -> Callable[[dict[str, Any]], float | None]:
    """What a count comes to in a second."""

    def rate(document: dict[str, Any]) -> float | None:
        steps, each = value(document, "throughput"), value(document, f"count.{count}")
        return None if steps is None or each is None else steps * each

    return rate


def epoch_time(document: dict[str, Any]) -> float | None:
    """Seconds in which an epoch's experiences are played and learned."""
    rate = per_second("experiences")(document)
    return EPOCH / rate if rate else None


def named(name: str) -> Callable[[dict[str, Any]], float | None]:
    return lambda document: value(document, name)


@dataclass(frozen=True)
class Row:
    """A row: its name and unit, where it comes from, and the document's numbers."""

    name: str
    unit: str
    read: Callable[[dict[str, Any]], float | None]
    document: tuple[str, str, str]


ROWS = (
    Row("Experience rate", "exp/s", per_second("experiences"), ("~1000", "~1800", "+80%")),
    Row("Training throughput", "batch/s", per_second("batches"), ("~4", "~10", "+150%")),
    Row("GPU utilization", "%", named("gpu_utilization"), ("~60", "~85", "+42%")),
    Row("CPU utilization", "% of a core", named("cpu_utilization"), ("-", "-", "-")),
    Row("Lock wait time", "ms", named("gauge.lock_wait_ms"), ("~50", "~5", "-90%")),
    Row("Epoch time", "s", epoch_time, ("~30", "~12", "-60%")),
    Row("Queue drops", "per step", named("count.queue_drops"), ("-", "near 0", "-")),
)


def shown(number: float | None) -> str:
    return "-" if number is None else f"{number:.4g}"


def change(before: float | None, after: float | None) -> str:
    """How much more or less, in per cent."""
    return "-" if not before or after is None else f"{100 * (after / before - 1):+.0f}%"


def lines(original: dict[str, Any], optimized: dict[str, Any]) -> list[str]:
    """The table."""
    heads = ("original", "optimized", "change")
    found = [f"{'metric':32}" + "".join(f"{head:>11}" for head in (*heads, *heads))]
    for row in ROWS:
        before, after = row.read(original), row.read(optimized)
        cells = (shown(before), shown(after), change(before, after), *row.document)
        found.append(f"{row.name + ', ' + row.unit:32}" + "".join(f"{cell:>11}" for cell in cells))
    return [*found, "", "The three columns on the right are the document's."]


def main() -> None:
    """Print the table of the two documents that the arguments name."""
    if len(sys.argv) != 3:
        sys.exit(
            "table.py: give it two documents, as `python -m paceline run ... --document PATH` writes them"
        )
    documents = []
    for path in sys.argv[1:]:
        try:
            documents.append(json.loads(Path(path).read_text()))
            lines(documents[-1], documents[-1])
        except (OSError, ValueError, KeyError, TypeError) as error:
            sys.exit(f"table.py: {path} is no document of a measurement: {error!r}")
    print("\n".join(lines(*documents)))


if __name__ == "__main__":
    main()
