"""A run's metrics and counters, each beside what the same case's run before it counted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dashboard.models import Point
from dashboard.pages import words
from dashboard.querysets.series import Before

# In the metrics table: what is said elsewhere on the page, phase by phase, is left out.
WHOLE = None
# What has a table of its own on the page.
ELSEWHERE = ("scaling_exponent", "projected_time")

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Count:
    """A counter of the whole step or of one phase, per step; `before` is None where nothing was counted."""

    label: str
    unit: str
    value: float
    exact: bool
    series: int | None
    before: float | None

    @property
    def size(self) -> str:
        """The unit of what is counted; its column's head says that it is per step, its label of what."""
        return "bytes" if self.unit.startswith("bytes") else "1"

    @property
    def moved(self) -> bool:
        return self.before is not None and self.before != self.value

    @property
    def ratio(self) -> float | None:
        return self.value / self.before if self.before else None


def metric_parts(document: Json, points: list[Point], before: Before | None) -> Json:
    """The metrics of the whole step, headlines first, each with its series; counters apart, with theirs."""
    links = {(point.series.metric.name, point.series.phase): point.series_id for point in points}
    rows: list[Json] = [
        {
            **metric,
            "label": words.metric_name(metric["name"], metric["phase"] or ""),
            "series": links.get((metric["name"], metric["phase"] or "")),
        }
        for metric in document.get("metrics") or []
    ]
    whole = [row for row in rows if row["phase"] is WHOLE and row["kind"] != "counter"]
    whole.sort(key=lambda row: (not row.get("headline"), words.metric_place(row["name"])))
    return {
        "metrics": [row for row in whole if not row["name"].startswith(ELSEWHERE)],
        "headlines": [row for row in whole if row.get("headline")],
        **_counters(rows, before),
        "phase_memory": sorted(
            (row for row in rows if row["name"] == "phase_memory"), key=lambda row: -row["value"]
        ),
        "phase_series": {
            phase: series for (name, phase), series in links.items() if name == "phase_self_time"
        },
        "device_series": {
            phase: series for (name, phase), series in links.items() if name == "phase_device_time"
        },
        "exponent_series": {(name, phase or None): series for (name, phase), series in links.items()},
    }


def _counters(rows: list[Json], before: Before | None) -> Json:
    counters = [row for row in rows if row["kind"] == "counter"]
    values = before.values if before else {}
    counts = [(row, _count(row, values)) for row in counters]
    return {
        "counters": [count for row, count in counts if row["phase"] is WHOLE],
        "phase_counters": _by_phase([(row, count) for row, count in counts if row["phase"] is not WHOLE]),
        "before": before,
    }


def _count(row: Json, values: dict[int, float]) -> Count:
    was = values.get(row["series"]) if row["series"] is not None else None
    return Count(row["label"], row["unit"], row["value"], row["exact"], row["series"], was)


def _by_phase(counts: list[tuple[Json, Count]]) -> Json:
    """Counters of phases as a table: a column per counter that is not zero everywhere."""
    names = sorted({row["name"] for row, count in counts if count.value or count.before})
    found = {(row["phase"], row["name"]): count for row, count in counts}
    paths = sorted({row["phase"] for row, _ in counts})
    columns = [words.metric_name(name) for name in names]
    return {
        "columns": columns,
        "rows": [
            (path, list(zip(columns, (found.get((path, name)) for name in names), strict=True)))
            for path in paths
        ],
    }
