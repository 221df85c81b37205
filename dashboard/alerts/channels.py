"""Adding a channel and changing it: what can't work is refused before it is stored."""

from __future__ import annotations

import math
import secrets
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from django.db import IntegrityError, transaction

from dashboard.alerts.delivering import send_missed
from dashboard.alerts.errors import ChannelError
from dashboard.alerts.kinds import KINDS
from dashboard.models import Channel, Project
from dashboard.secrets import is_lost


def add_channel(
    project: Project,
    kind: str,
    address: str | Mapping[str, str],
    minimum_percent: float = 0.0,
    *,
    suspicions: bool = False,
    renew_secret: bool = False,
    name: str = "",
) -> tuple[Channel, bool]:
    """The channel, and whether its secret is new; one that exists takes what is given and is turned on.

    `address` is an e-mail address or a URL, or the texts of the kind's fields. Raises ChannelError.
    """
    if not (math.isfinite(minimum_percent) and minimum_percent >= 0):
        raise ChannelError(f"minimum-percent must be 0 or more, not {minimum_percent:g}.", "minimum_percent")
    if isinstance(address, str):
        address = {KINDS[kind].fields[0].name: address}
    values: dict[str, Any] = {"minimum_percent": minimum_percent, "suspicions": suspicions, "enabled": True}
    if name:
        values["name"] = name
    return store_channel(project, kind, address, values, renew_secret=renew_secret)


def store_channel(
    project: Project,
    kind: str,
    written: Mapping[str, str],
    values: Mapping[str, Any],
    *,
    renew_secret: bool = False,
    only_new: bool = False,
) -> tuple[Channel, bool]:
    """As `add_channel`, with the values of any columns; `only_new` refuses a channel that exists."""
    made = KINDS[kind]
    to = made.read_fields(written)
    secret = secrets.token_urlsafe(32) if made.makes_secret else to.secret
    channel, new = Channel.objects.get_or_create(
        project=project, kind=kind, address=to.address, defaults={**values, "secret": secret}
    )
    if new:
        return channel, True
    if only_new:
        raise ChannelError(f"{project} has this channel already.", made.fields[0].name)
    changed = dict(values)
    # What its owner makes anew elsewhere, such as a token, comes in with the same address.
    renewed = renew_secret or is_lost(channel.secret) or not made.makes_secret
    if renewed:
        changed["secret"] = secret
    update_channel(channel, changed)
    return channel, renewed and made.makes_secret


# Whoever changes these alone hasn't mended what was wrong; a new secret its receiver has to learn first.
NO_REPAIR = {"muted_until", "secret"}


def update_channel(channel: Channel, values: Mapping[str, Any]) -> None:
    """What was given up before is sent, should it be the settings that were wrong."""
    if values:
        _store_values(channel, values)
        if not values.keys() <= NO_REPAIR:
            send_missed(channel)


def _store_values(channel: Channel, values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        setattr(channel, name, value)
    channel.save(update_fields=list(values))


def change_destination(channel: Channel, written: Mapping[str, str]) -> None:
    """Lead a channel elsewhere, where its fields are typed or others are chosen; what is empty stays.

    Its rules, its log and its messages stay. Raises ChannelError.
    """
    made = KINDS[channel.kind]
    kept = made.write_choices(channel)
    chosen = {name: written.get(name, "").strip() or choice for name, choice in kept.items()}
    if any(written.get(field.name) for field in made.fields if not field.choices):
        _replace_destination(channel, {**written, **chosen})
    elif chosen != kept:
        secrets_kept = {field.name: channel.secret for field in made.fields if field.secret}
        _replace_destination(channel, {**written, **secrets_kept, **chosen})


def _replace_destination(channel: Channel, written: Mapping[str, str]) -> None:
    made = KINDS[channel.kind]
    to = made.read_fields(written)
    values = {"address": to.address}
    if not made.makes_secret:
        values["secret"] = to.secret
    try:
        with transaction.atomic():
            _store_values(channel, values)
    except IntegrityError as error:
        raise ChannelError(f"{channel.project} has this channel already.", made.fields[0].name) from error


def recorded_address(channel: Channel) -> str:
    """What the audit log says of its address: of a URL the host alone, the rest may be a secret."""
    return urlsplit(channel.address).hostname or channel.address
