"""Alerts as a signed JSON request. docs/alerts.md tells receivers what comes and how to check it."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from collections.abc import Mapping

from dashboard.alerts.errors import DeliveryError
from dashboard.alerts.kinds.channel_kind import (
    LONGEST_ADDRESS,
    ChannelKind,
    Destination,
    KindField,
    read_url,
    required_text,
)
from dashboard.alerts.kinds.http_exchange import exchange_request, parse_webhook_url, refuse_answer
from dashboard.alerts.kinds.payload import alert_payload
from dashboard.models import Delivery
from dashboard.secrets import is_lost

ADDRESS = KindField("address", "URL", f"requests are signed; at most {LONGEST_ADDRESS} letters")


def read_webhook_fields(written: Mapping[str, str]) -> Destination:
    address = required_text(written, ADDRESS)
    read_url(address, ADDRESS.name)
    return Destination(address)


def send_webhook(delivery: Delivery) -> None:
    """Raises DeliveryError where no 2xx came back, PermanentDeliveryError where the address isn't allowed."""
    if is_lost(delivery.channel.secret):
        raise DeliveryError(
            "The channel's secret can't be read any more: manage.py secrets says how to set it."
        )
    body = json.dumps(alert_payload(delivery), ensure_ascii=False, separators=(",", ":")).encode()
    url = parse_webhook_url(delivery.channel.address)
    answer = exchange_request(url, body, request_headers(delivery, body))
    if not answer.is_taken:
        # A receiver of one's own may be mended: no status is final.
        refuse_answer(url, answer, final=False)


def request_headers(delivery: Delivery, body: bytes) -> dict[str, str]:
    timestamp = str(int(time.time()))
    event = f"regression.{delivery.event}" if delivery.regression_id else delivery.event
    if delivery.claim_measurement_id:
        event = delivery.event.replace("_", ".", 1)
    return {
        "Content-Type": "application/json",
        "User-Agent": "Paceline",
        "Paceline-Event": event,
        "Paceline-Delivery": str(delivery.pk),
        "Paceline-Timestamp": timestamp,
        "Paceline-Signature": "sha256=" + sign_body(delivery.channel.secret, timestamp, body),
    }


def sign_body(secret: str, timestamp: str, body: bytes) -> str:
    """HMAC-SHA256, in hex, over the timestamp, a full stop and the body."""
    return hmac.new(secret.encode(), f"{timestamp}.".encode() + body, hashlib.sha256).hexdigest()


KIND = ChannelKind(
    "Webhook", (ADDRESS,), read_webhook_fields, send_webhook, shows_pictures=False, makes_secret=True
)
