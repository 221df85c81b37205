"""docs/alerts.md shows what is really sent, and its receiver's code really checks it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

from dashboard import alerts
from dashboard.alerts.kinds.payload import alert_payload
from dashboard.models import Delivery, Regression
from tests.dashboard.alerts.sinks import HttpSink

PAGE = Path(__file__).resolve().parents[3] / "docs" / "alerts.md"
Make = Callable[..., Delivery]


def code_block(language: str) -> str:
    block = re.search(rf"```{language}\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert block, language
    return block[1]


@pytest.fixture
def body(make_delivery: Make, settings: Settings) -> dict[str, Any]:
    """A body whose numbers don't depend on the database."""
    settings.PACELINE_URL = "https://pace.example.org"
    delivery = make_delivery("email", "a@example.org")
    delivery.pk, delivery.regression.pk = 7, 3
    delivery.created_at = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
    return alert_payload(delivery)


def test_the_example_is_what_is_sent(body: dict[str, Any]) -> None:
    assert json.loads(code_block("json")) == body, json.dumps(body, indent=2, ensure_ascii=False)


def test_every_member_is_described(body: dict[str, Any]) -> None:
    names = [name for name in body if name != "regression"]
    names += [f"regression.{name}" for name in body["regression"]]
    text = PAGE.read_text()
    assert [name for name in names if f"`{name}`" not in text] == []


def test_the_receivers_code_accepts_what_is_sent(make_delivery: Make, receiver: HttpSink) -> None:
    names: dict[str, Callable[..., bool]] = {}
    exec(code_block("python"), names)  # noqa: S102 - the code under test stands in the page
    alerts.attempt_delivery(make_delivery("webhook", receiver.url, secret="shared").pk)
    request = receiver.requests[0]
    assert names["is_genuine"]("shared", request.headers, request.body)
    assert not names["is_genuine"]("another", request.headers, request.body)
    assert not names["is_genuine"]("shared", request.headers, request.body + b" ")


def test_the_figures_of_the_page_are_those_of_the_code() -> None:
    text = PAGE.read_text()
    assert f"after {Delivery.MOST_ATTEMPTS} attempts" in text
    assert all(f"| {state} |" in text for state in Delivery.State.values)
    assert all(f"`{state}`" in text for state in Regression.State.values)
