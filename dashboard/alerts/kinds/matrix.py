"""Alerts in Matrix: one message to a room, by the client-server API.

An event may have 65,536 bytes. The transaction's id makes an attempt after a lost answer the same message.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from dashboard.alerts.errors import ChannelError
from dashboard.alerts.kinds.channel_kind import (
    ChannelKind,
    Destination,
    KindField,
    read_url,
    readable_secret,
    required_text,
)
from dashboard.alerts.kinds.http_exchange import json_reason, parse_webhook_url, post_to_service
from dashboard.alerts.messages import Message, Section, compose_message, fit_text
from dashboard.models import Delivery

MOST_BODY, MOST_HTML_PART, MOST_LINES = 15_000, 3000, 8
ROOM_ID = re.compile(r"![^\s/\"<>?#]+")
SERVER = KindField("server", "Homeserver", "https://matrix.example.org")
ROOM = KindField("room", "Room id", "!…:example.org, from the room's advanced settings")
TOKEN = KindField("token", "Access token", "of an account that is in the room", True)


def read_matrix_fields(written: Mapping[str, str]) -> Destination:
    server = required_text(written, SERVER).rstrip("/")
    url = read_url(server, SERVER.name)
    if url.path or url.query or url.fragment:
        raise ChannelError("Homeserver has no path: https://matrix.example.org.", SERVER.name)
    room = required_text(written, ROOM)
    if not ROOM_ID.fullmatch(room):
        raise ChannelError("Room id begins with ! and is no name: !abc123:example.org.", ROOM.name)
    token = required_text(written, TOKEN)
    if not token.isascii() or any(letter <= " " for letter in token):
        raise ChannelError("Access token holds a character that no token has.", TOKEN.name)
    return Destination(f"{server}/{room}", token)


def send_matrix(delivery: Delivery) -> None:
    """Raises DeliveryError or PermanentDeliveryError."""
    token = readable_secret(delivery)
    server, _, room = delivery.channel.address.rpartition("/")
    path = f"/_matrix/client/v3/rooms/{quote(room, safe='')}/send/m.room.message/{transaction_id(delivery)}"
    post_to_service(
        parse_webhook_url(server + path),
        matrix_message(compose_message(delivery)),
        json_reason("errcode", "error"),
        method="PUT",
        headers={"Authorization": f"Bearer {token}"},
    )


def transaction_id(delivery: Delivery) -> str:
    """The same at each attempt, and no other delivery's: numbers begin again in a restored database."""
    moment = delivery.created_at.strftime("%Y%m%d%H%M%S%f")
    return f"paceline-{delivery.pk}-{moment}"


def matrix_message(message: Message) -> dict[str, Any]:
    """`m.mentions` is empty: nobody is called by what a commit's subject holds."""
    facts = "".join(f"\n{name}: {text}" for name, text in message.facts)
    return {
        "msgtype": "m.text",
        "body": fit_text(message.plain_text + facts, MOST_BODY),
        "format": "org.matrix.custom.html",
        "formatted_body": matrix_html(message),
        "m.mentions": {},
    }


def matrix_html(message: Message) -> str:
    """Of the elements that the specification lets clients show."""
    parts = [
        f"<strong>{escape_html(message.title)}</strong>",
        f"<p>{escape_html(message.sentence)}</p>",
    ]
    if message.facts:
        rows = "".join(f"<li>{name}: {escape_html(text)}</li>" for name, text in message.facts)
        parts.append(f"<ul>{rows}</ul>")
    parts += [_html_section(section) for section in message.sections]
    parts.append(f'<p><a href="{html.escape(message.link.url)}">{escape_html(message.link.text)}</a></p>')
    return "".join(parts)


def _html_section(section: Section) -> str:
    items = "".join(
        f'<li><a href="{html.escape(line.url)}">{escape_html(line.text)}</a></li>'
        if line.url
        else f"<li>{escape_html(line.text)}</li>"
        for line in section.lines[:MOST_LINES]
    )
    kind = "ol" if section.ranked else "ul"
    return f"<p>{escape_html(section.title)}</p><{kind}>{items}</{kind}>"


def escape_html(text: str) -> str:
    return fit_text(text, MOST_HTML_PART, html.escape)


KIND = ChannelKind("Matrix", (SERVER, ROOM, TOKEN), read_matrix_fields, send_matrix, shows_pictures=False)
