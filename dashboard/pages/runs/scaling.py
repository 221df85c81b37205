"""How a run's times grow with the swept parameter, what the full job would take, and its limits."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import Any

from dashboard.charts import scaling, theme
from dashboard.sentences.formatting.metric_labels import metric_label, metric_unit
from dashboard.sentences.series.limits import format_bounds

# What an exponent is compared with: the loop should grow as the parameter does, a step not at all.
LOOP, STEP_TIME, STEPS = "scaling_exponent", "scaling_exponent_step_time", "scaling_exponent_steps"
EXPECTED = {LOOP: 1.0, STEP_TIME: 0.0, STEPS: 1.0}
# An exponent this near to what is expected is as expected; a wider interval than this says nothing.
TOLERANCE, WIDEST_INTERVAL = 0.1, 0.6
EXPONENT_LABELS = {LOOP: "Whole loop", STEP_TIME: "Time per step", STEPS: "Number of steps"}

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ExponentRow:
    """One time's growth; `doubled` is by how much twice the parameter multiplies it."""

    name: str
    phase: str | None
    value: float
    low: float
    high: float
    points: int
    series: int | None
    seconds: float | None

    @property
    def label(self) -> str:
        return self.phase or EXPONENT_LABELS.get(self.name, metric_label(self.name))

    @property
    def doubled(self) -> float:
        return float(2**self.value)

    @property
    def verdict(self) -> str:
        expected = EXPECTED.get(self.name, 1.0)
        if self.is_steep:
            return "where it should not" if expected == 0 else "faster than in proportion"
        if self.high < expected - TOLERANCE:
            return "not: it shrinks" if expected == 0 else "slower than in proportion"
        if self.high - self.low > WIDEST_INTERVAL:
            return "not clear from these points"
        return "not: the same throughout" if expected == 0 else "in proportion"

    @property
    def is_steep(self) -> bool:
        return self.low > EXPECTED.get(self.name, 1.0) + TOLERANCE


def scaling_context(document: Json, series: dict[tuple[str, str | None], int]) -> Json:
    """Empty where the manifest sweeps nothing."""
    sweep = document.get("scaling") or {}
    loop_figure, step_figure = draw_loop_growth(document), draw_step_growth(document)
    if loop_figure is None:
        return {}
    points = _sweep_points(sweep)
    rows = _exponent_rows(sweep, points, series)
    return {
        "parameter": sweep["parameter"],
        "sweep_params": sorted((sweep.get("params") or {}).items()),
        "exponents": [row for row in rows if row.phase is None],
        "phase_exponents": sorted(
            (row for row in rows if row.phase), key=lambda row: (-(row.seconds or 0.0), row.phase)
        ),
        "sweep": _sweep_rows(points),
        "loop_figure": theme.figure_json(loop_figure),
        "step_figure": theme.figure_json(step_figure) if step_figure else "",
    }


def _sweep_points(sweep: Json) -> list[Json]:
    return [point for point in sweep.get("points") or [] if point["value"] > 0 and point["seconds"] > 0]


def _known_exponent(sweep: Json, name: str) -> float | None:
    """Of the whole loop, of its steps or of one: not of a phase."""
    rows = sweep.get("exponents") or []
    return next((row["value"] for row in rows if row["name"] == name and row["phase"] is None), None)


def _exponent_rows(
    sweep: Json, points: list[Json], series: dict[tuple[str, str | None], int]
) -> list[ExponentRow]:
    largest = max(point["value"] for point in points)
    at_end = [point for point in points if point["value"] == largest]
    return [
        ExponentRow(
            **{name: row[name] for name in ("name", "phase", "value", "low", "high", "points")},
            series=series.get((row["name"], row["phase"])),
            seconds=median(point["phases"].get(row["phase"], 0.0) for point in at_end)
            if row["phase"]
            else None,
        )
        for row in sweep.get("exponents") or []
    ]


def _sweep_rows(points: list[Json]) -> list[Json]:
    """Each value of the parameter with the medians of its processes."""
    rows = []
    for value in sorted({point["value"] for point in points}):
        processes = [point for point in points if point["value"] == value]
        row = {name: median(point[name] for point in processes) for name in ("steps", "seconds")}
        step = row["seconds"] / row["steps"] if row["steps"] else None
        rows.append({"value": value, "processes": len(processes), "step_time": step, **row})
    return rows


def draw_loop_growth(document: Json) -> theme.Figure | None:
    """The whole loop and its longest phases; None where the manifest sweeps nothing."""
    sweep = document.get("scaling") or {}
    points = _sweep_points(sweep)
    if not points:
        return None
    paths = {path for point in points for path in point["phases"]}
    outer = {path for path in paths if not any(path.startswith(f"{other}/") for other in paths)}
    phases = {
        path: [(point["value"], point["phases"].get(path, 0.0)) for point in points] for path in sorted(outer)
    }
    return scaling.draw_growth(
        [(point["value"], point["seconds"]) for point in points],
        _known_exponent(sweep, LOOP),
        sweep["parameter"],
        reference=EXPECTED[LOOP],
        title="for the whole loop",
        phases=phases,
    )


def draw_step_growth(document: Json) -> theme.Figure | None:
    """None where the manifest sweeps nothing, or the steps weren't counted."""
    sweep = document.get("scaling") or {}
    pairs = [
        (point["value"], point["seconds"] / point["steps"])
        for point in _sweep_points(sweep)
        if point["steps"]
    ]
    if not pairs:
        return None
    exponent = _known_exponent(sweep, STEP_TIME)
    return scaling.draw_growth(
        pairs, exponent, sweep["parameter"], reference=EXPECTED[STEP_TIME], title="per step"
    )


def job_context(document: Json) -> Json:
    """What the manifest's full job would take; empty where it has none."""
    job = document.get("job")
    if not job:
        return {}
    source = "the fit of its scaling" if job.get("from") == "scaling" else "the measured rate"
    return {"job": {**job, "source": source}}


@dataclass(frozen=True, slots=True)
class LimitRow:
    """A bound of the manifest and whether this run kept it."""

    label: str
    unit: str
    minimum: float | None
    maximum: float | None
    value: float | None
    crossed: bool | None
    series: int | None

    @property
    def bound(self) -> str:
        return format_bounds(self.minimum, self.maximum, self.unit)

    @property
    def state(self) -> str:
        return "not measured" if self.crossed is None else "crossed" if self.crossed else "kept"


def limits_context(document: Json, series: dict[tuple[str, str | None], int]) -> Json:
    """Crossed ones first; what wasn't measured last."""
    metrics = {(row["name"], row["phase"]): row["unit"] for row in document.get("metrics") or []}
    limits = [
        LimitRow(
            metric_label(row["metric"], row["phase"] or ""),
            metrics.get((row["metric"], row["phase"])) or metric_unit(row["metric"]),
            row["minimum"],
            row["maximum"],
            row["value"],
            row["crossed"],
            series.get((row["metric"], row["phase"])),
        )
        for row in document.get("limits") or []
    ]
    return {
        "limits": sorted(limits, key=lambda limit: ("crossed", "kept", "not measured").index(limit.state)),
        "crossed": [limit for limit in limits if limit.crossed],
    }
