"""Alerts in Slack: an incoming webhook, laid out in blocks.

Limits by Slack's reference of Block Kit: 50 blocks; header 150 letters, section 3,000, fields 10 of 2,000,
context 2,000, button 75, alternative text 2,000.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from dashboard.alerts.errors import ChannelError, PermanentDeliveryError
from dashboard.alerts.kinds.channel_kind import (
    ChannelKind,
    Destination,
    KindField,
    read_secret_url,
    readable_secret,
    secret_destination,
)
from dashboard.alerts.kinds.http_exchange import parse_webhook_url, post_to_service, readable_reason
from dashboard.alerts.messages import Message, Section, compose_message, fit_text
from dashboard.models import Delivery

MOST_HEADER, MOST_SECTION, MOST_FIELD, MOST_FIELDS = 150, 3000, 2000, 10
MOST_BUTTON, MOST_ALT = 75, 2000
MOST_LINES = 12
PATH = re.compile(r"/(services|workflows|triggers)/.+")
URL = KindField("url", "Webhook URL", "https://hooks.slack.com/services/…, of an incoming webhook", True)


def read_slack_fields(written: Mapping[str, str]) -> Destination:
    url = read_secret_url(written, URL)
    if not PATH.fullmatch(url.path):
        raise ChannelError(
            "Webhook URL isn't one of Slack's: https://hooks.slack.com/services/… is.", URL.name
        )
    return secret_destination(url)


def send_slack(delivery: Delivery) -> None:
    """Raises DeliveryError or PermanentDeliveryError."""
    url = parse_webhook_url(readable_secret(delivery))
    message = compose_message(delivery)
    try:
        post_to_service(url, slack_message(message), readable_reason)
    except PermanentDeliveryError as error:
        # Slack refuses a message whose picture it can't fetch, as from a site inside a company.
        if not (message.picture and "invalid_" in str(error)):
            raise
        post_to_service(url, slack_message(message, pictured=False), readable_reason)


def slack_message(message: Message, *, pictured: bool = True) -> dict[str, Any]:
    """`text` is what notifications show."""
    blocks: list[dict[str, Any]] = [
        {"type": "header", "text": {"type": "plain_text", "text": fit_text(message.title, MOST_HEADER)}},
        {"type": "section", "text": _marked_text(fit_text(message.sentence, MOST_SECTION, escape_slack))},
    ]
    if message.facts:
        facts = [_slack_fact(*fact) for fact in message.facts[:MOST_FIELDS]]
        blocks.append({"type": "section", "fields": facts})
    blocks += [_slack_section(section) for section in message.sections]
    if message.picture and pictured:
        alt = fit_text(message.picture_text, MOST_ALT)
        blocks.append({"type": "image", "image_url": message.picture, "alt_text": alt})
    label = {"type": "plain_text", "text": fit_text(message.link.text, MOST_BUTTON)}
    button = {"type": "button", "text": label, "url": message.link.url, "action_id": "open"}
    blocks.append({"type": "actions", "elements": [button]})
    return {"text": fit_text(message.title, MOST_SECTION, escape_slack), "blocks": blocks}


def _marked_text(text: str) -> dict[str, Any]:
    """`verbatim`: names and addresses in it aren't made into links or mentions."""
    return {"type": "mrkdwn", "text": text, "verbatim": True}


def _slack_fact(name: str, text: str) -> dict[str, Any]:
    return _marked_text(f"*{name}*\n{fit_text(text, MOST_FIELD - len(name) - 3, escape_slack)}")


def _slack_section(section: Section) -> dict[str, Any]:
    lines = [f"*{fit_text(section.title, MOST_BUTTON, escape_slack)}*"]
    room = (MOST_SECTION - len(lines[0])) // MOST_LINES - 1
    for number, line in enumerate(section.lines[:MOST_LINES], start=1):
        mark = f"{number}. " if section.ranked else "• "
        around = len(f"{mark}<{line.url}|>")
        text = fit_text(line.text, room - around, escape_slack)
        lines.append(f"{mark}<{line.url}|{text}>" if line.url else f"{mark}{text}")
    if len(section.lines) > MOST_LINES:
        lines[-1] = f"… and {len(section.lines) - MOST_LINES + 1} more"
    return {"type": "section", "text": _marked_text("\n".join(lines))}


def escape_slack(letter: str) -> str:
    """The three letters by which links and mentions begin."""
    return {"&": "&amp;", "<": "&lt;", ">": "&gt;"}.get(letter, letter)


KIND = ChannelKind("Slack", (URL,), read_slack_fields, send_slack)
