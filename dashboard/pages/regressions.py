"""The inbox of regressions, one regression with its evidence, and the log of what was told about them."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from dashboard.charts import phases as phase_charts
from dashboard.charts import theme
from dashboard.models import Metric, Project, Regression
from dashboard.pages import words
from dashboard.pages.paging import page_of
from dashboard.pages.proof import proof
from dashboard.pages.series import drawing_around
from dashboard.querysets import regressions as read

LONG = 40


@require_safe
def regressions(request: HttpRequest) -> HttpResponse:
    state = request.GET.get("state", "open")
    project = request.GET.get("project", "")
    if state not in read.FILTERS:
        raise Http404(f"state must be one of {', '.join(read.FILTERS)}.")
    slugs = list(Project.objects.values_list("slug", flat=True))
    if project and project not in slugs:
        raise Http404("There is no project of that name.")
    page = page_of(request, read.inbox(state, project), LONG)
    context = {
        "page": page,
        "regressions": list(page),
        "state": state,
        "states": list(read.FILTERS),
        "project_slug": project,
        "project_slugs": slugs,
        "example": project or next(iter(slugs), "my-training"),
    }
    return render(request, "regressions.html", context)


@require_safe
def regression(request: HttpRequest, pk: int) -> HttpResponse:
    found = get_object_or_404(read.readable(), pk=pk)
    context = {
        "regression": found,
        "project": found.project,
        "name": words.series_name(found.series),
        "figure": drawing_around(found),
        "changes": list(read.evidence(found)),
        "deliveries": list(read.deliveries(found)),
        "suspects": [_suspect(suspect, found.series.metric.kind) for suspect in found.suspects],
        **_phases(found),
        **proof(found),
    }
    return render(request, "regression.html", context)


@require_safe
def deliveries(request: HttpRequest) -> HttpResponse:
    page = page_of(request, read.deliveries(), LONG)
    return render(request, "deliveries.html", {"page": page, "deliveries": list(page)})


def _suspect(suspect: dict[str, Any], kind: str) -> dict[str, Any]:
    return {**suspect, "place": words.place(suspect), "sentence": words.suspect_sentence(suspect, kind)}


def _phases(found: Regression) -> dict[str, Any]:
    """The two runs' phases side by side: a figure and the rows of a table, largest difference first."""
    old, new = read.phases_around(found)
    kind, unit, title = found.series.metric.kind, "s", "per step, own time"
    if kind == Metric.Kind.MEMORY:
        unit, title = "bytes", "that the phase grew by"
    elif kind == Metric.Kind.COUNTER:
        unit, title = found.series.metric.unit, ""
    rows: list[dict[str, Any]] = [
        {
            "path": path,
            "before": old.get(path),
            "after": new.get(path),
            "delta": new.get(path, 0.0) - old.get(path, 0.0),
        }
        for path in old.keys() | new.keys()
    ]
    rows.sort(key=lambda row: (-abs(row["delta"]), row["path"]))
    drawn = phase_charts.before_after(old, new, unit, title) if old and new else None
    return {
        "phase_figure": theme.dump(drawn) if drawn else "",
        "phase_rows": rows,
        "phase_unit": unit,
        "phase_title": title,
    }
