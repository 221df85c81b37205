"""The channels of a project: which there are, and what a person does with one of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from dashboard import alerts
from dashboard.access import visitor_of
from dashboard.alerts import channel_changes
from dashboard.alerts.kinds import KINDS, kind_of
from dashboard.mail_server import PRINTED, sends_mail
from dashboard.models import Channel, Delivery, Project
from dashboard.pages.settings.sections import settings_context
from dashboard.querysets import channels as channel_queries
from dashboard.sentences.administration import channels as sentences

# In the session: the key of the test message that its next page shows.
TESTED = "tested_delivery"

View = Callable[..., HttpResponse]


def of_project(view: View) -> View:
    """The view gets the project. The table of rules has let in who may change its channels."""

    @wraps(view)
    def find(request: HttpRequest, slug: str, *args: Any, **kwargs: Any) -> HttpResponse:
        return view(request, get_object_or_404(Project, slug=slug), *args, **kwargs)

    return find


@require_safe
@of_project
def channels_page(request: HttpRequest, project: Project) -> HttpResponse:
    return render_channels(request, project, tested=_take_tested(request, project))


def render_channels(request: HttpRequest, project: Project, **extra: Any) -> HttpResponse:
    now = timezone.now()
    rows = [
        {
            "channel": channel,
            "label": kind_of(channel).label,
            "alert_scope": sentences.alert_scope(channel),
            "when": sentences.timing_text(channel, now),
            "state": sentences.channel_state(channel, now),
            "undelivered": PRINTED if channel.kind == Channel.Kind.EMAIL and not sends_mail() else "",
        }
        for channel in channel_queries.listed_channels(project)
    ]
    context = {
        **settings_context(request, project.slug, "project-channels"),
        "rows": rows,
        "kinds": [(name, kind.label) for name, kind in KINDS.items()],
        "feed": reverse("project-feed", args=[project.slug]),
        **extra,
    }
    return render(request, "settings/channels.html", context)


@require_POST
@of_project
@never_cache
def change_channel(request: HttpRequest, project: Project, pk: int) -> HttpResponse:
    """The form's fields: `action`, a key of ACTIONS, and `until` to mute."""
    channel = get_object_or_404(Channel.objects.select_related("project"), project=project, pk=pk)
    act = ACTIONS.get(request.POST.get("action", ""))
    if act is None:
        messages.error(request, "A channel can't do that.")
        return redirect("project-channels", project.slug)
    try:
        return act(request, channel) or redirect("project-channels", project.slug)
    except alerts.ChannelError as error:
        messages.error(request, str(error))
        return redirect("project-channels", project.slug)


def _test_channel(request: HttpRequest, channel: Channel) -> HttpResponse:
    """The page shows once how it goes, and asks until that is known: loaded again, it sends nothing."""
    request.session[TESTED] = channel_changes.send_test(visitor_of(request), channel).pk
    return redirect(f"{reverse('project-channels', args=[channel.project.slug])}#test")


def _take_tested(request: HttpRequest, project: Project) -> Delivery | None:
    """The test message that was sent last, unless it was shown before."""
    key = request.session.pop(TESTED, None) if request.method == "GET" else None
    return _test_deliveries(project).filter(pk=key).first() if key else None


def _test_deliveries(project: Project) -> QuerySet[Delivery]:
    rows = Delivery.objects.select_related("channel__project").filter(event=Delivery.Event.TEST)
    return rows.filter(channel__project=project)


def _mute_channel(request: HttpRequest, channel: Channel) -> None:
    until = channel_changes.mute_channel(visitor_of(request), channel, request.POST.get("until", ""))
    messages.success(request, f"{channel.name or channel.address} is muted until {until:%Y-%m-%d}.")


def _unmute_channel(request: HttpRequest, channel: Channel) -> None:
    channel_changes.unmute_channel(visitor_of(request), channel)
    messages.success(request, f"{channel.name or channel.address} gets messages again.")


def _turn_on(request: HttpRequest, channel: Channel) -> None:
    channel_changes.enable_channel(visitor_of(request), channel, enabled=True)
    messages.success(request, f"{channel.name or channel.address} is turned on.")


def _turn_off(request: HttpRequest, channel: Channel) -> None:
    channel_changes.enable_channel(visitor_of(request), channel, enabled=False)
    messages.success(request, f"{channel.name or channel.address} is turned off: it gets no messages.")


def _remove_channel(request: HttpRequest, channel: Channel) -> None:
    name = channel.name or channel.address
    channel_changes.remove_channel(visitor_of(request), channel)
    messages.success(request, f"{name} is removed, with the log of its messages.")


def _renew_secret(request: HttpRequest, channel: Channel) -> HttpResponse:
    """The answer shows the secret, which nothing else shows: no redirect, then."""
    secret = channel_changes.renew_secret(visitor_of(request), channel)
    return render_channels(request, channel.project, secret=secret, secret_of=channel)


ACTIONS: dict[str, Callable[[HttpRequest, Channel], HttpResponse | None]] = {
    "test": _test_channel,
    "mute": _mute_channel,
    "unmute": _unmute_channel,
    "turn-on": _turn_on,
    "turn-off": _turn_off,
    "remove": _remove_channel,
    "renew-secret": _renew_secret,
}


@require_safe
@of_project
def delivered_test_fragment(request: HttpRequest, project: Project, pk: int) -> HttpResponse:
    """How a test message went; asked for again and again while it is under way.

    Once it is known the channel's own numbers on the same page are replaced with it.
    """
    delivery = get_object_or_404(_test_deliveries(project), pk=pk)
    context: dict[str, Any] = {"tested": delivery, "project": project}
    if delivery.state != Delivery.State.PENDING:
        channel = channel_queries.listed_channels(project).get(pk=delivery.channel_id)
        context |= {"channel": channel, "swapped": True}
    return render(request, "settings/channel_test.html", context)
