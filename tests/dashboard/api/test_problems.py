"""Whatever goes wrong below /api/v1/ is answered by one kind of problem with one sentence."""

from __future__ import annotations

from typing import Any

import pytest
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


def test_several_wrong_fields_are_all_told(client: Client) -> None:
    answer = client.get(f"/api/v1/projects?limit=0&after={'x' * 2000}")
    assert {problem["field"] for problem in answer.json()["errors"]} == {"limit", "after"}


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
