"""Whatever goes wrong below /api/v1/ is answered by one kind of problem with one sentence."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import psycopg
import pytest
from django.db import InterfaceError, OperationalError, connection, transaction
from django.test import Client

from dashboard.models import Project

pytestmark = pytest.mark.django_db


def read_problem(response: Any) -> tuple[int, str]:
    assert response["Content-Type"] == "application/problem+json"
    problem = response.json()
    assert (problem["status"], problem["type"]) == (response.status_code, "about:blank")
    return problem["status"], problem["detail"]


@pytest.mark.parametrize(
    ("address", "status", "detail"),
    [
        ("/api/v1/nowhere", 404, "There is nothing at this address."),
        ("/api/v1/projects/nothing", 404, "There is nothing at this address."),
        ("/api/v1/projects?limit=0", 422, "limit: it must be greater than or equal to 1."),
        ("/api/v1/projects?limit=x", 422, "limit: it must be a whole number."),
        ("/api/v1/regressions?state=lost", 422, "state: it must be 'open', "),
        ("/api/v1/projects?limits=1", 422, "limits: there is no parameter of that name here."),
        ("/api/v1/projects?limit=1&limit=2", 422, "limit: it is given more than once."),
        ("/api/v1/projects?after=%00", 400, "The address has a NUL in 'after'."),
        ("/api/v1/projects?after=nonsense", 422, "after: take it from `next` of the page before, as it "),
        ("/api/v1/projects?after=WzEsMl0", 422, "after: take it from `next` of the page before, as it "),
        ("/api/v1/token", 401, "Send a token: Authorization: Bearer plt_..."),
    ],
)
def test_a_problem_is_one_sentence(client: Client, address: str, status: int, detail: str) -> None:
    found, said = read_problem(client.get(address))
    assert (found, said[: len(detail)]) == (status, detail)


def test_another_method_is_told_which_there_are(client: Client, project: Project) -> None:
    answer = client.put("/api/v1/projects/snake")
    assert read_problem(answer) == (405, "This address takes GET and HEAD, not PUT.")
    assert answer["Allow"] == "GET, HEAD"


@pytest.mark.parametrize("address", ["/api/v1/openapi.json", "/metrics", "/readyz", "/healthz"])
def test_addresses_beside_the_operations_tell_their_methods_too(
    script: Client, project: Project, address: str
) -> None:
    script.handler.enforce_csrf_checks = True
    answer = script.post(address)
    assert read_problem(answer) == (405, "This address takes GET and HEAD, not POST.")
    assert answer["Allow"] == "GET, HEAD"


def test_a_page_says_which_methods_it_takes(client: Client, project: Project) -> None:
    answer = client.delete("/projects/snake/")
    assert (answer.status_code, answer["Allow"]) == (405, "GET, HEAD")
    assert "This address takes GET and HEAD, not DELETE." in answer.content.decode()


def test_several_wrong_fields_are_all_told(client: Client) -> None:
    answer = client.get(f"/api/v1/projects?limit=0&after={'x' * 2000}")
    assert {problem["field"] for problem in answer.json()["errors"]} == {"limit", "after"}


@pytest.mark.parametrize(
    ("cause", "status"),
    [
        (psycopg.errors.ConnectionTimeout("connection timeout expired"), 503),
        (psycopg.errors.AdminShutdown(), 503),
        (psycopg.errors.CannotConnectNow(), 503),
        (psycopg.errors.TooManyConnections(), 503),
        (psycopg.errors.ConnectionFailure(), 503),
        (psycopg.OperationalError("number of parameters must be between 0 and 65535"), 500),
        (psycopg.InterfaceError("the cursor is closed"), 500),
        (psycopg.errors.QueryCanceled(), 500),
        (psycopg.errors.DiskFull(), 500),
    ],
)
def test_a_database_that_does_not_answer_is_told_as_such(
    client: Client, project: Project, monkeypatch: pytest.MonkeyPatch, cause: Exception, status: int
) -> None:
    def fail(*_: object) -> None:
        raise OperationalError("user paceline, socket /run") from cause

    monkeypatch.setattr("dashboard.api.projects.describe_project", fail)
    client.raise_request_exception = False
    answer = client.get("/api/v1/projects/snake")
    found, detail = read_problem(answer)
    assert (found, "user paceline" in detail) == (status, False)
    assert answer.get("Retry-After") == ("10" if status == 503 else None)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("in_transaction", [False, True])
def test_a_lost_connection_is_told_as_such(
    client: Client, monkeypatch: pytest.MonkeyPatch, in_transaction: bool
) -> None:
    Project.objects.create(slug="snake", repository="/nowhere", hook_secret="a secret")

    def lose_connection(*_: object) -> None:
        with transaction.atomic() if in_transaction else nullcontext():
            Project.objects.count()
            connection.connection.close()
            Project.objects.count()

    monkeypatch.setattr("dashboard.api.projects.describe_project", lose_connection)
    client.raise_request_exception = False
    answer = client.get("/api/v1/projects/snake")
    connection.close()
    assert (read_problem(answer)[0], answer["Retry-After"]) == (503, "10")


def test_too_many_parameters_are_a_failure_of_the_site(
    client: Client, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask_too_much(*_: object) -> None:
        with connection.cursor() as cursor:
            raw = cursor.connection.cursor(binary=True)
            with connection.wrap_database_errors:
                psycopg.RawCursor(raw.connection).execute("SELECT 1", list(range(70_000)))

    monkeypatch.setattr("dashboard.api.projects.describe_project", ask_too_much)
    client.raise_request_exception = False
    assert read_problem(client.get("/api/v1/projects/snake"))[0] == 500


@pytest.mark.django_db(transaction=True)
def test_a_page_says_that_the_database_does_not_answer(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        connection.connection.close()
        raise InterfaceError("connection already closed")

    monkeypatch.setattr("dashboard.pages.search.find_everything", fail)
    client.raise_request_exception = False
    answer = client.get("/search/?q=snake")
    connection.close()
    assert (answer.status_code, answer["Retry-After"]) == (503, "10")
    assert "The database doesn't answer" in answer.content.decode()


def test_a_failure_of_the_site_names_its_line_in_the_log(
    client: Client, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("nobody foresaw this")

    monkeypatch.setattr("dashboard.api.projects.describe_project", fail)
    client.raise_request_exception = False
    answer = client.get("/api/v1/projects/snake")
    status, detail = read_problem(answer)
    assert (status, "nobody" in detail) == (500, False)
    assert answer.json()["request"] == answer["X-Request-ID"]
