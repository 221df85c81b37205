"""A run's document -> the tables and figures of its page. Everything here was written by measured code
or by the machine it ran on: it is shown, never trusted."""

from __future__ import annotations

import shlex
from statistics import median
from typing import Any

from paceline.manifest import FILE_NAME

from dashboard.charts import histogram, phases, repetitions, telemetry, theme
from dashboard.host_protocol import files_version
from dashboard.models import Project, Run, Telemetry
from dashboard.projects.kept_files import read_kept_files
from dashboard.querysets import runs as run_queries
from dashboard.sentences.administration.repositories import repository_location
from dashboard.sentences.formatting.metric_labels import field_label

MAIN_THREAD = "main"
MOST_OVERLAID = 8

Json = dict[str, Any]


def phase_from_row(row: Json) -> phases.Phase:
    return phases.Phase(row["path"], row["total"], row["self"], row["share"] or 0.0, _thread_name(row))


def _thread_name(row: Json) -> str:
    return row.get("thread") or MAIN_THREAD


def phases_context(document: Json) -> Json:
    """The flame chart and rows of the main thread, whose phases sum to the step, and those of the others."""
    rows = sorted(document.get("phases") or [], key=lambda row: -row["total"])
    main = [row for row in rows if _thread_name(row) == MAIN_THREAD]
    others = [row for row in rows if _thread_name(row) != MAIN_THREAD]
    return {
        "phase_rows": [row for row in main if row["path"] != phases.UNATTRIBUTED],
        "unattributed": next((row for row in main if row["path"] == phases.UNATTRIBUTED), None),
        "flame": _flame_chart_json(main),
        "flame_caption": _flame_caption(document),
        "other_threads": sorted(others, key=_thread_name),
        "device_times": any(row.get("device_total") is not None for row in rows),
    }


def _flame_caption(document: Json) -> str:
    """What is drawn; and of which repetition, since medians of each phase wouldn't add up to a step."""
    drawn = (
        "One step of the main thread from left to right: outer phases on top, what is nested in them below."
    )
    if len(document.get("repetitions") or []) < 2:
        return drawn
    return f"{drawn} It is the repetition with the median step; the other numbers are medians over all."


def _flame_chart_json(rows: list[Json]) -> str:
    """Empty where there are no phases."""
    if not rows:
        return ""
    return theme.figure_json(phases.draw_flame_chart([phase_from_row(row) for row in rows]))


def repetition_context(run: Run, document: Json, index: int, overlaid: bool = False) -> Json:
    """What one repetition looked like over time; `index` is its index in the document. `overlaid`: with the
    others behind it."""
    rows_of_all = document.get("repetitions") or []
    shown = _find_repetition(document, index)
    if shown is None:
        return {"repetitions": rows_of_all, "repetition": None}
    rows = run_queries.repetition_telemetry(run, index)
    channels = [_telemetry_channel(row) for row in rows]
    others = _other_repetitions(run, index) if overlaid else {}
    drawn = _draw_repetition(shown, channels, others)
    counted = _draw_histogram(shown)
    return {
        "repetitions": rows_of_all,
        "repetition": shown,
        "overlaid": overlaid,
        "channels": [
            (row, channel.label, sum(value is not None for value in row.values))
            for row, channel in zip(rows, channels, strict=True)
        ],
        "telemetry": theme.figure_json(drawn) if drawn else "",
        "histogram": theme.figure_json(counted) if counted else "",
    }


def draw_run_telemetry(run: Run, document: Json, index: int) -> theme.Figure | None:
    """What was read during one repetition, its window shaded; None where nothing of it is kept."""
    shown = _find_repetition(document, index)
    if shown is None:
        return None
    channels = [_telemetry_channel(row) for row in run_queries.repetition_telemetry(run, index)]
    return telemetry.draw_telemetry(channels, _window_of(shown))


def draw_step_times(document: Json, index: int) -> theme.Figure | None:
    """How long the steps of one repetition took; None where they aren't kept."""
    shown = _find_repetition(document, index)
    return _draw_histogram(shown) if shown else None


def _find_repetition(document: Json, index: int) -> Json | None:
    return next((row for row in document.get("repetitions") or [] if row["index"] == index), None)


def _window_of(shown: Json) -> tuple[float, float] | None:
    window = shown.get("window") or {}
    return (window["start"], window["end"]) if "start" in window and "end" in window else None


def _draw_repetition(
    shown: Json, channels: list[telemetry.Channel], others: dict[int, list[telemetry.Channel]]
) -> theme.Figure | None:
    span = _window_of(shown)
    drawn = telemetry.draw_telemetry(channels, span)
    if drawn is None:
        return None
    repetitions.share_cursor(drawn)
    if span:
        repetitions.draw_bands(drawn, shown.get("startup_seconds"), shown.get("warmup_seconds"), span)
    repetitions.overlay_repetitions(drawn, channels, others)
    return drawn


def _other_repetitions(run: Run, index: int) -> dict[int, list[telemetry.Channel]]:
    """The channels of the others, by repetition; the first MOST_OVERLAID of them."""
    found: dict[int, list[telemetry.Channel]] = {}
    for row in run_queries.telemetry_beside(run, index, MOST_OVERLAID):
        found.setdefault(row.repetition, []).append(_telemetry_channel(row))
    return found


def _telemetry_channel(row: Telemetry) -> telemetry.Channel:
    return telemetry.Channel(row.channel, row.unit, row.start, row.interval, row.values, row.device)


def _draw_histogram(repetition: Json) -> theme.Figure | None:
    counted = (repetition.get("step_times") or {}).get("histogram") or {}
    if not counted.get("counts"):
        return None
    times = repetition.get("step_time") or {}
    marks = {name: times[name] for name in ("p50", "p90", "p99") if times.get(name) is not None}
    return histogram.draw_step_times(counted["edges"], counted["counts"], marks)


def processes_context(document: Json) -> Json:
    """The processes of the measured tree by label: medians over the repetitions, the largest first."""
    by_name: dict[str, list[Json]] = {}
    for process in document.get("processes") or []:
        by_name.setdefault(process["name"], []).append(process)
    rows = [_process_row(name, processes) for name, processes in by_name.items()]
    largest = max((row["peak_memory"] or 0.0 for row in rows), default=0.0)
    for row in rows:
        row["of_largest"] = (row["peak_memory"] or 0.0) / largest if largest else 0.0
    return {"processes": sorted(rows, key=lambda row: (-(row["peak_memory"] or 0.0), row["name"]))}


def _process_row(name: str, rows: list[Json]) -> Json:
    def known_median(member: str) -> float | None:
        values = [row[member] for row in rows if row[member] is not None]
        return median(values) if values else None

    return {
        "name": name,
        "count": max(row["count"] for row in rows),
        "peak_memory": known_median("peak_memory"),
        "cpu_utilization": known_median("cpu_utilization"),
    }


def environment_context(document: Json) -> Json:
    """(name, value) pairs for people, and the longer lists of packages and variables."""
    environment = document.get("environment") or {}
    return {
        "environment": [
            (field_label(name), value) for name, value in environment.items() if _is_plain_value(name, value)
        ],
        "environment_gist": environment_gist(environment),
        "cpu_features": ", ".join(environment.get("cpu_features") or ()),
        "chosen_settings": sorted((environment.get("settings") or {}).items()),
        "gpus": environment.get("gpus") or [],
        "packages": sorted((environment.get("packages") or {}).items()),
        "variables": sorted((environment.get("variables") or {}).items()),
    }


def environment_gist(environment: Json) -> str:
    """`Python 3.11.2, torch 2.13.0, AMD EPYC 7B13`: what a person looks for first."""
    named = [("Python", environment.get("python")), ("torch", environment.get("torch"))]
    parts = [f"{name} {value}" for name, value in named if value]
    hardware = [gpu.get("name") for gpu in environment.get("gpus") or []] or [environment.get("cpu_model")]
    return ", ".join([*parts, *(name for name in hardware[:1] if name)])


# Of the protocol: what is set for the measured process, and how the numbers are taken.
PROTOCOL_LABELS = {
    "warmup_steps": "Warm-up steps",
    "counting_steps": "Counting steps",
    "countings": "Countings",
    "seed": "Seed",
    "threads": "Threads",
    "gc": "Garbage collection",
    "affinity": "Processors it may use",
}


def protocol_context(document: Json) -> Json:
    """(name, value) pairs of what the protocol set, the manifest's variables, what other seeds learned."""
    protocol = document.get("protocol") or {}
    affinity = ", ".join(str(processor) for processor in protocol.get("affinity") or [])
    values = {**protocol, "affinity": affinity or None}
    return {
        "protocol": protocol,
        "settings": [
            (label, values[name]) for name, label in PROTOCOL_LABELS.items() if values.get(name) is not None
        ],
        "set_variables": sorted((protocol.get("variables") or {}).items()),
        "learning": [(row["seed"], sorted(row["quality"].items())) for row in document.get("learning") or []],
    }


def _is_plain_value(name: str, value: object) -> bool:
    return name != "memory_bytes" and value is not None and not isinstance(value, dict | list)


def reproduction_command(run: Run, document: Json | None) -> str:
    """What measures the same thing by hand, for a shell; every word that came from outside is quoted."""
    project = run.case.project
    measure = ["python", "-m", "paceline", "run", run.case.benchmark]
    for name, value in sorted(run.case.params.items()):
        measure += ["--set", f"{name}={_format_parameter(value)}"]
    measure += ["--exact", "--repetitions", str(run.repetitions)]
    if run.quick:
        measure.append("--quick")
    return "\n".join(
        [
            f"git clone {shlex.quote(repository_location(project))} {shlex.quote(project.slug)}",
            f"cd {shlex.quote(project.slug)}",
            f"git checkout {shlex.quote(run.commit.hash)}",
            *_kept_files_note(project, document),
            shlex.join(measure),
        ]
    )


def _kept_files_note(project: Project, document: Json | None) -> list[str]:
    """What of the site's has to lie in the checkout first; a document names the files' version."""
    if not project.manifest:
        return []
    then = "# put here first what the site keeps, if it was kept then:"
    measured_with = ((document or {}).get("environment") or {}).get("kept_files")
    if not measured_with:
        return [f"{then} {', '.join((FILE_NAME, *project.kept_files.values_list('path', flat=True)))}"]
    files = read_kept_files(project)
    same = "as they were then" if measured_with == files_version(files) else "which were others then"
    return [f"{then} {FILE_NAME}", f"# and its files, {same}: {', '.join(files) or 'none now'}"]


def _format_parameter(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)
