"""Alerts as issues at the project's own forge: one of each regression, commented, and closed at its end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from urllib.parse import urlsplit

from django.conf import settings
from django.utils import timezone

from dashboard.alerts.errors import ChannelError, DeliveryError, PermanentDeliveryError
from dashboard.alerts.kinds.channel_kind import ChannelKind, Destination, KindField
from dashboard.alerts.messages import Message, Section, compose_message, fit_text
from dashboard.alerts.reported_states import ENDING_EVENTS
from dashboard.forges.errors import ForgeAnswerError, ForgeBusy, ForgeRefused
from dashboard.forges.forge import forge_of
from dashboard.forges.forge_api import Forge
from dashboard.models import Delivery, ForgeConnection
from dashboard.sentences.formatting.markdown import escape_markdown

MOST_TEXT, MOST_LINES = 1000, 8
Event = Delivery.Event
REOPENING_EVENTS = (Event.REOPENED, Event.CLAIM_REFUTED)
PLACE = KindField(
    "place",
    "Repository",
    "issues are opened with the token of Settings, Forge, which must be allowed to write them",
    choices=(("own", "the one that the project is connected with"),),
)


def read_issue_fields(written: Mapping[str, str]) -> Destination:
    if written.get(PLACE.name, "").strip() not in ("", "own"):
        raise ChannelError("Repository is own: the one that the project is connected with.", PLACE.name)
    return Destination("issues of the connected repository")


def send_issue(delivery: Delivery) -> None:
    """Raises DeliveryError or PermanentDeliveryError. A test opens an issue and closes it."""
    connection = ForgeConnection.objects.filter(project=delivery.channel.project).first()
    if connection is None:
        raise PermanentDeliveryError("The project isn't connected with a forge: its Settings, Forge do that.")
    message = compose_message(delivery)
    with delivery_errors():
        update_issue(forge_of(connection), delivery, message)


def update_issue(forge: Forge, delivery: Delivery, message: Message) -> None:
    """Open the issue or comment it; whether it is open is said first, since that may be said twice."""
    number = delivery.opened or opened_before(delivery)
    is_new = number == delivery.opened
    if not number:
        number = open_issue(forge, delivery, message)
    if delivery.event in (*ENDING_EVENTS, Delivery.Event.TEST):
        forge.set_issue_open(int(number), is_open=False)
    elif delivery.event in REOPENING_EVENTS and not is_new:
        forge.set_issue_open(int(number), is_open=True)
    if not is_new:
        forge.comment_issue(int(number), issue_markdown(message))


def opened_before(delivery: Delivery) -> str:
    """The number of the issue that an earlier message about the same opened; empty without one."""
    deliveries = Delivery.objects.filter(channel=delivery.channel_id)
    if delivery.claim_measurement is not None:
        deliveries = deliveries.filter(claim_measurement__claim=delivery.claim_measurement.claim_id)
    elif delivery.regression_id:
        deliveries = deliveries.filter(regression=delivery.regression_id)
    else:
        return ""
    return deliveries.exclude(opened="").order_by("-pk").values_list("opened", flat=True).first() or ""


def open_issue(forge: Forge, delivery: Delivery, message: Message) -> str:
    """A new issue, or the one of an earlier attempt whose answer was lost."""
    found = forge.find_own_issue(issue_marker(message)) if delivery.attempt > 1 else None
    number = str(found or forge.create_issue(message.title, issue_markdown(message)).number)
    Delivery.objects.filter(pk=delivery.pk).update(opened=number)
    return number


def issue_marker(message: Message) -> str:
    """By which the issue is found again: unseen in it."""
    return f"<!-- paceline {urlsplit(settings.PACELINE_URL).netloc} {message.topic} -->"


@contextmanager
def delivery_errors() -> Iterator[None]:
    """What a forge answers, as a reason for the delivery log."""
    try:
        yield
    except ForgeBusy as error:
        raise DeliveryError(str(error), max(0.0, (error.until - timezone.now()).total_seconds())) from error
    except ForgeRefused as error:
        raise PermanentDeliveryError(str(error)) from error
    except ForgeAnswerError as error:
        raise DeliveryError(str(error)) from error


def issue_markdown(message: Message) -> str:
    lines = [issue_marker(message), _shown_text(message.sentence), ""]
    if message.facts:
        rows = [f"| {_shown_text(name)} | {_shown_text(text)} |" for name, text in message.facts]
        lines += ["| | |", "|---|---|", *rows, ""]
    for section in message.sections:
        lines += [f"**{_shown_text(section.title)}**", "", *_section_lines(section), ""]
    if message.picture.startswith("https://"):
        lines += [f"![{_shown_text(message.picture_text)}]({message.picture})", ""]
    return "\n".join([*lines, f"[{_shown_text(message.link.text)}]({message.link.url})", ""])


def _section_lines(section: Section) -> Iterator[str]:
    for number, line in enumerate(section.lines[:MOST_LINES], start=1):
        mark = f"{number}." if section.ranked else "-"
        yield (
            f"{mark} [{_shown_text(line.text)}]({line.url})"
            if line.url
            else f"{mark} {_shown_text(line.text)}"
        )


def _shown_text(text: str) -> str:
    return escape_markdown(fit_text(text, MOST_TEXT))


KIND = ChannelKind("Forge issue", (PLACE,), read_issue_fields, send_issue, keeps_incidents=True)
