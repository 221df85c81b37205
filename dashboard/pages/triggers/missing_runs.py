"""Commits of a project's branch without a result: how many there are, and the buttons that look for more of
them and ask for them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from dashboard.access import visitor_of
from dashboard.models import Commit, Project
from dashboard.page_cache.revisions import revise_project
from dashboard.pages.requested_project import requested_project
from dashboard.querysets.durations import newest_durations
from dashboard.querysets.projects import LOOKED_AT, unmeasured_commits
from dashboard.sentences.formatting.numbers import format_count, format_duration
from dashboard.triggers import create_web_trigger
from dashboard.triggers.reading_commits import read_newest_commits
from dashboard.triggers.receiving import TriggerError
from dashboard.triggers.request_validation import CHECK_SECONDS

# So many commits are asked for at once, the newest: one press never fills a queue for days.
MOST_ASKED = 20


def missing_context(project: Project) -> dict[str, Any]:
    """`missing_asked` of `missing` commits would be asked for, which takes about `missing_takes`;
    `unmeasurable` more have no manifest that can be read."""
    found = unmeasured_commits(project)
    missing = measurable_commits(found)
    counted = {"missing_among": LOOKED_AT, "unmeasurable": len(found) - len(missing)}
    if not missing or not project.repository:
        return {**counted, "missing": 0}
    asked = min(len(missing), MOST_ASKED)
    seconds = sum(newest_durations(Project.objects.filter(pk=project.pk)).values())
    return {
        **counted,
        "missing": len(missing),
        "missing_asked": asked,
        "missing_takes": format_duration(seconds * asked) if seconds else "",
    }


def measurable_commits(commits: Iterable[Commit]) -> list[Commit]:
    return [commit for commit in commits if not commit.manifest_problem]


@require_POST
def measure_missing(request: HttpRequest, slug: str) -> HttpResponse:
    """Ask for each of the newest commits that lack a result; what the policy budgets for a commit holds."""
    project = requested_project(request, slug)
    found = unmeasured_commits(project)
    missing = measurable_commits(found)[:MOST_ASKED]
    try:
        for commit in missing:
            create_web_trigger(project, visitor_of(request), {"commit": commit.hash})
    except TriggerError as error:
        messages.error(request, str(error))
        return redirect("project-commits", slug)
    if missing:
        messages.success(
            request,
            f"Requested: {format_count(len(missing), 'commit')} without a result, each by a trigger of its "
            "own. The runs are in the queue once the repository has been read.",
        )
    elif found:
        messages.success(
            request,
            f"Nothing more can be asked for: {format_count(len(found), 'commit')} without a result "
            f"ha{'s' if len(found) == 1 else 've'} no manifest that can be read.",
        )
    else:
        messages.success(
            request, "Nothing is missing: each of the newest commits has a result, or was asked for."
        )
    return redirect("project-triggers" if missing else "project-commits", slug)


@require_POST
def read_commits(request: HttpRequest, slug: str) -> HttpResponse:
    """Read the newest commits from the repository, so that those which nobody asked for are counted too."""
    project = requested_project(request, slug)
    try:
        new = read_newest_commits(project, LOOKED_AT)
    except TriggerError as error:
        messages.error(request, str(error))
    else:
        # The page says when it was read last, for which alone it isn't made anew within the minute.
        revise_project(project.pk)
        messages.success(request, describe_reading(project, new))
    return redirect("project-commits", slug)


def describe_reading(project: Project, new: int | None) -> str:
    """What reading brought: `new` commits, or None where a worker goes on with it."""
    if new is None:
        return (
            f"The repository takes longer than {format_duration(CHECK_SECONDS)}. "
            "A worker goes on reading it: new commits are listed here as soon as it is done."
        )
    if not new:
        return f"Each of the newest commits of {project.branch} was known."
    return f"{format_count(new, 'commit')} more {'is' if new == 1 else 'are'} known now."
