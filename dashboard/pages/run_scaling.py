"""How a run's times grow with the swept parameter, what the full job would take, and its limits."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import Any

from dashboard.charts import scaling, theme
from dashboard.pages import words

# What an exponent is compared with: the loop should grow as the parameter does, a step not at all.
LOOP, STEP_TIME, STEPS = "scaling_exponent", "scaling_exponent_step_time", "scaling_exponent_steps"
EXPECTED = {LOOP: 1.0, STEP_TIME: 0.0, STEPS: 1.0}
# An exponent this near to what is expected is as expected; an interval wider than the other says nothing.
NEAR, UNCLEAR = 0.1, 0.6
WHAT = {LOOP: "Whole loop", STEP_TIME: "Time per step", STEPS: "Number of steps"}

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Exponent:
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
        return self.phase or WHAT.get(self.name, words.metric_name(self.name))

    @property
    def doubled(self) -> float:
        return float(2**self.value)

    @property
    def reading(self) -> str:
        expected = EXPECTED.get(self.name, 1.0)
        if self.steep:
            return "where it should not" if expected == 0 else "faster than in proportion"
        if self.high < expected - NEAR:
            return "not: it shrinks" if expected == 0 else "slower than in proportion"
        if self.high - self.low > UNCLEAR:
            return "not clear from these points"
        return "not: the same throughout" if expected == 0 else "in proportion"

    @property
    def steep(self) -> bool:
        return self.low > EXPECTED.get(self.name, 1.0) + NEAR


def scaling_parts(document: Json, series: dict[tuple[str, str | None], int]) -> Json:
    """Empty where the manifest sweeps nothing."""
    found = document.get("scaling") or {}
    points = [point for point in found.get("points") or [] if point["value"] > 0 and point["seconds"] > 0]
    if not points:
        return {}
    rows = _exponents(found, points, series)
    parameter = found["parameter"]
    values = {row.name: row.value for row in rows if row.phase is None}
    return {
        "parameter": parameter,
        "sweep_params": sorted((found.get("params") or {}).items()),
        "exponents": [row for row in rows if row.phase is None],
        "phase_exponents": sorted(
            (row for row in rows if row.phase), key=lambda row: (-(row.seconds or 0.0), row.phase)
        ),
        "sweep": _sweep(points),
        "loop_figure": theme.figure_json(_loop(points, values.get(LOOP), parameter)),
        "step_figure": _steps(points, values.get(STEP_TIME), parameter),
    }


def _exponents(found: Json, points: list[Json], series: dict[tuple[str, str | None], int]) -> list[Exponent]:
    largest = max(point["value"] for point in points)
    at_end = [point for point in points if point["value"] == largest]
    return [
        Exponent(
            **{name: row[name] for name in ("name", "phase", "value", "low", "high", "points")},
            series=series.get((row["name"], row["phase"])),
            seconds=median(point["phases"].get(row["phase"], 0.0) for point in at_end)
            if row["phase"]
            else None,
        )
        for row in found.get("exponents") or []
    ]


def _sweep(points: list[Json]) -> list[Json]:
    """Each value of the parameter with the medians of its processes."""
    rows = []
    for value in sorted({point["value"] for point in points}):
        here = [point for point in points if point["value"] == value]
        row = {name: median(point[name] for point in here) for name in ("steps", "seconds")}
        step = row["seconds"] / row["steps"] if row["steps"] else None
        rows.append({"value": value, "processes": len(here), "step_time": step, **row})
    return rows


def _loop(points: list[Json], exponent: float | None, parameter: str) -> Any:
    paths = {path for point in points for path in point["phases"]}
    outer = {path for path in paths if not any(path.startswith(f"{other}/") for other in paths)}
    phases = {
        path: [(point["value"], point["phases"].get(path, 0.0)) for point in points] for path in sorted(outer)
    }
    pairs = [(point["value"], point["seconds"]) for point in points]
    return scaling.draw_growth(
        pairs, exponent, parameter, reference=EXPECTED[LOOP], title="for the whole loop", phases=phases
    )


def _steps(points: list[Json], exponent: float | None, parameter: str) -> str:
    pairs = [(point["value"], point["seconds"] / point["steps"]) for point in points if point["steps"]]
    if not pairs:
        return ""
    drawn = scaling.draw_growth(pairs, exponent, parameter, reference=EXPECTED[STEP_TIME], title="per step")
    return theme.figure_json(drawn)


def job_parts(document: Json) -> Json:
    """What the manifest's full job would take; empty where it has none."""
    found = document.get("job")
    if not found:
        return {}
    where = "the fit of its scaling" if found.get("from") == "scaling" else "the measured rate"
    return {"job": {**found, "where": where}}


@dataclass(frozen=True, slots=True)
class Limit:
    """A bound of the manifest and how this run stands to it, in words."""

    label: str
    unit: str
    minimum: float | None
    maximum: float | None
    value: float | None
    crossed: bool | None
    series: int | None

    @property
    def bound(self) -> str:
        return words.bound(self.minimum, self.maximum, self.unit)

    @property
    def state(self) -> str:
        return "not measured" if self.crossed is None else "crossed" if self.crossed else "kept"


def limit_parts(document: Json, series: dict[tuple[str, str | None], int]) -> Json:
    """Crossed ones first; what wasn't measured last."""
    found = document.get("limits") or []
    metrics = {(row["name"], row["phase"]): row["unit"] for row in document.get("metrics") or []}
    limits = [
        Limit(
            words.metric_name(row["metric"], row["phase"] or ""),
            metrics.get((row["metric"], row["phase"])) or words.unit_of(row["metric"]),
            row["minimum"],
            row["maximum"],
            row["value"],
            row["crossed"],
            series.get((row["metric"], row["phase"])),
        )
        for row in found
    ]
    return {
        "limits": sorted(limits, key=lambda limit: ("crossed", "kept", "not measured").index(limit.state)),
        "crossed": [limit for limit in limits if limit.crossed],
    }
