"""What a run, and what a project's runs, cost: one bar, and the table of its parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from dashboard.charts.stacked_bar import stack_widths
from dashboard.models import Experiment, Run, RunCost
from dashboard.pages.requested_project import requested_project
from dashboard.querysets import run_costs
from dashboard.sentences.comparisons.experiments import PURPOSE_LABELS
from dashboard.sentences.measurements.run_costs import cost_of_run_sentence, gpu_time_sentence, part_label

# Repetitions in hues of their own, countings in one; what host and harness add is grey.
HUES = {
    "start": 1,
    "warmup": 5,
    run_costs.MEASURED: 3,
    "after": 7,
    "disturbed": 4,
    "sweep": 2,
    "learning": 2,
    "profiled": 6,
}
COUNTING_HUE, OTHERS_HUE = 6, 8


@dataclass(frozen=True, slots=True)
class CostRow:
    """A part of the bar: where it begins and how wide it is, in per cent of the whole."""

    label: str
    seconds: float
    share: float
    start: float
    width: float
    hue: int
    processes: int = 0


def stack_parts(parts: Sequence[tuple[str, float, int]]) -> list[CostRow]:
    """The rows of a bar, from (part, seconds, processes) in their order."""
    total = sum(seconds for _, seconds, _ in parts)
    rows = []
    spans = stack_widths([seconds for _, seconds, _ in parts], total)
    for (part, seconds, processes), (start, width) in zip(parts, spans, strict=True):
        share = seconds / total if total else 0.0
        hue = COUNTING_HUE if part.startswith("counting") else HUES.get(part, OTHERS_HUE)
        rows.append(CostRow(part_label(part), seconds, share, start, width, hue, processes))
    return rows


def costs_context(run: Run) -> dict[str, Any]:
    """What a run's page shows; nothing of a run whose document doesn't tell."""
    stored = run_costs.parts_of_run(run)
    of_machine = [(row.part, row.seconds, row.processes) for row in stored if row.part != RunCost.WAITING]
    waited = next((row.seconds for row in stored if row.part == RunCost.WAITING), None)
    return {
        "cost_rows": stack_parts(of_machine),
        "cost_sentence": cost_of_run_sentence([(part, seconds) for part, seconds, _ in of_machine]),
        "waited": waited,
    }


@require_safe
def costs_page(request: HttpRequest, slug: str) -> HttpResponse:
    """What the project's runs and experiments of the last weeks cost: by week, part, case and purpose."""
    project, now = requested_project(request, slug), timezone.now()
    costs = run_costs.costs_of_project(project, now)
    parts = [(part, seconds, 0) for part, seconds in costs.parts]
    longest = max((week.machine_seconds for week in costs.weeks), default=0.0)
    context = {
        "project": project,
        "tab": "costs",
        "weeks": [(week, week.machine_seconds / longest if longest else 0.0) for week in costs.weeks],
        "number_of_weeks": run_costs.WEEKS,
        "cost_rows": stack_parts(parts),
        "cost_sentence": cost_of_run_sentence([(part, seconds) for part, seconds, _ in parts]),
        "cases": costs.cases,
        "purposes": [(PURPOSE_LABELS[Experiment.Purpose(row.purpose)], row) for row in costs.purposes],
        "gpu_sentence": gpu_time_sentence(
            sum(week.machine_seconds for week in costs.weeks), sum(week.gpu_seconds for week in costs.weeks)
        ),
    }
    return render(request, "runs/costs/project_costs.html", context)
