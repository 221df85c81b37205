"""The sections of a report after metrics and phases; each is empty where there is nothing to show."""

from __future__ import annotations

from collections.abc import Mapping
from math import nan
from typing import Any

from ..document import Document
from ..document_rows import LimitResult, MetricValue, ProcessUse
from ..metrics import describe_metric
from ..phase_names import spell_metric
from ..statistics import median
from ..units import align_columns, format_amount, format_count, format_duration, format_number

PASSES = {
    "forward": ("forward pass", "forward passes"),
    "backward": ("backward pass", "backward passes"),
    "optimizer": ("optimizer step", "optimizer steps"),
    "env_step": ("environment step", "environment steps"),
}


def _describe_first(step: Mapping[str, Any]) -> str:
    before = step.get("succeeded")
    other = "another " if before == step["owner"] else ""
    return f"took over from {other}{before}" if before else "stepped first"


def step_lines(step: Mapping[str, Any]) -> list[str]:
    """Return what ends a step, and why, and what it holds."""
    if step["kind"] == "mark":
        lines = ["a step is one pass through paceline.steps"]
    else:
        why = "as was chosen" if step["chosen"] else f"which {_describe_first(step)}; --step chooses another"
        lines = [f"a step ends with the {step['kind']} of {step['owner']}, {why}"]
    passes = step.get("passes", {})
    held = [
        f"{number} {nouns[number != '1']}"
        for name, nouns in PASSES.items()
        if passes.get(name) and (number := format_number(passes[name]))
    ]
    return [*lines, f"a step holds {', '.join(held)}"] if held else lines


def format_job(document: Document) -> str:
    """Return `50,000 episodes: 7.4 h [7 h, 7.8 h], by the scaling fit`."""
    full = document.job
    if full is None:
        return ""
    bounds = ""
    if full.low is not None and full.high is not None:
        bounds = f" [{format_duration(full.low)}, {format_duration(full.high)}]"
    source = "scaling fit" if full.source == "scaling" else "measured rate"
    work = f"{format_number(full.amount)} {full.unit}"
    return f"{work}: {format_duration(full.seconds)}{bounds}, by the {source}"


def learning_table(document: Document) -> str:
    """Return what was learned with each of the other seeds; empty where there were none."""
    if not document.learning:
        return ""
    names = sorted({name for row in document.learning for name in row.quality})
    rows = [
        [f"seed {row.seed}", *[format_number(row.quality.get(name, nan)) for name in names]]
        for row in document.learning
    ]
    return align_columns([["learned with", *names], *rows])


def costs_table(document: Document) -> str:
    """Return what the run cost, part by part; empty for a document that doesn't tell."""
    costs = document.costs
    if costs is None:
        return ""
    rows = [
        [row.part, format_duration(row.seconds), f"{row.seconds / costs.seconds:.0%}", str(row.processes)]
        for row in costs.parts
        if costs.seconds > 0
    ]
    total = ["in all", format_duration(costs.seconds), "", ""]
    return align_columns([["what it cost", "", "share", "processes"], *rows, total])


def limits_table(document: Document) -> str:
    """Return one line per limit: what was measured, what is allowed, and whether it was crossed."""
    if not document.limits:
        return ""
    rows = [_limit_row(row) for row in document.limits]
    return align_columns([["limit", "measured", "allowed", ""], *rows])


def _limit_row(row: LimitResult) -> list[str]:
    metric = describe_metric(row.metric)
    unit = metric.unit if metric else "1"
    name = spell_metric(row.metric, row.phase)
    least = "" if row.minimum is None else f"from {format_amount(row.minimum, unit)}"
    most = "" if row.maximum is None else f"up to {format_amount(row.maximum, unit)}"
    measured = "not measured" if row.value is None else format_amount(row.value, unit)
    verdict = {True: "crossed", False: "kept", None: ""}[row.crossed]
    return [name, measured, f"{least} {most}".strip(), verdict]


def counters_table(document: Document) -> str:
    """Return the counters by phase, those that aren't 0 anywhere."""
    rows = [row for row in document.metrics if row.kind == "counter" and row.phase is not None and row.value]
    names = list(dict.fromkeys(row.name for row in rows))
    values = {(row.phase, row.name): row for row in rows}
    body = [
        [path, *(_counter_cell(values.get((path, name))) for name in names)]
        for path in dict.fromkeys(row.phase for row in rows)
        if path is not None
    ]
    return align_columns([["per step", *names], *body]) if body else ""


def graph_breaks_table(document: Document) -> str:
    """Return where the compiler broke graphs, and why."""
    places = document.profile.graph_breaks if document.profile else ()
    lines = [
        f"{format_amount(row.breaks, '1')} a step at {row.file}:{row.line} in {row.function}: "
        f"{row.reason or 'reason not known'}"
        for row in places[:10]
    ]
    return "\n".join(["graph breaks", *lines]) if lines else ""


def _counter_cell(row: MetricValue | None) -> str:
    if row is None:
        return ""
    return format_amount(row.value, "bytes" if row.unit.startswith("bytes") else "1")


def processes_table(document: Document) -> str:
    """Return each label's memory and processor time, over all repetitions; nothing for a single process."""
    names = dict.fromkeys(row.name for row in document.processes)
    if len(names) < 2:
        return ""
    rows = [_process_row(name, [row for row in document.processes if row.name == name]) for name in names]
    return align_columns([["process", "number", "peak memory", "CPU"], *rows])


def _process_row(name: str, rows: list[ProcessUse]) -> list[str]:
    peaks = [row.peak_memory for row in rows if row.peak_memory is not None]
    busy = [row.cpu_utilization for row in rows if row.cpu_utilization is not None]
    return [
        name,
        str(max(row.count for row in rows)),
        format_amount(median(peaks), "bytes") if peaks else "?",
        f"{format_number(median(busy))} %" if busy else "?",
    ]


def scaling_table(document: Document) -> str:
    """Return the exponents, and the loop's time at each value."""
    swept = document.scaling
    if swept is None:
        return ""
    rows = [
        [
            spell_metric(row.name, row.phase),
            f"{row.value:.2f}",
            f"[{row.low:.2f}, {row.high:.2f}]",
        ]
        for row in swept.exponents
    ]
    best: dict[float, float] = {}
    for point in swept.points:
        best[point.value] = min(point.seconds, best.get(point.value, point.seconds))
    times = ", ".join(f"{format_number(value)}: {format_duration(best[value])}" for value in sorted(best))
    title = f"over {swept.parameter}, {format_count(len(swept.points), 'point')}"
    return align_columns([[title, "exponent", "interval"], *rows]) + f"\n{swept.parameter} {times}"
