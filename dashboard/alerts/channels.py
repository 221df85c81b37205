"""Adding a channel: what can't work is refused before it is stored."""

from __future__ import annotations

import math
import secrets

from django.core.exceptions import ValidationError
from django.core.validators import validate_email

from dashboard.alerts import webhook
from dashboard.alerts.addresses import resolve_public_address
from dashboard.alerts.errors import DeliveryError, PermanentDeliveryError
from dashboard.models import Channel, Project
from dashboard.secrets import is_lost


class ChannelError(Exception):
    """The channel can't be added; the message is one sentence for people."""


def add_channel(
    project: Project,
    kind: str,
    address: str,
    minimum_percent: float = 0.0,
    *,
    suspicions: bool = False,
    renew_secret: bool = False,
) -> tuple[Channel, bool]:
    """The channel, and whether its secret is new; one that exists takes what is given and is turned on.

    A webhook has a secret of its own, made anew where it is asked for or lost. Raises ChannelError.
    """
    if not (math.isfinite(minimum_percent) and minimum_percent >= 0):
        raise ChannelError(f"minimum-percent must be 0 or more, not {minimum_percent:g}.")
    CHECKS[Channel.Kind(kind)](address)
    values = {"minimum_percent": minimum_percent, "suspicions": suspicions, "enabled": True}
    secret = secrets.token_urlsafe(32) if kind == Channel.Kind.WEBHOOK else ""
    channel, new = Channel.objects.update_or_create(
        project=project,
        kind=kind,
        address=address,
        defaults=values,
        create_defaults={**values, "secret": secret},
    )
    if secret and not new and (renew_secret or is_lost(channel.secret)):
        channel.secret, new = secret, True
        channel.save(update_fields=["secret"])
    return channel, new


def check_email(address: str) -> None:
    try:
        validate_email(address)
    except ValidationError as error:
        raise ChannelError(f"{address!r} is not an e-mail address.") from error


def check_webhook(address: str) -> None:
    if len(address) > 500:
        raise ChannelError("The webhook's URL is longer than 500 characters.")
    try:
        url = webhook.parse_webhook_url(address)
        resolve_public_address(url.hostname or "", url.port or webhook.DEFAULT_PORTS[url.scheme])
    except PermanentDeliveryError as error:
        raise ChannelError(str(error)) from error
    except DeliveryError:
        return  # A receiver may get its name later; each delivery looks it up again.


CHECKS = {Channel.Kind.EMAIL: check_email, Channel.Kind.WEBHOOK: check_webhook}
