from __future__ import annotations

import hashlib
import hmac
import time
from io import BytesIO
from typing import Any

import pytest
from django.test import Client

from dashboard.models import Project, Trigger
from tests.dashboard.triggers.conftest import COMMIT, Hook

pytestmark = pytest.mark.django_db


def test_a_signed_request_becomes_a_trigger(hook: Hook, project: Project) -> None:
    response = hook.send()
    trigger = Trigger.objects.get()
    assert (response.status_code, response.json()) == (202, {"trigger": trigger.pk})
    assert (trigger.project, trigger.source, trigger.revisions) == (project, "hook", {"commit": COMMIT})


def test_a_push_asks_for_all_of_its_commits(hook: Hook) -> None:
    hook.send(before="b" * 40)
    assert Trigger.objects.get().revisions == {"range": f"{'b' * 40}..{COMMIT}"}


def test_the_signature_is_a_plain_hmac(hook: Hook, project: Project) -> None:
    body = hook.body()
    digest = hmac.new(b"a secret", body, hashlib.sha256).hexdigest()
    assert hook.send(body, signature=f"sha256={digest}").status_code == 202


@pytest.mark.parametrize("signature", ["sha256=" + "0" * 64, "nonsense", "sha256=ü", "sha1=abc"])
def test_a_wrong_signature_is_refused(hook: Hook, signature: str) -> None:
    response = hook.send(signature=signature)
    assert response.status_code == 401
    assert "Paceline-Signature" in response.json()["error"]
    assert not Trigger.objects.exists()


def test_a_request_without_a_signature_is_refused(hook: Hook) -> None:
    response = hook.client.post("/hooks/snakes/", hook.body(), content_type="application/json")
    assert response.status_code == 401


def test_a_changed_body_is_refused(hook: Hook) -> None:
    body = hook.body()
    signature = hmac.new(b"a secret", body, hashlib.sha256).hexdigest()
    assert hook.send(body + b" ", signature=f"sha256={signature}").status_code == 401


def test_a_delivery_has_its_effect_once(hook: Hook) -> None:
    body = hook.body()
    assert hook.send(body).status_code == 202
    response = hook.send(body)
    assert (response.status_code, response.json()) == (200, {"message": "This delivery was received before."})
    assert Trigger.objects.count() == 1


@pytest.mark.parametrize("off", [-400, 400])
def test_an_old_or_early_request_is_refused(hook: Hook, off: int) -> None:
    response = hook.send(timestamp=int(time.time()) + off)
    assert response.status_code == 401
    assert "check the clock" in response.json()["error"]


def test_a_request_that_ends_before_its_body_is_refused(hook: Hook) -> None:
    class Cut(BytesIO):
        def read(self, *_: Any) -> bytes:
            raise OSError("connection reset")

    answer = hook.client.generic("POST", "/hooks/snakes/", b"x" * 9, **{"wsgi.input": Cut()})
    assert (answer.status_code, "ended before its body" in answer.json()["error"]) == (400, True)


def test_a_large_body_is_refused(hook: Hook) -> None:
    assert hook.send(b" " * 20_000).status_code == 413


def test_an_unknown_project_is_refused(hook: Hook) -> None:
    response = hook.send(slug="nobody")
    told = hook.send(signature="sha256=" + "0" * 64)
    assert (response.status_code, response.content) == (401, told.content)


def test_only_post_is_answered(client: Client, project: Project) -> None:
    response = client.get("/hooks/snakes/")
    assert (response.status_code, response["Allow"]) == (405, "POST")


def test_a_project_without_a_secret_takes_no_hook(hook: Hook, project: Project) -> None:
    Project.objects.update(hook_secret="")
    project.hook_secret = ""
    assert hook.send().status_code == 401


def test_another_branch_is_not_measured(hook: Hook) -> None:
    response = hook.send(ref="refs/heads/topic")
    assert (response.status_code, response.json()) == (202, {"ignored": "Only refs/heads/main is measured."})
    assert not Trigger.objects.exists()


@pytest.mark.parametrize(
    "changes",
    [
        {"commit": "HEAD"},
        {"commit": "--output=/tmp/x"},
        {"before": "short"},
        {"timestamp": "now"},
        {"timestamp": 1e300},
        {"timestamp": 10**400},
        {"delivery": "x"},
        {"delivery": None},
        {"extra": 1},
    ],
)
def test_a_wrong_field_is_refused(hook: Hook, changes: dict[str, Any]) -> None:
    assert hook.send(**changes).status_code == 400
    assert not Trigger.objects.exists()


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"\xff", b"[" * 10_000])
def test_garbage_with_a_signature_is_refused(hook: Hook, body: bytes) -> None:
    assert hook.send(body).status_code == 400
