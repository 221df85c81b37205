"""The policy of a project: what holds, where it comes from, and what the site says above the manifest."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods
from paceline.manifest import ManifestError
from paceline.manifest.policy import Policy, parse_policy_text

from dashboard import retention
from dashboard.access import Actor, AuditAction, record_action, visitor_of
from dashboard.models import Project
from dashboard.pages.form_fields import OVERTAKEN, read_sent_text, sent_version, text_version
from dashboard.pages.settings.policy_rows import policy_rows
from dashboard.pages.settings.sections import settings_context
from dashboard.policy.cron import NeverDue, next_due
from dashboard.policy.project_policy import follow_policy, project_policy
from dashboard.policy.quiet_hours import read_time_zone
from dashboard.policy.unknown_names import find_unknown_names
from dashboard.sentences.administration.policy import unknown_names_sentence

LONGEST_POLICY = 50_000


@require_http_methods(["GET", "HEAD", "POST"])
def policy_page(request: HttpRequest, slug: str) -> HttpResponse:
    """The form's fields: `policy`, the table of that name as TOML, empty: what the manifest says; and
    `text_version` of what it was made from."""
    context = settings_context(request, slug, "project-policy")
    project: Project = context["project"]
    if request.method != "POST":
        return _render_policy(request, context, project.policy, text_version(project.policy))
    text = read_sent_text(request.POST, "policy").replace("\r\n", "\n").strip()
    version = sent_version(request.POST, project.policy)
    try:
        policy = check_policy(text)
    except ManifestError as error:
        return _render_policy(request, {**context, "refused": error.sentence}, text, version, status=400)
    current = keep_policy(visitor_of(request), project, text, version)
    if current != text:
        context["refused"] = OVERTAKEN
        return _render_policy(request, context, text, text_version(current), status=400)
    messages.success(request, "Saved: it holds for whatever is pushed from now on.")
    if unknown := find_unknown_names(project, policy):
        messages.warning(request, unknown_names_sentence(unknown))
    return redirect("project-policy", slug)


def keep_policy(actor: Actor, project: Project, text: str, version: str) -> str:
    """The policy that holds then: another one than `text` where somebody has changed it since `version`."""
    with transaction.atomic():
        current = Project.objects.select_for_update(no_key=True).values_list("policy", flat=True)
        stored = str(current.get(pk=project.pk))
        if text == stored or version != text_version(stored):
            return stored
        project.policy = text
        project.save(update_fields=["policy"])
        follow_policy(project)
        record_action(actor, AuditAction.SETTINGS_CHANGED, project, project, fields=["policy"])
    return text


def check_policy(text: str) -> Policy:
    """What it says. Of what can't be meant one sentence that names the key; raises ManifestError."""
    if len(text) > LONGEST_POLICY:
        raise ManifestError(f"policy: has more than {LONGEST_POLICY} characters")
    policy = parse_policy_text(text, "Policy")
    if policy.time_zone and read_time_zone(policy.time_zone) is None:
        raise ManifestError(f"Policy: policy.time_zone: {policy.time_zone!r} is unknown here")
    for schedule in policy.schedules or ():
        try:
            next_due(schedule.cron, policy.time_zone or "UTC", timezone.now())
        except NeverDue as error:
            raise ManifestError(
                f"Policy: policy.schedule.{schedule.name}.cron: {schedule.cron!r} is never due"
            ) from error
    return policy


def _render_policy(
    request: HttpRequest, context: dict[str, Any], text: str, version: str, status: int = 200
) -> HttpResponse:
    project: Project = context["project"]
    now = timezone.now()
    quiet = project.quiet_from is not None and project.quiet_from <= now < (project.quiet_until or now)
    shown = {
        "text": text,
        "text_version": version,
        "rows": policy_rows(project_policy(project), retention.kept_days(project)),
        "schedules": list(project.schedules.order_by("next_at", "name")),
        "quiet": quiet,
    }
    return render(request, "settings/policy.html", {**context, **shown}, status=status)
