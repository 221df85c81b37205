"""A machine that has joined, and what it says to the site."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from dashboard import hosts, runs
from dashboard.models import Machine

Call = Callable[..., Any]


@pytest.fixture
def token(db: None) -> str:
    """That of the machine gpu-1 of the pool default."""
    return hosts.join_machine(hosts.create_join_code(runs.pool_named("default"), "Ada"), "gpu-1")[1]


@pytest.fixture
def machine(token: str) -> Machine:
    return Machine.objects.get(name="gpu-1")


@pytest.fixture
def call(client: Client, token: str) -> Call:
    """Sends a message, or bytes, to a call of the API as that machine: the status and the answer."""

    def send(path: str, message: Any = None, *, token: str = token, **headers: str) -> tuple[int, Any]:
        body = message if isinstance(message, bytes) else json.dumps(message or {}).encode()
        sent = {"Authorization": f"Bearer {token}", **headers}
        answer = client.post(f"/api/v1/host/{path}", body, content_type="application/json", headers=sent)
        return answer.status_code, answer.json()

    return send
