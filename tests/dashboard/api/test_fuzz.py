"""Whatever is asked of the API, it doesn't fail, and answers as its description says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import orjson
import pytest
import requests
from django.conf import LazySettings
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from dashboard.api.description import describe_api, route_names
from dashboard.problem_details import PROBLEM_TYPE
from tests.dashboard.access.test_walk import EXAMPLES, Site
from tests.dashboard.fuzzing import effects_taken_back, fuzz_settings

if TYPE_CHECKING:
    from schemathesis import GenerationMode

FEW_CASES = 400
VISITORS = ("superuser", "token")


def find_operations() -> Iterator[Any]:
    # Late: each process that collects tests would import it, a second of a processor.
    import schemathesis

    description = orjson.loads(orjson.dumps(describe_api(), option=orjson.OPT_NON_STR_KEYS))
    for found in schemathesis.openapi.from_dict(description).get_all_operations():
        yield found.ok()


def find_ways() -> Iterator[tuple[Any, GenerationMode]]:
    """Each operation with what its description allows, and, where that forbids something, with the rest."""
    from schemathesis import GenerationMode

    for operation in find_operations():
        yield operation, GenerationMode.POSITIVE
        if operation.query or operation.body:
            yield operation, GenerationMode.NEGATIVE


@pytest.fixture
def site(db: None, settings: LazySettings) -> Site:
    # Nobody is asked for the address of a host that was made up.
    settings.PACELINE_ALLOW_INTERNAL_WEBHOOKS = True
    settings.PACELINE_RATES = {}
    made = Site("private")
    for visitor in VISITORS:
        made.clients[visitor].raise_request_exception = False
    return made


def send_case(client: Client, case: Any) -> Any:
    """The answer to what schemathesis made; what it did is taken back."""
    wanted = case.as_transport_kwargs(base_url="http://testserver")
    named = {name: wanted.get(name) for name in ("method", "url", "params", "data", "json", "cookies")}
    prepared = requests.Request(**named).prepare()
    body = prepared.body or b""
    with effects_taken_back():
        return client.generic(
            prepared.method or "GET",
            (prepared.url or "").removeprefix("http://testserver"),
            body.encode() if isinstance(body, str) else body,
            content_type=str(prepared.headers.get("Content-Type", "application/json")),
        )


def check_answer(operation: Any, answer: Any) -> None:
    """It is no failure of the site, and what the description says of that status."""
    assert answer.status_code < 500, answer.content
    declared = operation.definition.raw["responses"]
    expected = declared.get(str(answer.status_code), declared["default"])
    kinds = expected.get("content", {})
    if not kinds:
        assert answer.content == b""
        return
    kind = answer["Content-Type"].partition(";")[0]
    assert kind in kinds, (answer.status_code, kind)
    if kind in ("application/json", PROBLEM_TYPE):
        schema = {**kinds[kind]["schema"], "components": describe_api()["components"]}
        Draft202012Validator(schema).validate(answer.json())


def fuzz_operation(
    site: Site, visitors: Sequence[str], operation: Any, mode: GenerationMode, parts: int
) -> None:
    """Of one of so many `parts`."""
    name = route_names()[operation.path]
    there = {key: site.keys[of] for key, of in EXAMPLES.get(name, {}).items()}

    @fuzz_settings(FEW_CASES, parts)
    @given(
        case=operation.as_strategy(generation_mode=mode),
        is_there=st.sampled_from((True, True, False)),
        visitor=st.sampled_from(visitors),
    )
    def send_and_check(case: Any, is_there: bool, visitor: str) -> None:
        if is_there:
            # What the address names; else nothing behind it would ever be reached.
            case.path_parameters = there
        check_answer(operation, send_case(site.clients[visitor], case))

    run: Callable[[], None] = send_and_check
    run()


@pytest.mark.timeout(3600)
def test_no_request_makes_it_fail(site: Site) -> None:
    ways = list(find_ways())
    for operation, mode in ways:
        fuzz_operation(site, VISITORS, operation, mode, len(ways))


def test_a_planted_failure_is_noticed(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("planted")

    monkeypatch.setattr("dashboard.api.projects.describe_project", fail)
    ways = list(find_ways())
    operation, mode = next(way for way in ways if way[0].path == "/api/v1/projects/{slug}")
    with pytest.raises(AssertionError):
        fuzz_operation(site, ["superuser"], operation, mode, len(ways))
