"""How noisy each case is on each machine, and the smallest step that would be found there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from dashboard.metric_scale import NamedScale
from dashboard.pages.list_filters import matches_words
from dashboard.pages.noise.machine_noise import (
    ENOUGH_VALUES,
    LATER,
    SOON,
    TOO_NOISY,
    MachineNoise,
    measure_all,
)
from dashboard.pages.paging import requested_page
from dashboard.pages.projects.case_grid import metric_choices, read_grid
from dashboard.pages.requested_project import requested_project
from dashboard.querysets.case_grid import CaseState, read_case_states
from dashboard.querysets.noise import newest_points
from dashboard.querysets.series import OVERVIEW_METRIC
from dashboard.sentences.formatting.metric_labels import METRIC_ORDER, metric_label

CASES_PER_PAGE = 50
MEASURED_METRICS = [name for name in METRIC_ORDER if not NamedScale(name).has_sign]


@dataclass(frozen=True, slots=True)
class CaseNoise:
    state: CaseState
    machines: list[MachineNoise]


@require_safe
def noise_page(request: HttpRequest, slug: str) -> HttpResponse:
    project = requested_project(request, slug)
    asked, states = read_grid(request, project, takes_signed=False)
    if NamedScale(asked.metric).has_sign:
        label = metric_label(asked.metric)
        refused = f"metric must have noise that is a share of it: {label} may be 0 or less."
        asked = replace(asked, metric=OVERVIEW_METRIC, refused=refused)
        states = read_case_states(project, asked.metric)
    shown = [state for state in states if matches_words(f"{state.case} {state.pool}", asked.words)]
    page = requested_page(request, shown, CASES_PER_PAGE)
    rows = read_noise(list(page))
    context = {
        "project": project,
        "tab": "noise",
        "grid": asked,
        "grid_refused": asked.refused,
        "metrics": metric_choices(asked, MEASURED_METRICS),
        "metric_label": metric_label(asked.metric),
        "page": page,
        "rows": rows,
        "noisy": [(row.state, found) for row in rows for found in row.machines if found.is_too_noisy],
        "enough": ENOUGH_VALUES,
        "soon": SOON,
        "later": LATER,
        "too_noisy": TOO_NOISY,
        "case_count": len(states),
    }
    return render(request, "noise/cases.html", context, status=400 if asked.refused else 200)


def read_noise(states: Sequence[CaseState]) -> list[CaseNoise]:
    """The noise of each case by machine, the noisiest machine first."""
    found = measure_all(newest_points(state.series for state in states), timezone.now())
    return [CaseNoise(state, [row for row in found if row.series == state.series]) for state in states]
