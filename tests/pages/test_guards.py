"""No git process starts while somebody looks at a page, and the guard that watches it can see one."""

from __future__ import annotations

import pytest
from django.http import HttpRequest, HttpResponse
from django.test import Client
from django.urls import include, path

from dashboard.access.rules import ANYBODY, RULES
from dashboard.models import Project
from dashboard.pages.urls import urlpatterns as pages
from dashboard.repositories import RepositoryError
from tests.pages import builders


def ask_git(request: HttpRequest, slug: str) -> HttpResponse:
    try:
        Project.objects.get(slug=slug).mirror.lines("log")
    except RepositoryError as error:
        return HttpResponse(str(error))
    return HttpResponse()


urlpatterns = [path("planted/<slug:slug>/", ask_git, name="planted"), path("", include(pages))]


@pytest.fixture(autouse=True)
def _anybody_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RULES, "planted", ANYBODY)


@pytest.mark.urls(__name__)
@pytest.mark.django_db
def test_git_in_a_view_is_seen(client: Client, git_in_views: list[str]) -> None:
    builders.create_project("snake")
    client.get("/planted/snake/")
    assert len(git_in_views) == 1
    git_in_views.clear()


@pytest.mark.urls(__name__)
@pytest.mark.django_db
def test_what_is_sent_may_start_git(client: Client, git_in_views: list[str]) -> None:
    builders.create_project("snake")
    client.post("/planted/snake/")
    assert git_in_views == []
