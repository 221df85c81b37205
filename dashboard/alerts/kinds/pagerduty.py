"""Alerts in PagerDuty: an incident for each regression, by the Events API v2.

Limits by its reference: summary 1,024 letters, key 255, an event 512 KB.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urldefrag

from django.conf import settings

from dashboard.alerts.errors import ChannelError
from dashboard.alerts.kinds.channel_kind import (
    ChannelKind,
    Destination,
    KindField,
    read_url,
    readable_secret,
    required_text,
    secret_fingerprint,
)
from dashboard.alerts.kinds.http_exchange import json_reason, parse_webhook_url, post_to_service
from dashboard.alerts.messages import WORSE, Message, compose_message, fit_text
from dashboard.alerts.reported_states import ENDING_EVENTS
from dashboard.models import Channel, Delivery, Regression

MOST_SUMMARY, MOST_KEY, MOST_DETAIL = 1024, 255, 1000
ENDPOINTS = {
    "us": "https://events.pagerduty.com/v2/enqueue",
    "eu": "https://events.eu.pagerduty.com/v2/enqueue",
}
KEY = KindField("key", "Integration key", "of a service's integration “Events API v2”: 32 letters", True)
REGION = KindField(
    "region", "Service region", "as in your address of PagerDuty", choices=(("us", "US"), ("eu", "EU"))
)


def read_pagerduty_fields(written: Mapping[str, str]) -> Destination:
    key = required_text(written, KEY)
    if not re.fullmatch(r"[A-Za-z0-9]{32}", key):
        raise ChannelError("Integration key has 32 letters and digits.", KEY.name)
    region = written.get(REGION.name, "").strip() or "us"
    if region not in ENDPOINTS:
        raise ChannelError("Service region is us or eu.", REGION.name)
    read_url(ENDPOINTS[region], REGION.name)
    return Destination(f"{ENDPOINTS[region]}#{secret_fingerprint(key)}", key)


def write_region(channel: Channel) -> dict[str, str]:
    """The choices of a channel that is there; the first region for one that is still to be added."""
    endpoint = urldefrag(channel.address).url
    regions = [region for region, address in ENDPOINTS.items() if address == endpoint]
    return {REGION.name: regions[0] if regions else "us"}


def send_pagerduty(delivery: Delivery) -> None:
    """Raises DeliveryError or PermanentDeliveryError. A test opens an incident and ends it at once."""
    url = parse_webhook_url(urldefrag(delivery.channel.address).url)
    key = readable_secret(delivery)
    message = compose_message(delivery)
    actions = ["resolve"] if delivery.event in ENDING_EVENTS else ["trigger"]
    if delivery.event == Delivery.Event.TEST:
        actions = ["trigger", "resolve"]
    for action in actions:
        event = pagerduty_event(message, action, delivery.regression)
        post_to_service(url, {"routing_key": key, **event}, read_reason)


def read_reason(text: str) -> str:
    """`Event object is invalid`: its errors repeat what was sent, such as a wrong key."""
    return json_reason("message")(text)


def pagerduty_event(message: Message, action: str, regression: Regression | None) -> dict[str, Any]:
    """All events about one regression have one key, so that a later one ends what an earlier one opened."""
    host = parse_webhook_url(settings.PACELINE_URL).netloc
    event: dict[str, Any] = {
        "event_action": action,
        "dedup_key": f"paceline/{host}/{message.topic}"[:MOST_KEY],
    }
    if action == "resolve":
        return event
    event |= {
        "client": "Paceline",
        "client_url": message.link.url,
        "links": [{"href": message.link.url, "text": message.link.text}],
        "payload": {
            "summary": fit_text(message.sentence, MOST_SUMMARY),
            "source": message.project,
            "severity": incident_severity(message, regression),
            "custom_details": {name: fit_text(text, MOST_DETAIL) for name, text in message.facts},
        },
    }
    if regression is not None:
        series = regression.series
        names = {"component": str(series.case), "group": message.project, "class": series.metric.name}
        event["payload"] |= names
    # Its pages show pictures over TLS alone.
    if message.picture.startswith("https://"):
        picture = {"src": message.picture, "href": message.link.url, "alt": message.picture_text}
        event["images"] = [picture]
    return event


def incident_severity(message: Message, regression: Regression | None) -> str:
    if message.tone != WORSE:
        return "info"
    if regression is None:
        return "warning"
    return "error" if regression.state == Regression.State.CONFIRMED else "warning"


KIND = ChannelKind(
    "PagerDuty",
    (KEY, REGION),
    read_pagerduty_fields,
    send_pagerduty,
    write_choices=write_region,
    keeps_incidents=True,
)
