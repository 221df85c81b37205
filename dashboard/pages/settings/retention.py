"""How long a project keeps old detail, what would be dropped now, and what was dropped when."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from dashboard import retention
from dashboard.models import DroppedDetail, Project
from dashboard.pages.settings.sections import settings_context
from dashboard.retention.sentences import describe_dropped, kept_row

MOST_LISTED = 50


@never_cache
@require_safe
def retention_page(request: HttpRequest, slug: str) -> HttpResponse:
    """`dry-run=yes` counts what would go now: it reads documents, so it is done where it is asked for."""
    context = settings_context(request, slug, "project-retention")
    project: Project = context["project"]
    counted = request.GET.get("dry-run") == "yes"
    if counted:
        rows = [kept_row(forecast.kept, forecast) for forecast in retention.forecast_project(project)]
    else:
        rows = [kept_row(kept) for kept in retention.kept_days(project)]
    dropped = DroppedDetail.objects.filter(project=project)
    shown = {
        "rows": rows,
        "counted": counted,
        "dropped": [(row, describe_dropped(row)) for row in dropped[:MOST_LISTED]],
        "command": f"python manage.py prune {project.slug} --dry-run",
    }
    return render(request, "settings/retention.html", {**context, **shown})
