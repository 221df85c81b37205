"""Cancelling what of a project waits: how much that is, and a button that ends it."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from dashboard import cancelling
from dashboard.access import visitor_of
from dashboard.models import Backlog, Run
from dashboard.pages.form_fields import parse_key
from dashboard.pages.list_filters import FilterError, ListFilter
from dashboard.pages.projects.lists import filter_runs, read_run_filter
from dashboard.pages.requested_project import requested_project
from dashboard.querysets import runs
from dashboard.sentences.formatting.numbers import format_count


@require_http_methods(["GET", "HEAD", "POST"])
def cancel_waiting_page(request: HttpRequest, slug: str) -> HttpResponse:
    """The address filters as that of the project's runs does.

    The form's fields: `newest`, the key of the last run that it showed, and `newest_request`, that of the
    last request of which commits are left. What was asked for since isn't cancelled.
    """
    project = requested_project(request, slug)
    try:
        filters, commit = read_run_filter(request, project)
    except FilterError as error:
        messages.error(request, str(error))
        return redirect("project-runs", slug)
    rows = filter_runs(runs.project_runs(project), Run.State.REQUESTED, filters, commit)
    words = filter_words(filters, commit)
    left = Backlog.objects.none() if words else Backlog.objects.filter(trigger__project=project)
    if request.method == "POST":
        newest, newest_request = (
            parse_key(request.POST.get(name, "")) for name in ("newest", "newest_request")
        )
        seen = rows.filter(pk__lte=newest), left.filter(trigger__lte=newest_request)
        try:
            ended, commits = cancelling.cancel_waiting(visitor_of(request), project, *seen, words)
        except cancelling.NotCancellable as error:
            messages.info(request, str(error))
        else:
            dropped = f", {format_count(commits, 'commit')} dropped" if commits else ""
            messages.success(request, f"{format_count(ended, 'run')} cancelled{dropped}.")
        return redirect("queue")
    keys = list(rows.order_by("-pk").values_list("pk", flat=True))
    backlogs = dict(left.values_list("trigger", "hashes"))
    context = {
        "project": project,
        "tab": "runs",
        "waiting": len(keys),
        "newest": keys[0] if keys else 0,
        "words": words,
        "newest_request": max(backlogs, default=0),
        "commits_left": len({sha for hashes in backlogs.values() for sha in hashes}),
        "address": request.get_full_path(),
    }
    return render(request, "runs/cancel_waiting.html", context)


def filter_words(filters: ListFilter, commit: str) -> str:
    """`case walker, branch main`; empty where all are meant."""
    named = {
        "case": filters.case,
        "machine": filters.machine,
        "branch": filters.branch,
        "commit": commit[:10],
        "since": filters.since,
        "until": filters.until,
    }
    return ", ".join(f"{name} {value}" for name, value in named.items() if value)
