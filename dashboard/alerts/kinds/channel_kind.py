"""What a kind of channel has to say of itself: what it asks for, checks and sends."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import SplitResult

from django.conf import settings

from dashboard.alerts.errors import ChannelError, DeliveryError, PermanentDeliveryError
from dashboard.alerts.kinds.http_exchange import check_webhook_host, parse_webhook_url
from dashboard.models import Channel, Delivery
from dashboard.secrets import is_lost

LONGEST_ADDRESS = 500
LONGEST_SECRET = 2000


@dataclass(frozen=True, slots=True)
class KindField:
    """A field of the form that adds a channel. What is `secret` is never shown again."""

    name: str
    label: str
    hint: str
    secret: bool = False
    choices: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a channel leads: what may be shown, and what may not."""

    address: str
    secret: str = ""


def write_no_choices(_channel: Channel) -> dict[str, str]:
    """Of a kind whose fields have no choices, or a single one."""
    return {}


@dataclass(frozen=True, slots=True)
class ChannelKind:
    """`read_fields` makes the destination of the form's texts, or raises ChannelError.

    `write_choices` gives the fields with choices as the form of such a channel has them.
    `makes_secret`: the site makes the secret, and shows it once. `keeps_incidents`: a message opens
    something there that a later one closes, so that there are no reminders and no digests.
    """

    label: str
    fields: tuple[KindField, ...]
    read_fields: Callable[[Mapping[str, str]], Destination]
    send: Callable[[Delivery], None]
    write_choices: Callable[[Channel], dict[str, str]] = write_no_choices
    shows_pictures: bool = True
    keeps_incidents: bool = False
    makes_secret: bool = False


def required_text(written: Mapping[str, str], field: KindField) -> str:
    text = written.get(field.name, "").strip()
    if not text:
        raise ChannelError(f"{field.label} is missing.", field.name)
    most = LONGEST_SECRET if field.secret else LONGEST_ADDRESS
    if len(text) > most:
        raise ChannelError(f"{field.label} is longer than {most} characters.", field.name)
    return text


def read_url(text: str, field: str) -> SplitResult:
    """The parts of a URL that may be posted to. The sentence of its ChannelError doesn't repeat it."""
    try:
        url = parse_webhook_url(text)
        check_webhook_host(url)
    except PermanentDeliveryError as error:
        raise ChannelError(str(error), field) from None
    except DeliveryError:
        return url  # A receiver may get its name later; each delivery looks it up again.
    return url


def read_secret_url(written: Mapping[str, str], field: KindField) -> SplitResult:
    """The URL of a service, which whoever knows it may post to: over TLS alone, unless it is inside."""
    url = read_url(required_text(written, field), field.name)
    if url.scheme != "https" and not settings.PACELINE_ALLOW_INTERNAL_WEBHOOKS:
        raise ChannelError(f"{field.label} must begin with https://: it is a secret.", field.name)
    return url


def secret_destination(url: SplitResult) -> Destination:
    """A URL that is a secret: its host is shown, with digits that tell it from others of that host."""
    whole = url.geturl()
    return Destination(f"{url.scheme}://{url.netloc}/#{secret_fingerprint(whole)}", whole)


def secret_fingerprint(secret: str) -> str:
    """Too short to find the secret by, long enough to tell two of them apart."""
    return hashlib.sha256(secret.encode()).hexdigest()[:8]


def readable_secret(delivery: Delivery) -> str:
    """Raises DeliveryError where the site's key has changed since: another attempt may read it."""
    secret = delivery.channel.secret
    if is_lost(secret):
        raise DeliveryError(
            "The channel's secret can't be read any more: manage.py secrets says how to set it."
        )
    if not secret:
        raise PermanentDeliveryError("The channel has no secret to post with: add it again.")
    return secret
