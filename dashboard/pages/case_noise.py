"""How noisy each case is on each machine, and the smallest step that would be found there."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import cast

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from dashboard import detection
from dashboard.detection.smallest_effect import (
    NoiseSource,
    measure_run_noise,
    minimum_detectable_effect,
    provable_effect,
)
from dashboard.detection.types import Better, Kind
from dashboard.models import Machine, Series
from dashboard.pages.case_grid import read_grid_request
from dashboard.pages.list_filters import matches_words
from dashboard.pages.paging import requested_page
from dashboard.pages.requested_project import requested_project
from dashboard.querysets.case_grid import CaseState, read_case_states
from dashboard.querysets.noise import MeasuredPoints, PairSpread, newest_points, spreads_of_pairs
from dashboard.sentences import labels

CASES_PER_PAGE = 50
# Fewer values of one machine tell nothing of its noise.
ENOUGH_VALUES = 6
# After how many runs of a new level the smallest step is told, and what an experiment may take.
SOON, LATER = 2, 10
EXPERIMENT_SECONDS = 600.0
# A case whose steps of this size aren't found in LATER runs is too noisy to be worth its time.
TOO_NOISY = 0.2


@dataclass(frozen=True, slots=True)
class MachineNoise:
    """What one case's runs on one machine would show, in parts of their level.

    All are None where that can't be told, with fewer than ENOUGH_VALUES for instance. `soon` and `later`: the
    smallest step after so many runs of a new level; `proven`: by an experiment of ten minutes, as the newest
    one there suggests. `source`: what most of the noise is.
    """

    machine: Machine
    values: int
    age_days: int
    noise: float | None = None
    source: NoiseSource | None = None
    soon: float | None = None
    later: float | None = None
    proven: float | None = None
    experiment: int | None = None

    @property
    def is_too_noisy(self) -> bool:
        return self.noise is not None and (self.later is None or self.later > TOO_NOISY)


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
    rows = read_noise(list(page))
    context = {
        "project": project,
        "tab": "noise",
        "grid": asked,
        "grid_refused": asked.refused,
        "metrics": [(name, labels.metric_label(name)) for name in labels.METRIC_ORDER],
        "metric_label": labels.metric_label(asked.metric),
        "page": page,
        "rows": rows,
        "noisy": [(row.state, found) for row in rows for found in row.machines if found.is_too_noisy],
        "enough": ENOUGH_VALUES,
        "soon": SOON,
        "later": LATER,
        "too_noisy": TOO_NOISY,
        "case_count": len(states),
    }
    return render(request, "project_noise.html", context, status=400 if asked.refused else 200)


def read_noise(states: Sequence[CaseState]) -> list[CaseNoise]:
    """The noise of each case by machine, the noisiest machine first."""
    keys = [state.series for state in states]
    series = {row.pk: row for row in Series.objects.filter(pk__in=keys).select_related("metric")}
    points = newest_points(keys)
    spreads = spreads_of_pairs(list(series.values()))
    machines = Machine.objects.only("name").in_bulk({key for found in points.values() for key in found})
    now = timezone.now()
    return [
        CaseNoise(
            state,
            noise_by_machine(series[state.series], points.get(state.series, {}), machines, spreads, now),
        )
        for state in states
    ]


def noise_by_machine(
    series: Series,
    points: Mapping[int, MeasuredPoints],
    machines: Mapping[int, Machine],
    spreads: Mapping[tuple[int, int], PairSpread],
    now: datetime,
) -> list[MachineNoise]:
    found = [
        measure_noise(series, machines[key], measured, spreads.get((series.configuration_id, key)), now)
        for key, measured in points.items()
    ]
    return sorted(found, key=lambda row: (-(row.noise or 0.0), row.machine.name))


def measure_noise(
    series: Series, machine: Machine, measured: MeasuredPoints, spread: PairSpread | None, now: datetime
) -> MachineNoise:
    age = (now - measured.newest).days if measured.newest else 0
    count = len(measured.points)
    judged = judged_series(series, measured.points)
    noise = measure_run_noise(judged) if count >= ENOUGH_VALUES else None
    if noise is None:
        return MachineNoise(machine, count, age)
    return MachineNoise(
        machine,
        count,
        age,
        noise=noise.deviation,
        source=noise.source,
        soon=told_effect(minimum_detectable_effect(judged, SOON)),
        later=told_effect(minimum_detectable_effect(judged, LATER)),
        proven=told_effect(provable_effect(spread.deviation, int(EXPERIMENT_SECONDS / spread.seconds)))
        if spread
        else None,
        experiment=spread.experiment if spread else None,
    )


def judged_series(series: Series, points: Sequence[detection.Point]) -> detection.Series:
    return detection.Series(
        points,
        better=cast(Better, series.metric.better),
        kind=cast(Kind, series.metric.kind),
        exact=series.exact,
    )


def told_effect(effect: float) -> float | None:
    return effect if math.isfinite(effect) else None
