"""Alerts in Microsoft Teams: the webhook of a workflow, with an Adaptive Card.

The connectors of before, at webhook.office.com, are retired. A message may have 28 KB.
"""

from __future__ import annotations

import json
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
from dashboard.alerts.messages import (
    BETTER,
    NEUTRAL,
    WORSE,
    Message,
    Section,
    compose_message,
    escape_marks,
    fit_text,
)
from dashboard.models import Delivery

MOST_BYTES = 28 * 1024
MOST_TITLE, MOST_TEXT, MOST_FACT, MOST_LINE = 300, 3000, 500, 300
MOST_LINES = 12
COLOURS = {WORSE: "attention", BETTER: "good", NEUTRAL: "default"}
URL = KindField("url", "Webhook URL", "of the workflow “Send webhook alerts to a channel”", True)

# What the Markdown of a card's texts knows.
escape_teams = escape_marks("\\*_~`[]()<>#")


def read_teams_fields(written: Mapping[str, str]) -> Destination:
    url = read_secret_url(written, URL)
    if (url.hostname or "").endswith("webhook.office.com"):
        raise ChannelError(
            "Webhook URL is that of a connector, and Microsoft has retired those: make a workflow "
            "“Send webhook alerts to a channel” in Teams and take its URL.",
            URL.name,
        )
    if len(url.path) < 2:
        raise ChannelError("Webhook URL isn't that of a workflow: nothing stands behind its host.", URL.name)
    return secret_destination(url)


def send_teams(delivery: Delivery) -> None:
    """Raises DeliveryError or PermanentDeliveryError."""
    url = parse_webhook_url(readable_secret(delivery))
    post_to_service(url, teams_message(compose_message(delivery)), json_reason("code", "message"))


def teams_message(message: Message) -> dict[str, Any]:
    """A card without the lists, where it would be too large with them."""
    whole = teams_card(message, message.sections)
    if len(json.dumps(whole).encode()) > MOST_BYTES:
        whole = teams_card(message, ())
    return whole


def teams_card(message: Message, sections: tuple[Section, ...]) -> dict[str, Any]:
    title = _text_block(fit_text(message.title, MOST_TITLE, escape_teams))
    title |= {"size": "medium", "weight": "bolder", "color": COLOURS[message.tone]}
    body = [title, _text_block(fit_text(message.sentence, MOST_TEXT, escape_teams))]
    if message.facts:
        facts = [
            {"title": name, "value": fit_text(text, MOST_FACT, escape_teams)} for name, text in message.facts
        ]
        body.append({"type": "FactSet", "facts": facts})
    for section in sections:
        body += _section_blocks(section)
    if message.picture:
        image = {"type": "Image", "url": message.picture, "altText": message.picture_text, "size": "stretch"}
        body.append(image)
    content = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": body,
        "actions": [{"type": "Action.OpenUrl", "title": message.link.text, "url": message.link.url}],
        "msteams": {"width": "Full"},
    }
    card = {
        "contentType": "application/vnd.microsoft.card.adaptive",
        "contentUrl": None,
        "content": content,
    }
    return {"type": "message", "attachments": [card]}


def _text_block(text: str) -> dict[str, Any]:
    return {"type": "TextBlock", "text": text, "wrap": True}


def _section_blocks(section: Section) -> list[dict[str, Any]]:
    lines = []
    for number, line in enumerate(section.lines[:MOST_LINES], start=1):
        text = fit_text(line.text, MOST_LINE, escape_teams)
        mark = f"{number}." if section.ranked else "-"
        lines.append(f"{mark} [{text}]({line.url})" if line.url else f"{mark} {text}")
    if len(section.lines) > MOST_LINES:
        lines[-1] = f"- … and {len(section.lines) - MOST_LINES + 1} more"
    title = _text_block(fit_text(section.title, MOST_TITLE, escape_teams)) | {"weight": "bolder"}
    return [title, _text_block("\n".join(lines))]


KIND = ChannelKind("Microsoft Teams", (URL,), read_teams_fields, send_teams)
