"""Alerts in Mattermost: an incoming webhook with a message attachment.

A post holds 16,383 letters; what is longer than some lines is folded, so that ours stay far below.
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

MOST_TITLE, MOST_TEXT, MOST_VALUE, MOST_LINE = 300, 4000, 500, 300
MOST_LINES = 12
PATH = re.compile(r"(/.+)?/hooks/\w+")
URL = KindField("url", "Webhook URL", "https://mattermost.example.org/hooks/…", True)

_escape_marks = escape_marks("\\*_~`|<>[]()#!")


def read_mattermost_fields(written: Mapping[str, str]) -> Destination:
    url = read_secret_url(written, URL)
    if not PATH.fullmatch(url.path):
        raise ChannelError("Webhook URL isn't one of Mattermost's: https://SERVER/hooks/KEY is.", URL.name)
    return secret_destination(url)


def send_mattermost(delivery: Delivery) -> None:
    """Raises DeliveryError or PermanentDeliveryError."""
    url = parse_webhook_url(readable_secret(delivery))
    post_to_service(url, mattermost_message(compose_message(delivery)), json_reason("message"))


def mattermost_message(message: Message) -> dict[str, Any]:
    text = [fit_text(message.sentence, MOST_TEXT, escape_mattermost)]
    text += [_mattermost_section(section) for section in message.sections]
    attachment: dict[str, Any] = {
        "fallback": fit_text(f"{message.title} {message.link.url}", MOST_TITLE, escape_mention),
        "color": f"#{message.colour:06X}",
        "title": fit_text(message.title, MOST_TITLE, escape_mention),
        "title_link": message.link.url,
        "text": "\n\n".join(text),
        "fields": [_mattermost_fact(*fact) for fact in message.facts],
    }
    if message.picture:
        attachment["image_url"] = message.picture
    return {"attachments": [attachment]}


def _mattermost_fact(name: str, text: str) -> dict[str, Any]:
    return {"title": name, "value": fit_text(text, MOST_VALUE, escape_mattermost), "short": True}


def _mattermost_section(section: Section) -> str:
    lines = [f"**{fit_text(section.title, MOST_LINE, escape_mattermost)}**"]
    for number, line in enumerate(section.lines[:MOST_LINES], start=1):
        mark = f"{number}. " if section.ranked else "* "
        text = fit_text(line.text, MOST_LINE, escape_mattermost)
        lines.append(f"{mark}[{text}]({line.url})" if line.url else f"{mark}{text}")
    if len(section.lines) > MOST_LINES:
        lines[-1] = f"… and {len(section.lines) - MOST_LINES + 1} more"
    return "\n".join(lines)


def escape_mention(letter: str) -> str:
    """A letter without width keeps `@all` from calling everybody: no backslash does."""
    return "@\u200b" if letter == "@" else letter


def escape_mattermost(letter: str) -> str:
    return escape_mention(_escape_marks(letter))


KIND = ChannelKind("Mattermost", (URL,), read_mattermost_fields, send_mattermost)
