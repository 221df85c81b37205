from __future__ import annotations

import json
import time
from typing import Any
from uuid import uuid4

import pytest
from django.http import HttpResponse
from django.test import Client

from dashboard.forges.signatures import digest_hex
from dashboard.models import Project

COMMIT = "a" * 40


@pytest.fixture
def polled(tracked: Project) -> Project:
    tracked.poll_minutes = 5
    tracked.save()
    return tracked


class Hook:
    """Sends what the hook of a project would send, with parts of it changed."""

    def __init__(self, client: Client, project: Project) -> None:
        self.client, self.project = client, project

    def body(self, **changes: Any) -> bytes:
        whole = {
            "delivery": uuid4().hex,
            "timestamp": int(time.time()),
            "ref": "refs/heads/main",
            "commit": COMMIT,
            "before": "",
        }
        return json.dumps({**whole, **changes}).encode()

    def send(
        self, body: bytes | None = None, *, signature: str | None = None, slug: str = "snakes", **changes: Any
    ) -> HttpResponse:
        data = self.body(**changes) if body is None else body
        signature = signature or f"sha256={digest_hex(self.project.hook_secret, data)}"
        return self.client.post(
            f"/hooks/{slug}/",
            data,
            content_type="application/json",
            headers={"Paceline-Signature": signature},
        )


@pytest.fixture
def hook(client: Client, project: Project) -> Hook:
    return Hook(Client(enforce_csrf_checks=True), project)
