"""What the API says of itself is whole: every operation with a subject, a summary and whom it is for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from pydantic import BaseModel

from dashboard.access.rules import OPERATION_RULES
from dashboard.api.description import describe_api, route_names


def test_every_ruled_operation_is_described() -> None:
    names = route_names()
    described = {
        (names[route], method.upper())
        for route, operations in describe_api()["paths"].items()
        for method in operations
    }
    assert described == {(name, method) for name, rules in OPERATION_RULES.items() for method in rules}


def test_every_operation_says_what_it_does() -> None:
    for route, operations in describe_api()["paths"].items():
        for method, operation in operations.items():
            assert method in {"get", "post", "put", "patch", "delete"}, route
            assert operation.get("description"), f"{method} {route}"
            assert operation["tags"], f"{method} {route}"
            assert "_" in operation["operationId"], f"{method} {route}"


def test_each_shape_has_a_name_of_its_own() -> None:
    """The description knows a name once: of two shapes of one name it would tell one."""
    shapes = [shape for shape in find_shapes(BaseModel) if shape.__module__.startswith("dashboard.api")]
    names = [shape.__name__ for shape in shapes]
    assert len(names) > 30
    assert sorted(names) == sorted(set(names))
    described = describe_api()["components"]["schemas"]
    assert {name for name, shape in described.items() if shape["type"] != "object"} == set()


def find_shapes(base: type[Any]) -> Iterator[type[Any]]:
    for shape in base.__subclasses__():
        yield shape
        yield from find_shapes(shape)


@pytest.mark.django_db
def test_the_description_is_read_without_a_token(client: Client) -> None:
    answer = client.get("/api/v1/openapi.json")
    assert answer.json()["openapi"].startswith("3.")
    again = client.get("/api/v1/openapi.json", headers={"If-None-Match": answer["ETag"]})
    assert again.status_code == 304


@pytest.mark.django_db
def test_the_page_has_every_operation(client: Client) -> None:
    page = client.get("/api/v1/docs").content.decode()
    for operations in describe_api()["paths"].values():
        for operation in operations.values():
            assert f'id="{operation["operationId"]}"' in page
