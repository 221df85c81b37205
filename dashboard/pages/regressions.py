"""The inbox of regressions, one regression with its evidence, and the log of what was told about them."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from dashboard.charts import phases as phase_charts
from dashboard.charts import theme
from dashboard.models import Project
from dashboard.pages import words
from dashboard.pages.paging import page_of
from dashboard.pages.run_parts import phase_of
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
        **_phases(*read.phases_around(found)),
    }
    return render(request, "regression.html", context)


@require_safe
def deliveries(request: HttpRequest) -> HttpResponse:
    page = page_of(request, read.deliveries(), LONG)
    return render(request, "deliveries.html", {"page": page, "deliveries": list(page)})


def _suspect(suspect: dict[str, Any], kind: str) -> dict[str, Any]:
    return {**suspect, "place": words.place(suspect), "sentence": words.suspect_sentence(suspect, kind)}


def _phases(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> dict[str, Any]:
    """The two runs' phases side by side: a figure and the rows of a table, largest difference first."""
    if not before or not after:
        return {"phase_figure": "", "phase_rows": []}
    old, new = ({phase["path"]: phase for phase in found} for found in (before, after))
    rows = [
        {
            "path": path,
            "before": old[path]["self"] if path in old else None,
            "after": new[path]["self"] if path in new else None,
            "delta": (new[path]["self"] if path in new else 0) - (old[path]["self"] if path in old else 0),
        }
        for path in old.keys() | new.keys()
    ]
    rows.sort(key=lambda row: (-abs(row["delta"]), row["path"]))
    drawn = phase_charts.before_after(
        [phase_of(phase) for phase in before], [phase_of(phase) for phase in after]
    )
    return {"phase_figure": theme.dump(drawn), "phase_rows": rows}
