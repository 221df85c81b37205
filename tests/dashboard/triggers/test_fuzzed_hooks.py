"""Whatever bytes and headers come in where hooks are received: an answer, never a failure of the site."""

from __future__ import annotations

import time
from contextlib import suppress
from copy import deepcopy
from typing import Any

import orjson
import pytest
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from dashboard.forges.signatures import digest_hex
from dashboard.models import Project, Trigger
from tests.dashboard.forges.payloads import EXAMPLES, change_field
from tests.dashboard.fuzzing import effects_taken_back, fuzz_settings
from tests.dashboard.triggers.conftest import COMMIT, Hook
from tests.dashboard.triggers.test_forge_hook import REPOSITORIES, Hooked, example_of_project

pytestmark = [pytest.mark.django_db, pytest.mark.timeout(3600)]

# What a forge sends is varied more where it is read: tests/dashboard/forges/test_mutations.py.
FUZZING = fuzz_settings(200, len(REPOSITORIES) + 1 + len(EXAMPLES))

# What a server lets through: no control characters, of Latin-1.
LATIN = st.characters(min_codepoint=32, max_codepoint=255, exclude_characters="\x7f")
HEADERS = st.dictionaries(
    st.sampled_from(
        (
            *("Paceline-Signature", "X-Hub-Signature-256", "X-GitHub-Event", "X-GitHub-Delivery"),
            *("X-Gitlab-Token", "X-Gitlab-Event", "X-Gitea-Signature", "X-Gitea-Event", "X-Event-Key"),
            *("X-Hub-Signature", "webhook-id", "webhook-timestamp", "webhook-signature", "Authorization"),
        )
    ),
    st.text(LATIN, max_size=90),
)
SCALARS = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False)
JSON = st.recursive(
    SCALARS | st.text(max_size=60),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)
BODIES = st.binary(max_size=300) | JSON.map(orjson.dumps)


def post_body(client: Client, address: str, body: bytes, headers: dict[str, str]) -> int:
    """The status of the answer; what it did is taken back."""
    with effects_taken_back():
        answer = client.post(address, body, "application/json", headers=headers)
    return answer.status_code


@pytest.mark.parametrize("kind", REPOSITORIES)
def test_no_bytes_make_a_hook_fail(project: Project, kind: str) -> None:
    Hooked(project, kind)
    client = Client(raise_request_exception=False)

    @FUZZING
    @given(body=BODIES, headers=HEADERS, place=st.sampled_from(("", "forge/")))
    def send_and_check(body: bytes, headers: dict[str, str], place: str) -> None:
        assert 400 <= post_body(client, f"/hooks/{project.slug}/{place}", body, headers) < 500

    send_and_check()


EVERY_REF = 'branches = ["**"]\ntags = ["**"]'
REFS = st.builds(str.__add__, st.sampled_from(("refs/heads/", "refs/tags/", "")), st.text(max_size=60))
FIELDS = st.fixed_dictionaries(
    {
        "delivery": JSON | st.just("0123456789abcdef"),
        "timestamp": JSON | st.just(int(time.time())),
        "ref": JSON | REFS,
        "commit": JSON | st.just(COMMIT),
        "before": JSON | st.just(""),
    }
)


def test_no_signed_push_makes_a_hook_fail(hook: Hook, project: Project) -> None:
    client = Client(raise_request_exception=False)
    Project.objects.filter(pk=project.pk).update(policy=EVERY_REF)

    @FUZZING
    @given(body=(FIELDS | JSON).map(orjson.dumps))
    def send_and_check(body: bytes) -> None:
        signed = {"Paceline-Signature": f"sha256={digest_hex(project.hook_secret, body)}"}
        assert post_body(client, f"/hooks/{project.slug}/", body, signed) in (202, 400, 401)

    send_and_check()
    assert not Trigger.objects.exists()


def field_paths(value: Any, path: str = "") -> list[str]:
    """Of all fields of a payload, with dots, as `change_field` takes them."""
    rows = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [
        found
        for name, inner in rows
        for found in (f"{path}{name}", *field_paths(inner, f"{path}{name}."))
        if "." not in str(name)
    ]


@pytest.mark.parametrize("example", EXAMPLES)
def test_no_signed_event_of_a_forge_makes_a_hook_fail(project: Project, example: str) -> None:
    """Fields of what the forge really sends are replaced by whatever JSON there is."""
    kind = example.partition("/")[0]
    hooked = Hooked(project, kind)
    Project.objects.filter(pk=project.pk).update(policy=EVERY_REF)
    paths = st.lists(st.sampled_from(field_paths(example_of_project(example))), min_size=1, max_size=3)
    client = Client(raise_request_exception=False)

    @FUZZING
    @given(changed=paths, value=JSON | REFS)
    def send_and_check(changed: list[str], value: Any) -> None:
        payload = example_of_project(example)
        for path in changed:
            # What it lies in was replaced before.
            with suppress(LookupError, TypeError, ValueError):
                change_field(payload, path, deepcopy(value))
        body = orjson.dumps(payload)
        headers = hooked.sender.headers(EXAMPLES[example], body)
        status = post_body(client, f"/hooks/{project.slug}/forge/", body, headers)
        assert status == 202 or 400 <= status < 500

    send_and_check()
