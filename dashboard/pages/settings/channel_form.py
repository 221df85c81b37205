"""The forms that add a channel and edit one, and the rules of a channel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from dashboard import alerts
from dashboard.access import visitor_of
from dashboard.alerts import channel_changes
from dashboard.alerts.channel_changes import WrongSettings, create_channel, edit_channel
from dashboard.alerts.channel_settings import write_settings
from dashboard.alerts.kinds import KINDS, kind_of
from dashboard.alerts.kinds.channel_kind import ChannelKind
from dashboard.models import AlertRule, Channel, Project
from dashboard.pages.form_fields import parse_key, read_text
from dashboard.pages.settings.channels import of_project, render_channels
from dashboard.pages.settings.sections import settings_context
from dashboard.sentences.administration.channels import rule_text

LONGEST = 2000
SETTINGS = (
    *("name", "minimum_percent", "remind_days", "digest", "digest_at", "quiet_from", "quiet_until"),
    "time_zone",
)
RULE_FIELDS = ("case", "metric", "branch", "minimum_percent", "states", "notifies")


@require_http_methods(["GET", "HEAD", "POST"])
@of_project
@never_cache
def new_channel_page(request: HttpRequest, project: Project, kind: str) -> HttpResponse:
    made = KINDS.get(kind)
    if made is None:
        raise Http404(f"A channel's kind is one of {', '.join(KINDS)}.")
    blank = Channel(project=project, kind=kind)
    if request.method != "POST":
        return render_form(request, blank, made, write_settings(blank), {})
    written = read_form(request.POST)
    try:
        channel = create_channel(visitor_of(request), project, kind, written)
    except WrongSettings as error:
        return render_form(request, blank, made, written, error.errors)
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
        return render_form(request, channel, made, write_form(channel), {})
    written = {**settings_left_out(channel, request.POST), **read_form(request.POST)}
    try:
        edit_channel(visitor_of(request), channel, written)
    except WrongSettings as error:
        channel.refresh_from_db()
        return render_form(request, channel, made, written, error.errors)
    messages.success(request, f"{channel} is saved.")
    return redirect("project-channels", project.slug)


def settings_left_out(channel: Channel, form: Mapping[str, Any]) -> dict[str, str]:
    """What the form has no field for stays as it is: where rules decide it has none for the least change and
    for suspicions, which hold again without rules. An unticked box is sent as little as one that isn't there:
    it is described by the field beside it."""
    stored = write_settings(channel)
    left_out = {name: stored[name] for name in SETTINGS if name not in form}
    beside = {"suspicions": "minimum_percent", "pictures": "name"}
    return left_out | {box: stored[box] for box, field in beside.items() if field not in form}


def read_form(form: Mapping[str, Any]) -> dict[str, str]:
    return {name: read_text(form, name).strip()[: LONGEST + 1] for name in form}


def write_form(channel: Channel) -> dict[str, str]:
    """The form of a channel that is there: its settings, and what was chosen of its destination."""
    return {**write_settings(channel), **kind_of(channel).write_choices(channel)}


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
    return render(request, "settings/channel.html", context, status=status)


@require_POST
@of_project
def change_rules(request: HttpRequest, project: Project, pk: int) -> HttpResponse:
    """The form's fields: `action` (add, up, down, remove), `rule` or the columns of a new one."""
    channel = get_object_or_404(Channel.objects.select_related("project"), project=project, pk=pk)
    visitor, action = visitor_of(request), request.POST.get("action", "")
    if action == "add":
        written, states = read_form(request.POST), request.POST.getlist("states")
        try:
            channel_changes.add_rule(visitor, channel, written, states)
        except alerts.ChannelError as error:
            typed = {**written, "states": states}
            return render_form(request, channel, kind_of(channel), write_form(channel), {}, typed, error)
    elif action in ("up", "down", "remove"):
        rule = channel.rules.filter(pk=parse_key(request.POST.get("rule", ""))).first()
        if rule is None:
            messages.error(request, "rule: the channel has it no more, or never had it.")
        elif action == "remove":
            channel_changes.remove_rule(visitor, rule)
        else:
            channel_changes.shift_rule(visitor, rule, -1 if action == "up" else 1)
    else:
        messages.error(request, "action: must be one of add, up, down, remove.")
    return redirect("project-channel", project.slug, channel.pk)
