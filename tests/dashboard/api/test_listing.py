"""Pages of lists, and who has the newest answer already."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from dashboard.models import Project
from tests.pages import builders

pytestmark = pytest.mark.django_db


def read_all(client: Client, address: str) -> list[list[Any]]:
    """The items of each page, from the first to the last."""
    pages = []
    following: str | None = address
    while following:
        answer = client.get(following)
        assert answer.status_code == 200, answer.content
        pages.append(answer.json()["items"])
        following = answer.json()["next"]
    return pages


def test_a_list_is_read_page_by_page(client: Client) -> None:
    for number in range(5):
        builders.create_project(f"project-{number}")
    pages = read_all(client, "/api/v1/projects?limit=2")
    assert [[row["slug"] for row in page] for page in pages] == [
        ["project-0", "project-1"],
        ["project-2", "project-3"],
        ["project-4"],
    ]


def test_what_comes_in_between_moves_nothing(client: Client) -> None:
    for number in range(3):
        builders.create_project(f"project-{number}")
    first = client.get("/api/v1/projects?limit=2").json()
    builders.create_project("a-project")
    assert [row["slug"] for row in client.get(first["next"]).json()["items"]] == ["project-2"]


def test_who_has_the_newest_answer_gets_no_other(client: Client, project: Project) -> None:
    first = client.get("/api/v1/projects/snake")
    again = client.get("/api/v1/projects/snake", headers={"If-None-Match": first["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    Project.objects.update(branch="trunk")
    changed = client.get("/api/v1/projects/snake", headers={"If-None-Match": first["ETag"]})
    assert (changed.status_code, changed.json()["branch"]) == (200, "trunk")
    assert "Authorization" in changed["Vary"]


def test_a_head_is_answered_like_a_get(client: Client, project: Project) -> None:
    answers = [getattr(client, method)("/api/v1/projects/snake") for method in ("get", "head")]
    assert answers[0]["ETag"] == answers[1]["ETag"]


def test_no_list_shows_a_private_project(client: Client, project: Project) -> None:
    builders.create_project("hidden", visibility="private")
    assert [row["slug"] for row in client.get("/api/v1/projects").json()["items"]] == ["snake"]


def test_a_token_lists_its_project_alone(script: Client, project: Project) -> None:
    builders.create_project("other")
    assert [row["slug"] for row in script.get("/api/v1/projects").json()["items"]] == ["snake"]
