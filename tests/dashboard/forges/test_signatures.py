from __future__ import annotations

import json
import time
from urllib.parse import urlencode

import pytest

from dashboard.forges.deliveries import LARGEST_BODY, read_delivery
from dashboard.forges.errors import ForgeError
from dashboard.forges.events import PingEvent, PushEvent
from tests.dashboard.forges.payloads import (
    EXAMPLES,
    SECRET,
    Sender,
    deliver_example,
    read_example,
    signed_by_gitlab,
)

BODY = json.dumps(read_example("gitlab/push")).encode()
SIGNATURES = {
    "github": "X-Hub-Signature-256",
    "gitlab": "X-Gitlab-Token",
    "gitea": "X-Gitea-Signature",
    "bitbucket": "X-Hub-Signature",
}


def expect_refusal(kind: str, headers: dict[str, str], body: bytes, secret: str = SECRET) -> tuple[int, str]:
    with pytest.raises(ForgeError) as caught:
        read_delivery(kind, headers, body, secret)
    return caught.value.status, str(caught.value)


@pytest.mark.parametrize("kind", SIGNATURES)
@pytest.mark.parametrize("wrong", ["", "sha256=" + "0" * 64, "nonsense", "sha256=ü", "\udcff"])
def test_a_wrong_signature_is_refused(kind: str, wrong: str) -> None:
    headers = Sender(kind).headers("push", b"{}") | {SIGNATURES[kind]: wrong}
    status, sentence = expect_refusal(kind, headers, b"{}")
    assert status == 401
    assert SIGNATURES[kind] in sentence


@pytest.mark.parametrize("kind", ["github", "gitea", "bitbucket"])
def test_a_changed_body_is_refused(kind: str) -> None:
    assert expect_refusal(kind, Sender(kind).headers("push", b"{}"), b"{} ")[0] == 401


@pytest.mark.parametrize("kind", SIGNATURES)
def test_without_a_secret_nothing_is_taken(kind: str) -> None:
    headers = Sender(kind, "").headers("push", b"{}")
    assert expect_refusal(kind, headers, b"{}", "") == (401, "No delivery is taken without a secret.")


def test_what_is_too_large_is_not_even_looked_at() -> None:
    assert expect_refusal("github", {}, b" " * (LARGEST_BODY + 1))[0] == 413


def test_the_newer_signature_of_gitlab_holds() -> None:
    delivery = read_delivery("gitlab", signed_by_gitlab(BODY), BODY, SECRET)
    assert isinstance(delivery.event, PushEvent)
    plain = "a secret that is no signing token"
    assert read_delivery("gitlab", signed_by_gitlab(BODY, secret=plain), BODY, plain).events


def test_a_wrong_newer_signature_is_not_saved_by_the_token() -> None:
    headers = {**signed_by_gitlab(BODY), "X-Gitlab-Token": SECRET}
    assert expect_refusal("gitlab", headers, BODY + b" ")[0] == 401


@pytest.mark.parametrize("off", [-400, 400])
def test_an_old_or_early_signature_is_refused(off: int) -> None:
    status, sentence = expect_refusal("gitlab", signed_by_gitlab(BODY, stamp=time.time() + off), BODY)
    assert (status, sentence.endswith("check the clock.")) == (401, True)


def test_forgejo_signs_in_its_own_name() -> None:
    body = json.dumps(read_example("gitea/push")).encode()
    headers = Sender("gitea").headers("push", body)
    signature = headers.pop("X-Gitea-Signature")
    own = {**headers, "X-Forgejo-Event": "push", "X-Forgejo-Signature": signature}
    assert isinstance(read_delivery("gitea", own, body, SECRET).event, PushEvent)
    assert (
        expect_refusal("gitea", {**own, "X-Forgejo-Signature": "0", "X-Gitea-Signature": signature}, body)[0]
        == 401
    )


def test_a_form_holds_the_payload_too() -> None:
    body = urlencode({"payload": json.dumps(read_example("github/ping"))}).encode()
    headers = Sender("github").headers("ping", body) | {"Content-Type": "application/x-www-form-urlencoded"}
    assert read_delivery("github", headers, body, SECRET).event == PingEvent()


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{", b"\xff", b"[" * 100_000, b'{"a":' + b"1" * 5000 + b"}", b"null"]
)
@pytest.mark.parametrize("form", ["application/json", "application/x-www-form-urlencoded"])
def test_garbage_with_a_signature_is_refused(body: bytes, form: str) -> None:
    headers = Sender("github").headers("push", body) | {"Content-Type": form}
    assert expect_refusal("github", headers, body)[0] == 400


@pytest.mark.parametrize("name", ["gitlab/push", "bitbucket/repo-push"])
def test_a_delivery_without_an_identity_is_refused(name: str) -> None:
    kind = name.partition("/")[0]
    body = json.dumps(read_example(name)).encode()
    headers = Sender(kind).headers(EXAMPLES[name], body)
    kept = {
        key: value
        for key, value in headers.items()
        if not key.endswith(("UUID", "Key", "key")) or "Event" in key
    }
    kept.pop("X-Gitlab-Event-UUID", None)
    assert expect_refusal(kind, kept, body)[0] == 400


def test_the_identity_of_a_body_stays_whatever_an_unsigned_header_says() -> None:
    first, second = deliver_example("github/ping"), deliver_example("github/ping")
    assert first.identity == second.identity
    assert deliver_example("github/ping", zen="Another").identity != first.identity
