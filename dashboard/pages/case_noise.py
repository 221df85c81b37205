"""How noisy each case is on each machine, and the smallest step that its runs there can show."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import cast

import numpy as np
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from dashboard import detection
from dashboard.detection.noise import neighbour_noise
from dashboard.detection.types import Kind
from dashboard.models import Machine, SeriesLatest
from dashboard.pages.case_grid import read_grid_request
from dashboard.pages.list_filters import matches_words
from dashboard.pages.paging import requested_page
from dashboard.pages.requested_project import requested_project
from dashboard.querysets.case_grid import CaseState, read_case_states
from dashboard.sentences import labels

CASES_PER_PAGE = 50
# Fewer values of one machine tell nothing of its noise.
ENOUGH_VALUES = 6
# A step shows once so many runs lie on both its sides and their levels are so many standard errors apart.
RUNS_BESIDE = 5
STANDARD_ERRORS = 5.0


@dataclass(frozen=True, slots=True)
class MachineNoise:
    """The spread of one case's runs on one machine, as a part of their level, and the smallest step it shows.

    Both are None where there are too few values: `values` of ENOUGH_VALUES, the newest `age_days` ago.
    """

    machine: Machine
    values: int
    noise: float | None
    smallest: float | None
    age_days: int


@dataclass(frozen=True, slots=True)
class CaseNoise:
    state: CaseState
    machines: list[MachineNoise]


@require_safe
def noise_page(request: HttpRequest, slug: str) -> HttpResponse:
    project = requested_project(request, slug)
    asked = read_grid_request(request)
    states = read_case_states(project, asked.metric)
    shown = [state for state in states if matches_words(f"{state.case} {state.pool}", asked.words)]
    page = requested_page(request, shown, CASES_PER_PAGE)
    listed = list(page)
    rows = SeriesLatest.objects.select_related("series__metric").in_bulk([state.series for state in listed])
    keys = {key for latest in rows.values() for key in latest.recent_machines if key is not None}
    machines = Machine.objects.only("name").in_bulk(keys)
    now = timezone.now()
    context = {
        "project": project,
        "tab": "noise",
        "grid": asked,
        "grid_refused": asked.refused,
        "metrics": [(name, labels.metric_label(name)) for name in labels.METRIC_ORDER],
        "metric_label": labels.metric_label(asked.metric),
        "page": page,
        "rows": [CaseNoise(state, noise_by_machine(rows[state.series], machines, now)) for state in listed],
        "enough": ENOUGH_VALUES,
        "beside": RUNS_BESIDE,
        "case_count": len(states),
    }
    return render(request, "project_noise.html", context, status=400 if asked.refused else 200)


def noise_by_machine(
    latest: SeriesLatest, machines: Mapping[int, Machine], now: datetime
) -> list[MachineNoise]:
    """Of the newest values of a series, those of each machine by themselves, the noisiest first."""
    by_machine: dict[int, list[float]] = {}
    for machine, value in zip(latest.recent_machines, latest.recent, strict=False):
        if machine is not None and machine in machines:
            by_machine.setdefault(machine, []).append(value)
    age = (now - latest.updated_at).days
    kind = latest.series.metric.kind
    found = [
        MachineNoise(machines[key], len(values), *measure_noise(values, kind), age)
        for key, values in by_machine.items()
    ]
    return sorted(found, key=lambda row: (-(row.noise or 0.0), row.machine.name))


def measure_noise(values: Sequence[float], kind: str) -> tuple[float | None, float | None]:
    """(noise, smallest step), both as parts of the level; None where that can't be told."""
    level = abs(float(np.median(values))) if values else 0.0
    if len(values) < ENOUGH_VALUES or not level:
        return None, None
    noise = neighbour_noise(np.asarray(values, dtype=np.float64)) / level
    return noise, smallest_step(noise, kind, len(values))


def smallest_step(noise: float, kind: str, points: int) -> float:
    """No step below the effect floor of its kind is told, however calm the machine."""
    effect = detection.EFFECT_FLOORS.get(cast(Kind, kind))
    floor = effect.at(points) if effect else 0.0
    return max(floor, STANDARD_ERRORS * noise * math.sqrt(2 / RUNS_BESIDE))
