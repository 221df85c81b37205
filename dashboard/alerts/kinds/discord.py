"""Alerts in Discord: a webhook, laid out as an embed.

Limits by Discord's reference of embeds: title 256 letters, description 4,096, 25 fields of 256 and 1,024,
footer 2,048, 6,000 in all.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from dashboard.alerts.errors import ChannelError
from dashboard.alerts.kinds.channel_kind import (
    ChannelKind,
    Destination,
    KindField,
    read_secret_url,
    readable_secret,
    secret_destination,
)
from dashboard.alerts.kinds.http_exchange import json_reason, parse_webhook_url, post_to_service
from dashboard.alerts.messages import Message, Section, compose_message, escape_marks, fit_text
from dashboard.models import Delivery

MOST_TITLE, MOST_NAME, MOST_VALUE, MOST_FIELDS = 256, 256, 1024, 25
# Of 6,000 in all, so that the sum of what is shown stays below it.
SENTENCE_ROOM, FACT_ROOM, SECTION_ROOM = 1500, 200, 700
MOST_LINES = 8
PATH = re.compile(r"/api(/v\d+)?/webhooks/\d+/[\w-]+")
URL = KindField("url", "Webhook URL", "https://discord.com/api/webhooks/…, of a channel's integrations", True)

escape_discord = escape_marks("\\*_~`|<>[]()#@")


def read_discord_fields(written: Mapping[str, str]) -> Destination:
    url = read_secret_url(written, URL)
    if not PATH.fullmatch(url.path):
        raise ChannelError(
            "Webhook URL isn't one of Discord's: https://discord.com/api/webhooks/NUMBER/TOKEN is.", URL.name
        )
    return secret_destination(url)


def send_discord(delivery: Delivery) -> None:
    """Raises DeliveryError or PermanentDeliveryError."""
    url = parse_webhook_url(readable_secret(delivery))
    post_to_service(url, discord_message(compose_message(delivery)), json_reason("message"))


def discord_message(message: Message) -> dict[str, Any]:
    """Nobody is mentioned, whatever a commit's subject holds."""
    embed: dict[str, Any] = {
        "title": fit_text(message.title, MOST_TITLE, escape_discord),
        "url": message.link.url,
        "description": fit_text(message.sentence, SENTENCE_ROOM, escape_discord),
        "color": message.colour,
        "fields": [_discord_fact(*fact) for fact in message.facts]
        + [_discord_section(section) for section in message.sections],
    }
    if message.picture:
        embed["image"] = {"url": message.picture}
    return {"embeds": [embed], "allowed_mentions": {"parse": []}}


def _discord_fact(name: str, text: str) -> dict[str, Any]:
    return {"name": name, "value": fit_text(text, FACT_ROOM, escape_discord), "inline": True}


def _discord_section(section: Section) -> dict[str, Any]:
    room = SECTION_ROOM // MOST_LINES
    lines = []
    for number, line in enumerate(section.lines[:MOST_LINES], start=1):
        mark = f"{number}. " if section.ranked else "• "
        text = fit_text(line.text, room, escape_discord)
        lines.append(f"{mark}[{text}]({line.url})" if line.url else f"{mark}{text}")
    if len(section.lines) > MOST_LINES:
        lines[-1] = f"… and {len(section.lines) - MOST_LINES + 1} more"
    while len("\n".join(lines)) > MOST_VALUE:
        lines.pop()
    return {"name": fit_text(section.title, MOST_NAME, escape_discord), "value": "\n".join(lines)}


KIND = ChannelKind("Discord", (URL,), read_discord_fields, send_discord)
