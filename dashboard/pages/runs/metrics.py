"""A run's metrics and counters, each beside what the same case's run before it counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dashboard.querysets.run_points import PreviousRun, RunPoint
from dashboard.sentences.formatting.metric_labels import metric_label, metric_sort_key

# The phase of a metric of the whole step. The metrics table has those alone: other tables have the phases.
WHOLE_STEP = None
# Metrics whose names begin so have a table of their own on the page.
OTHER_TABLES = ("scaling_exponent", "projected_time")

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class CounterRow:
    """A counter of the whole step or of one phase, per step; `before` is None where nothing was counted."""

    label: str
    unit: str
    value: float
    exact: bool
    series: int | None
    before: float | None

    @property
    def display_unit(self) -> str:
        """`bytes` or none: the column's head says that it is per step, the label what is counted."""
        return "bytes" if self.unit.startswith("bytes") else "1"

    @property
    def has_changed(self) -> bool:
        return self.before is not None and self.before != self.value

    @property
    def ratio(self) -> float | None:
        return self.value / self.before if self.before else None


def metrics_context(document: Json, points: Sequence[RunPoint], previous: PreviousRun | None) -> Json:
    """The metrics of the whole step, headlines first, each with its series; counters apart, with theirs."""
    links = {(point.metric, point.phase): point.series for point in points}
    tainted = {(point.metric, point.phase) for point in points if point.tainted}
    rows: list[Json] = [
        {
            **metric,
            "label": metric_label(metric["name"], metric["phase"] or ""),
            "series": links.get((metric["name"], metric["phase"] or "")),
            "tainted": (metric["name"], metric["phase"] or "") in tainted,
        }
        for metric in document.get("metrics") or []
    ]
    whole = [row for row in rows if row["phase"] is WHOLE_STEP and row["kind"] != "counter"]
    whole.sort(key=lambda row: (not row.get("headline"), metric_sort_key(row["name"])))
    return {
        "metrics": [row for row in whole if not row["name"].startswith(OTHER_TABLES)],
        "headlines": [row for row in whole if row.get("headline")],
        **_counters_context(rows, previous),
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


def _counters_context(rows: list[Json], previous: PreviousRun | None) -> Json:
    counters = [row for row in rows if row["kind"] == "counter"]
    values = previous.values if previous else {}
    counts = [(row, _counter_row(row, values)) for row in counters]
    by_phase = [(row, count) for row, count in counts if row["phase"] is not WHOLE_STEP]
    return {
        "counters": [count for row, count in counts if row["phase"] is WHOLE_STEP],
        "phase_counters": _phase_counter_table(by_phase),
        "previous": previous,
    }


def _counter_row(row: Json, values: dict[int, float]) -> CounterRow:
    before = values.get(row["series"]) if row["series"] is not None else None
    return CounterRow(row["label"], row["unit"], row["value"], row["exact"], row["series"], before)


def _phase_counter_table(counts: list[tuple[Json, CounterRow]]) -> Json:
    """Counters of phases as a table: a column per counter that is not zero everywhere."""
    names = sorted({row["name"] for row, count in counts if count.value or count.before})
    by_phase_and_name = {(row["phase"], row["name"]): count for row, count in counts}
    paths = sorted({row["phase"] for row, _ in counts})
    columns = [metric_label(name) for name in names]
    return {
        "columns": columns,
        "rows": [
            (path, list(zip(columns, (by_phase_and_name.get((path, name)) for name in names), strict=True)))
            for path in paths
        ],
    }
