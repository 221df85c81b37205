"""Whatever a body holds, it is read or refused with one sentence: never a traceback."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dashboard.forges.deliveries import read_delivery
from dashboard.forges.errors import ForgeError
from dashboard.forges.events import WebhookDelivery
from tests.dashboard.forges.payloads import EXAMPLES, SECRET, Sender, read_example

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=60),
    st.sampled_from(
        ["0" * 40, "a" * 64, "refs/heads/main", "\0", "\ud800", "{}", "-x", "a/b", 10**400, -(2**70)]
    ),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


def all_paths(value: Any, before: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = [before] if before else []
    for key, inner in items:
        found += all_paths(inner, (*before, key))
    return found


def mutate_at(payload: Any, path: tuple[Any, ...], value: Any, *, remove: bool) -> None:
    for key in path[:-1]:
        payload = payload[key]
    if remove:
        payload.pop(path[-1])
    else:
        payload[path[-1]] = value


@pytest.mark.parametrize("name", EXAMPLES)
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_a_mutated_example_is_read_or_refused(name: str, data: st.DataObject) -> None:
    payload = copy.deepcopy(read_example(name))
    for _ in range(data.draw(st.integers(1, 4))):
        path = data.draw(st.sampled_from(all_paths(payload) or [("ref",)]))
        mutate_at(payload, path, data.draw(VALUES), remove=path != ("ref",) and data.draw(st.booleans()))
    body = json.dumps(payload).encode()
    kind = name.partition("/")[0]
    delivery = None
    with suppress(ForgeError):
        delivery = read_delivery(kind, Sender(kind).headers(EXAMPLES[name], body), body, SECRET)
    # What was read can be stored.
    for text in texts_of(delivery):
        assert "\0" not in text
        assert text.encode().decode() == text


def texts_of(delivery: WebhookDelivery | None) -> Iterator[str]:
    for event in delivery.events if delivery else ():
        yield from (value for value in asdict(event).values() if isinstance(value, str))


@settings(max_examples=150, deadline=None)
@given(body=st.binary(max_size=300), kind=st.sampled_from(["github", "gitlab", "gitea", "bitbucket"]))
def test_any_bytes_are_read_or_refused(body: bytes, kind: str) -> None:
    headers = Sender(kind).headers("push", body)
    with pytest.raises(ForgeError) as caught:
        read_delivery(kind, headers, body, SECRET)
    assert caught.value.status == 400
