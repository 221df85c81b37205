"""A run's document -> the tables and figures of its page. Everything here was written by measured code
or by the machine it ran on: it is shown, never trusted."""

from __future__ import annotations

import shlex
from statistics import median
from typing import Any

from dashboard.charts import histogram, phases, telemetry, theme
from dashboard.models import Run, Telemetry
from dashboard.pages import words
from dashboard.querysets import runs as read

MAIN = "main"

Json = dict[str, Any]


def phase_of(row: Json) -> phases.Phase:
    return phases.Phase(row["path"], row["total"], row["self"], row["share"] or 0.0, _thread(row))


def _thread(row: Json) -> str:
    return row.get("thread") or MAIN


def phase_parts(document: Json) -> Json:
    """The flame chart and rows of the main thread, whose phases sum to the step, and those of the others."""
    rows = sorted(document.get("phases") or [], key=lambda row: -row["total"])
    main = [row for row in rows if _thread(row) == MAIN]
    others = [row for row in rows if _thread(row) != MAIN]
    return {
        "phase_rows": [row for row in main if row["path"] != phases.UNATTRIBUTED],
        "unattributed": next((row for row in main if row["path"] == phases.UNATTRIBUTED), None),
        "flame": theme.figure_json(phases.draw_flame_chart([phase_of(row) for row in main])) if main else "",
        "other_threads": sorted(others, key=_thread),
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
    drawn = telemetry.draw_telemetry([_channel(found) for found in channels], span)
    return {
        "repetitions": repetitions,
        "repetition": chosen,
        "channels": [(found, _channel(found).label) for found in channels],
        "telemetry": theme.figure_json(drawn) if drawn else "",
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
    return theme.figure_json(histogram.draw_step_times(counted["edges"], counted["counts"], marks))


def process_parts(document: Json) -> Json:
    """The processes of the measured tree by label: medians over the repetitions, the largest first."""
    found = document.get("processes") or []
    labels = {row["name"] for row in found}
    rows = [_process(name, [row for row in found if row["name"] == name]) for name in labels]
    largest = max((row["peak_memory"] or 0.0 for row in rows), default=0.0)
    for row in rows:
        row["of_largest"] = (row["peak_memory"] or 0.0) / largest if largest else 0.0
    return {"processes": sorted(rows, key=lambda row: (-(row["peak_memory"] or 0.0), row["name"]))}


def _process(name: str, rows: list[Json]) -> Json:
    def middle(member: str) -> float | None:
        values = [row[member] for row in rows if row[member] is not None]
        return median(values) if values else None

    return {
        "name": name,
        "count": max(row["count"] for row in rows),
        "peak_memory": middle("peak_memory"),
        "cpu_utilization": middle("cpu_utilization"),
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


# Of the protocol: what is set for the measured process, and how the numbers are taken.
PROTOCOL = {
    "warmup_steps": "Warm-up steps",
    "counting_steps": "Counting steps",
    "countings": "Countings",
    "seed": "Seed",
    "threads": "Threads",
    "gc": "Garbage collection",
    "affinity": "Processors it may use",
}


def protocol_parts(document: Json) -> Json:
    """(name, value) pairs of what the protocol set, and the variables that the manifest sets."""
    found = document.get("protocol") or {}
    said = {**found, "affinity": ", ".join(str(one) for one in found.get("affinity") or []) or None}
    return {
        "protocol": found,
        "settings": [(label, said[name]) for name, label in PROTOCOL.items() if said.get(name) is not None],
        "set_variables": sorted((found.get("variables") or {}).items()),
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
