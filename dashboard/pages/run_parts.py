"""A run's document -> the tables and figures of its page. Everything here was written by measured code
or by the machine it ran on: it is shown, never trusted."""

from __future__ import annotations

import shlex
from typing import Any

from dashboard.charts import histogram, phases, telemetry, theme
from dashboard.models import Point, Run, Telemetry
from dashboard.pages import words
from dashboard.querysets import runs as read

MOST_FUNCTIONS = 30
MOST_OPERATIONS = 30
# In the metrics table: what is said elsewhere on the page, phase by phase, is left out.
WHOLE = None

Json = dict[str, Any]


def phase_of(row: Json) -> phases.Phase:
    return phases.Phase(
        row["path"], row["total"], row["self"], row["share"] or 0.0, row.get("thread") or "main"
    )


def phase_parts(document: Json) -> Json:
    """The flame chart of the main thread, and the rows of all threads by their total time."""
    rows = sorted(document.get("phases") or [], key=lambda row: -row["total"])
    main = [phase_of(row) for row in rows if (row.get("thread") or "main") == "main"]
    return {
        "phase_rows": rows,
        "flame": theme.dump(phases.flame(main)) if main else "",
        "threads": len({row.get("thread") for row in rows}) > 1,
        "device_times": any(row.get("device_total") is not None for row in rows),
    }


def repetition_parts(run: Run, document: Json, wanted: int) -> Json:
    """What one repetition looked like over time; `wanted` is its index in the document."""
    repetitions = document.get("repetitions") or []
    chosen = next((found for found in repetitions if found["index"] == wanted), None)
    if chosen is None:
        return {"repetitions": repetitions, "repetition": None}
    channels = read.telemetry(run, wanted)
    window = chosen.get("window") or {}
    span = (window["start"], window["end"]) if "start" in window and "end" in window else None
    drawn = telemetry.telemetry([_channel(found) for found in channels], span)
    return {
        "repetitions": repetitions,
        "repetition": chosen,
        "channels": [(found, _channel(found).label) for found in channels],
        "telemetry": theme.dump(drawn) if drawn else "",
        "histogram": _histogram(chosen),
    }


def _channel(found: Telemetry) -> telemetry.Channel:
    return telemetry.Channel(
        found.channel, found.unit, found.start, found.interval, found.values, found.device
    )


def _histogram(repetition: Json) -> str:
    counted = (repetition.get("step_times") or {}).get("histogram") or {}
    if not counted.get("counts"):
        return ""
    times = repetition.get("step_time") or {}
    marks = {name: times[name] for name in ("p50", "p90", "p99") if times.get(name) is not None}
    return theme.dump(histogram.step_times(counted["edges"], counted["counts"], marks))


def metric_parts(document: Json, points: list[Point]) -> Json:
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
    whole = [row for row in rows if row["phase"] is WHOLE]
    return {
        "metrics": sorted(
            (row for row in whole if row["kind"] != "counter"),
            key=lambda row: (not row.get("headline"), words.metric_place(row["name"])),
        ),
        "counters": [row for row in whole if row["kind"] == "counter"],
        "phase_counters": _by_phase(rows),
        "phase_memory": sorted(
            (row for row in rows if row["name"] == "phase_memory"), key=lambda row: -row["value"]
        ),
        "phase_series": {
            phase: series for (name, phase), series in links.items() if name == "phase_self_time"
        },
    }


def _by_phase(rows: list[Json]) -> Json:
    """Counters of phases as a table: a column per counter that is not zero everywhere."""
    found = [row for row in rows if row["phase"] is not WHOLE and row["kind"] == "counter"]
    names = sorted({row["name"] for row in found if row["value"]})
    values = {(row["phase"], row["name"]): row for row in found}
    paths = sorted({row["phase"] for row in found})
    return {
        "columns": [words.metric_name(name) for name in names],
        "rows": [(path, [values.get((path, name)) for name in names]) for path in paths],
    }


def profile_parts(document: Json) -> Json:
    profile = document.get("profile") or {}
    functions = sorted(profile.get("functions") or [], key=lambda row: -row["self"])
    operations = sorted(profile.get("operations") or [], key=lambda row: -row["count"])
    return {
        "functions": functions[:MOST_FUNCTIONS],
        "more_functions": max(0, len(functions) - MOST_FUNCTIONS),
        "rest": profile.get("rest"),
        "operations": operations[:MOST_OPERATIONS],
        "profile_steps": profile.get("steps"),
    }


def environment_parts(document: Json) -> Json:
    """(name, value) pairs for people, and the longer lists of packages and variables."""
    found = document.get("environment") or {}
    plain = [(words.name_of(name), value) for name, value in found.items() if _is_plain(name, value)]
    return {
        "environment": plain,
        "gpus": found.get("gpus") or [],
        "packages": sorted((found.get("packages") or {}).items()),
        "variables": sorted((found.get("variables") or {}).items()),
    }


def _is_plain(name: str, value: object) -> bool:
    return name != "memory_bytes" and value is not None and not isinstance(value, dict | list)


def command(run: Run) -> str:
    """What measures the same thing by hand, for a shell; every word that came from outside is quoted."""
    project = run.case.project
    measure = ["python", "-m", "paceline", "run", run.case.benchmark]
    for name, value in sorted(run.case.params.items()):
        measure += ["--set", f"{name}={_scalar(value)}"]
    measure += ["--repetitions", str(run.repetitions)]
    if run.quick:
        measure.append("--quick")
    return "\n".join(
        [
            f"git clone {shlex.quote(words.repository(project))} {shlex.quote(project.slug)}",
            f"cd {shlex.quote(project.slug)}",
            f"git checkout {shlex.quote(run.commit.hash)}",
            shlex.join(measure),
        ]
    )


def _scalar(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)
