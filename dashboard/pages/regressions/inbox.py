"""The inbox of regressions: by state, project, case, machine, branch and period."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db.models import Exists, OuterRef, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard.access import visitor_of
from dashboard.models import Point, Project, Regression
from dashboard.pages.list_filters import FilterError, ListFilter, match_words, read_choice, read_list_filter
from dashboard.pages.paging import ROWS_PER_PAGE, first_page, is_first_page, requested_page
from dashboard.projects.names import current_slug
from dashboard.querysets import projects as project_queries
from dashboard.querysets import regressions as regression_queries
from dashboard.querysets.alarm_tallies import tally_proofs
from dashboard.sentences.regressions.costs import tally_sentence

# Of this many projects the slugs are offered for the choice.
MOST_PROJECTS = 500


@require_safe
def regressions_page(request: HttpRequest) -> HttpResponse:
    visitor = visitor_of(request)
    visible, visibility = visitor.visible_projects(), visitor.project_visibility
    project = _chosen_project(request, visible)
    chosen = visible.filter(pk=project.pk) if project else visible
    state, filters, refused = "open", ListFilter(), ""
    try:
        state = read_choice(request, "state", regression_queries.FILTERS) or "open"
        filters = read_list_filter(request, project)
    except FilterError as error:
        refused = str(error)
    counts = regression_queries.count_by_filter(visibility, project)
    if not filters and is_first_page(request):
        first = regression_queries.newest_of_filter(state, visibility, project, ROWS_PER_PAGE + 1)
        listed = first_page(first, counts[state], ROWS_PER_PAGE)
    else:
        rows = _filter_rows(regression_queries.filter_regressions(state, chosen), filters)
        details = regression_queries.REGRESSIONS_OF_KEYS
        listed = requested_page(request, rows, ROWS_PER_PAGE, details=details)
    slugs = list(visible.order_by("slug").values_list("slug", flat=True)[:MOST_PROJECTS])
    context = {
        "page": listed,
        "regressions": list(listed),
        "state": state,
        "states": filter_tabs(state, counts),
        "filters": filters,
        "refused": refused,
        "project": project,
        "project_slug": project.slug if project else "",
        "project_slugs": slugs,
        "single_project": project if project and len(slugs) == 1 else None,
        "single_case": project_queries.has_single_case(project) if project else False,
        "tally": tally_sentence(tally_proofs(chosen)),
    }
    return render(request, "regressions/inbox.html", context, status=400 if refused else 200)


def _chosen_project(request: HttpRequest, visible: QuerySet[Project]) -> Project | None:
    """The project that the address names, or the only one that there is. Http404 where it names none."""
    name = request.GET.get("project", "").replace("\x00", "")
    if not name:
        two = list(visible.defer("manifest")[:2])
        return two[0] if len(two) == 1 else None
    rows = visible.defer("manifest")
    found = rows.filter(slug=name).first() or rows.filter(slug=current_slug(name)).first()
    if found is None:
        raise Http404("There is no project of that name.")
    return found


def _filter_rows(rows: QuerySet[Regression], filters: ListFilter) -> QuerySet[Regression]:
    case = "series__configuration__case"
    found = rows.filter(match_words(filters.case, f"{case}__benchmark", f"{case}__key"))
    if filters.branch:
        found = found.filter(first_bad__branch=filters.branch)
    if filters.machine:
        points: Any = Point.objects.filter(
            series=OuterRef("series"), run__commit=OuterRef("first_bad"), run__machine__name=filters.machine
        )
        found = found.filter(Exists(points))
    return found.filter(filters.match_period("opened_at"))


def filter_tabs(shown: str, counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """The filters that list something, with how much: an inbox has no use for the empty ones."""
    always = {"open", "all", shown}
    return [(name, count) for name, count in counts.items() if count or name in always]
