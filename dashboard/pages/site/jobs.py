"""The site's own jobs that failed for a reason nobody foresaw: why, tried again, or forgotten."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.template.defaultfilters import pluralize
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from dashboard import dispatch, failed_jobs
from dashboard.access import AuditAction, record_action, visitor_of
from dashboard.models import FailedJob
from dashboard.pages.form_fields import parse_key
from dashboard.pages.paging import requested_page
from dashboard.pages.site.sections import site_context

ROWS_PER_PAGE = 50
# The page of what a job is about, which is its first argument.
PAGES = {
    dispatch.JUDGE: "run",
    dispatch.RUN_ENDED: "run",
    dispatch.EXPERIMENT_ENDED: "experiment",
    dispatch.PROVED_WORSE: "experiment",
    dispatch.PROVE: "regression",
    dispatch.PREPARE_CHECK: "check",
    dispatch.PUBLISH_CHECK: "check",
}
RETRY, DROP = "retry", "drop"


@require_http_methods(["GET", "HEAD", "POST"])
def jobs_page(request: HttpRequest) -> HttpResponse:
    """POST's fields: `action`, which is `retry` or `drop`, and `job`, the key of one; all without."""
    if request.method != "POST":
        return render_jobs(request)
    action = request.POST.get("action", "")
    jobs = chosen_jobs(request.POST.get("job", ""))
    if action not in (RETRY, DROP):
        messages.error(request, f"action: must be {RETRY} or {DROP}.")
    elif not (number := change_jobs(request, action, jobs)):
        messages.info(request, "It has gone well in the meantime, or somebody has forgotten it.")
    else:
        named = f"{number} job{pluralize(number)} {pluralize(number, 'is,are')}"
        messages.success(request, f"{named} tried again." if action == RETRY else f"{named} forgotten.")
    return redirect("site-jobs")


def chosen_jobs(key: str) -> QuerySet[FailedJob]:
    return FailedJob.objects.filter(pk=parse_key(key)) if key else FailedJob.objects.all()


def change_jobs(request: HttpRequest, action: str, jobs: QuerySet[FailedJob]) -> int:
    with transaction.atomic():
        number = failed_jobs.retry_jobs(jobs) if action == RETRY else failed_jobs.drop_jobs(jobs)
        if number:
            record_action(visitor_of(request), AuditAction.JOBS_CHANGED, change=action, number=number)
    return number


def render_jobs(request: HttpRequest) -> HttpResponse:
    page = requested_page(request, FailedJob.objects.order_by("-pk"), ROWS_PER_PAGE)
    shown: dict[str, Any] = {
        **site_context(request, "site-jobs"),
        "page": page,
        "jobs": [{"row": job, "address": page_of_job(job)} for job in page],
    }
    return render(request, "site/jobs.html", shown)


def page_of_job(job: FailedJob) -> str:
    """Of the run, experiment or regression that it is about; empty where that has none."""
    view_name, about = PAGES.get(job.task), job.arguments[0] if job.arguments else None
    return reverse(view_name, args=[about]) if view_name and isinstance(about, int) else ""
