"""The channels of a project. What is secret of one is taken, and never shown."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any

from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from ninja import Query, Router
from pydantic import BaseModel, Field

from dashboard.access import visitor_of
from dashboard.alerts import channel_changes
from dashboard.alerts.channel_changes import WrongSettings
from dashboard.alerts.channel_settings import write_settings
from dashboard.alerts.kinds import KINDS
from dashboard.api.listing import ListedPage, PageQuery, read_page
from dashboard.api.shapes import Body, OneOf
from dashboard.models import AlertRule, Channel, Delivery, Project
from dashboard.problem_details import ApiError
from dashboard.querysets import channels as channel_queries

router = Router(tags=["channels"])

# Of a channel that has rules, these are theirs.
OF_RULES = ("minimum_percent", "suspicions")
# What opens and closes incidents sends neither reminders nor digests.
OF_MESSAGES = ("remind_days", "digest", "digest_at")


class AlertRuleRow(BaseModel):
    """Which regressions a channel is notified of: of its rules the first that a regression meets decides."""

    case: str = Field(description="Empty: any.")
    metric: str
    branch: str
    minimum_percent: float
    states: list[str]
    notifies: bool = Field(description="False: what meets it is left out.")


class ChannelRow(BaseModel):
    """Where alerts go, and when and about what it is notified."""

    id: int
    kind: str
    name: str
    address: str = Field(description="What may be shown of it.")
    enabled: bool
    minimum_percent: float
    suspicions: bool
    pictures: bool
    remind_days: int
    digest: str
    digest_at: str
    quiet_from: str
    quiet_until: str
    time_zone: str
    muted_until: datetime | None
    rules: list[AlertRuleRow]
    created_at: datetime


class ChannelPage(ListedPage):
    items: list[ChannelRow]


class NewChannel(ChannelRow):
    """A channel that was added."""

    secret: str | None = Field(description="Signs a webhook's requests. Nothing shows it again.")


class ChannelBody(Body):
    """The settings of a channel; what is left out stays as it is."""

    destination: dict[str, str] = Field(
        default_factory=dict, description="The fields of its kind, as the form to add it has them."
    )
    name: str | None = Field(None, max_length=100)
    enabled: bool | None = None
    minimum_percent: float | None = None
    suspicions: bool | None = None
    pictures: bool | None = None
    remind_days: int | None = Field(None, ge=0, le=365)
    digest: Annotated[str, OneOf(Channel.Digest.values)] | None = None
    digest_at: str | None = Field(None, max_length=20, description="`09:00`")
    quiet_from: str | None = Field(None, max_length=20, description="`22:00`; empty: no quiet hours.")
    quiet_until: str | None = Field(None, max_length=20)
    time_zone: str | None = Field(None, max_length=60)


class NewChannelBody(ChannelBody):
    """A channel to add."""

    kind: Annotated[str, OneOf(Channel.Kind.values)]


class TestMessage(BaseModel):
    """A test message on its way: `deliveries` tells how it goes."""

    delivery: int
    state: str


@router.get(
    "projects/{slug:slug}/channels",
    url_name="api-channels",
    operation_id="list_channels",
    response=ChannelPage,
)
def list_channels(request: HttpRequest, slug: str, query: Query[PageQuery]) -> dict[str, Any]:
    """The channels of a project, oldest first."""
    rows = channel_queries.listed_channels(get_object_or_404(Project, slug=slug))
    return read_page(request, query, rows, ("id",), describe_channel)


@router.post(
    "projects/{slug:slug}/channels",
    url_name="api-channels",
    operation_id="create_channel",
    response={HTTPStatus.CREATED: NewChannel},
)
def create_channel(request: HttpRequest, slug: str, body: NewChannelBody) -> NewChannel:
    """Add a channel. Test it, to see that its messages arrive."""
    project, visitor = get_object_or_404(Project, slug=slug), visitor_of(request)
    blank = Channel(project=project, kind=body.kind)
    written = written_texts(blank, body)
    with transaction.atomic():
        channel = apply_change(
            blank, lambda: channel_changes.create_channel(visitor, project, body.kind, written)
        )
        if body.enabled is False:
            channel_changes.enable_channel(visitor, channel, enabled=False)
    secret = channel.secret if KINDS[channel.kind].makes_secret else None
    return NewChannel(**channel_members(channel), secret=secret)


@router.get(
    "projects/{slug:slug}/channels/{int:pk}",
    url_name="api-channel",
    operation_id="read_channel",
    response=ChannelRow,
)
def read_channel(request: HttpRequest, slug: str, pk: int) -> ChannelRow:
    """One channel."""
    return describe_channel(find_channel(slug, pk))


@router.patch(
    "projects/{slug:slug}/channels/{int:pk}",
    url_name="api-channel",
    operation_id="change_channel",
    response=ChannelRow,
)
def change_channel(request: HttpRequest, slug: str, pk: int, body: ChannelBody) -> ChannelRow:
    """Change what is given of a channel."""
    channel, visitor = find_channel(slug, pk), visitor_of(request)
    written = written_texts(channel, body)
    with transaction.atomic():
        if body.model_fields_set - {"enabled"}:
            apply_change(channel, lambda: channel_changes.edit_channel(visitor, channel, written))
        if body.enabled is not None and body.enabled != channel.enabled:
            channel_changes.enable_channel(visitor, channel, enabled=body.enabled)
    return describe_channel(find_channel(slug, pk))


@router.delete(
    "projects/{slug:slug}/channels/{int:pk}",
    url_name="api-channel",
    operation_id="remove_channel",
    response={HTTPStatus.NO_CONTENT: None},
)
def remove_channel(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Remove a channel, with the log of its messages."""
    channel_changes.remove_channel(visitor_of(request), find_channel(slug, pk))
    return HttpResponse(status=HTTPStatus.NO_CONTENT)


@router.post(
    "projects/{slug:slug}/channels/{int:pk}/test",
    url_name="api-channel-test",
    operation_id="test_channel",
    response={HTTPStatus.ACCEPTED: TestMessage},
)
def send_test(request: HttpRequest, slug: str, pk: int) -> TestMessage:
    """Send a test message, by a worker and at once, whatever mute or quiet hours say."""
    delivery: Delivery = channel_changes.send_test(visitor_of(request), find_channel(slug, pk))
    return TestMessage(delivery=delivery.pk, state=delivery.state)


def find_channel(slug: str, pk: int) -> Channel:
    rows = Channel.objects.select_related("project").prefetch_related("rules")
    return get_object_or_404(rows, project__slug=slug, pk=pk)


def apply_change(channel: Channel, change: Callable[[], Any]) -> Any:
    """What the change gives; ApiError on the first field that keeps it from being done."""
    try:
        return change()
    except WrongSettings as error:
        field, sentence = next(iter(error.errors.items()))
        if field in {known.name for known in KINDS[channel.kind].fields}:
            field = f"destination.{field}"
        raise ApiError(HTTPStatus.UNPROCESSABLE_ENTITY, f"{field}: {sentence}", field) from error


def written_texts(channel: Channel, body: ChannelBody) -> dict[str, str]:
    """The form's texts: what the body has, and for the rest what the channel has.

    ApiError for what such a channel doesn't have.
    """
    kind = KINDS[channel.kind]
    given = body.model_dump(exclude={"destination", "enabled", "kind"}, exclude_none=True)
    unknown = body.destination.keys() - {field.name for field in kind.fields}
    if unknown:
        field = f"destination.{min(unknown)[:40]}"
        names = ", ".join(known.name for known in kind.fields)
        sentence = f"{field}: there is no field of that name, it has {names}."
        raise ApiError(HTTPStatus.UNPROCESSABLE_ENTITY, sentence, field)
    refused = dict.fromkeys(OF_MESSAGES, "this kind of channel has none") if kind.keeps_incidents else {}
    if channel.pk and channel.rules.all():
        refused |= dict.fromkeys(OF_RULES, "the rules of the channel say it")
    for field in given:
        if field in refused:
            raise ApiError(HTTPStatus.UNPROCESSABLE_ENTITY, f"{field}: {refused[field]}.", field)
    texts = {field: write_text(value) for field, value in given.items()}
    return {**write_settings(channel), **body.destination, **texts}


def write_text(value: Any) -> str:
    """As a form sends it."""
    if isinstance(value, bool):
        return "on" if value else ""
    return str(value)


def describe_channel(channel: Channel) -> ChannelRow:
    return ChannelRow(**channel_members(channel))


def channel_members(channel: Channel) -> dict[str, Any]:
    return {
        **write_settings(channel),
        "id": channel.pk,
        "kind": channel.kind,
        "address": channel.address,
        "enabled": channel.enabled,
        "minimum_percent": channel.minimum_percent,
        "suspicions": channel.suspicions,
        "pictures": channel.pictures,
        "remind_days": channel.remind_days,
        "muted_until": channel.muted_until,
        "rules": [describe_rule(rule) for rule in channel.rules.all()],
        "created_at": channel.created_at,
    }


def describe_rule(rule: AlertRule) -> AlertRuleRow:
    return AlertRuleRow(
        case=rule.case,
        metric=rule.metric,
        branch=rule.branch,
        minimum_percent=rule.minimum_percent,
        states=rule.states,
        notifies=rule.notifies,
    )
