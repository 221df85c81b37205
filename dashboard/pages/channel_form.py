"""The forms that add a channel and edit one, and the rules of a channel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib import messages
from django.db import transaction
from django.db.models import Max
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from dashboard import alerts
from dashboard.alerts.channel_kind import ChannelKind
from dashboard.alerts.channel_rules import move_rule, read_rule
from dashboard.alerts.channel_settings import read_settings
from dashboard.alerts.channels import replace_destination, store_channel, update_channel
from dashboard.alerts.kinds import KINDS, kind_of
from dashboard.models import AlertRule, Channel, Project
from dashboard.pages.channels import of_project, record_channel, render_channels
from dashboard.pages.settings_sections import settings_context
from dashboard.sentences import numbers
from dashboard.sentences.channels import rule_text

LONGEST = 2000
SETTINGS = (
    *("name", "minimum_percent", "remind_days", "digest", "digest_at", "quiet_from", "quiet_until"),
    "time_zone",
)
RULE_FIELDS = ("case", "metric", "branch", "minimum_percent", "states", "tell")
MOST_RULES = 50


@require_http_methods(["GET", "HEAD", "POST"])
@of_project
@never_cache
def new_channel_page(request: HttpRequest, project: Project, kind: str) -> HttpResponse:
    made = KINDS.get(kind)
    if made is None:
        raise Http404(f"A channel's kind is one of {', '.join(KINDS)}.")
    blank = Channel(project=project, kind=kind)
    if request.method != "POST":
        return render_form(request, blank, made, settings_of(blank), {})
    written = read_form(request.POST)
    values, errors = read_settings(written, with_rule=True, incidents=made.keeps_incidents)
    try:
        if errors:
            made.read_fields(written)
        else:
            with transaction.atomic():
                channel, _ = store_channel(project, kind, written, values, only_new=True)
                record_channel(request, channel, "added")
    except alerts.ChannelError as error:
        errors[error.field] = str(error)
    if errors:
        return render_form(request, blank, made, written, errors)
    alerts.schedule_digests(channel)
    messages.success(request, f"{channel} is added: test it, to see that it arrives.")
    if made.makes_secret:
        return render_channels(request, project, secret=channel.secret, secret_of=channel)
    return redirect("project-channels", project.slug)


@require_http_methods(["GET", "HEAD", "POST"])
@of_project
@never_cache
def channel_page(request: HttpRequest, project: Project, pk: int) -> HttpResponse:
    """What is secret is empty there: only a new one is taken."""
    channel = get_object_or_404(Channel.objects.select_related("project"), project=project, pk=pk)
    made = kind_of(channel)
    if request.method != "POST":
        return render_form(request, channel, made, settings_of(channel), {})
    written = read_form(request.POST)
    ruled = channel.rules.exists()
    values, errors = read_settings(written, with_rule=not ruled, incidents=made.keeps_incidents)
    try:
        with transaction.atomic():
            if not errors:
                update_channel(channel, values)
            if any(written.get(field.name) for field in made.fields if not field.choices):
                replace_destination(channel, written)
            if not errors:
                record_channel(request, channel, "edited")
    except alerts.ChannelError as error:
        errors[error.field] = str(error)
    if errors:
        channel.refresh_from_db()
        return render_form(request, channel, made, written, errors)
    alerts.schedule_digests(channel)
    messages.success(request, f"{channel} is saved.")
    return redirect("project-channels", project.slug)


def read_form(form: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(form[name]).replace("\0", "").strip()[: LONGEST + 1] for name in form}


def settings_of(channel: Channel) -> dict[str, str]:
    """The settings of a channel as its form's fields have them."""
    return {
        "name": channel.name,
        "minimum_percent": numbers.format_field(channel.minimum_percent),
        "suspicions": "on" if channel.suspicions else "",
        "pictures": "on" if channel.pictures else "",
        "remind_days": str(channel.remind_days),
        "quiet_from": f"{channel.quiet_from:%H:%M}" if channel.quiet_from else "",
        "quiet_until": f"{channel.quiet_until:%H:%M}" if channel.quiet_until else "",
        "time_zone": channel.time_zone,
        "digest": channel.digest,
        "digest_at": f"{channel.digest_at:%H:%M}",
    }


def render_form(
    request: HttpRequest,
    channel: Channel,
    kind: ChannelKind,
    written: Mapping[str, str],
    errors: dict[str, str],
    rule: Mapping[str, Any] | None = None,
    rule_error: alerts.ChannelError | None = None,
) -> HttpResponse:
    """`rule` is what was typed of a new rule, and `rule_error` why it was refused."""
    # A secret isn't sent back, not even the one that was typed just now.
    fields = [
        {
            "field": field,
            "value": "" if field.secret else written.get(field.name, ""),
            "error": errors.get(field.name, ""),
        }
        for field in kind.fields
    ]
    rules = list(channel.rules.all()) if channel.pk else []
    wrong_rule = {rule_error.field: str(rule_error)} if rule_error else {}
    context = {
        **settings_context(request, channel.project.slug, "project-channels"),
        "channel": channel,
        "kind": kind,
        "fields": fields,
        "values": written,
        "errors": {name: errors.get(name, "") for name in SETTINGS},
        "rules": [(row, rule_text(row)) for row in rules],
        "rule": {**dict.fromkeys(RULE_FIELDS, ""), **(rule or {})},
        "rule_error": {**dict.fromkeys(RULE_FIELDS, ""), **wrong_rule},
        "states": AlertRule.State.values,
        "digests": [("", "at once"), ("daily", "a digest each day"), ("weekly", "a digest each Monday")],
    }
    status = 400 if errors or rule_error else 200
    return render(request, "project_channel.html", context, status=status)


@require_POST
@of_project
def change_rules(request: HttpRequest, project: Project, pk: int) -> HttpResponse:
    """The form's fields: `action` (add, up, down, remove), `rule` or the columns of a new one."""
    channel = get_object_or_404(Channel.objects.select_related("project"), project=project, pk=pk)
    action = request.POST.get("action", "")
    if action == "add":
        try:
            add_rule(channel, request.POST)
        except alerts.ChannelError as error:
            typed = {**read_form(request.POST), "states": request.POST.getlist("states")}
            return render_form(request, channel, kind_of(channel), settings_of(channel), {}, typed, error)
        record_channel(request, channel, "rules")
    elif action in ("up", "down", "remove"):
        record_channel(request, channel, "rules")
        key = request.POST.get("rule", "")
        rule = channel.rules.filter(pk=int(key)).first() if key.isascii() and key.isdigit() else None
        if rule and action == "remove":
            rule.delete()
        elif rule:
            move_rule(rule, -1 if action == "up" else 1)
    return redirect("project-channel", project.slug, channel.pk)


def add_rule(channel: Channel, form: Any) -> AlertRule:
    """Behind those that are there. Raises ChannelError."""
    if channel.rules.count() >= MOST_RULES:
        raise alerts.ChannelError(f"A channel has at most {MOST_RULES} rules.", "case")
    values = read_rule(read_form(form), form.getlist("states"))
    last = channel.rules.aggregate(last=Max("position"))["last"]
    return channel.rules.create(position=0 if last is None else last + 1, **values)
