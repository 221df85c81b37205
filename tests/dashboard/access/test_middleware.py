"""Who needs a CSRF cookie, and what is looked at first."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.http import HttpRequest, JsonResponse
from django.test import Client
from django.urls import include, path

from dashboard.access import Visitor, make_token, visitor_of
from dashboard.access.rules import RULES, Audience, Rule
from dashboard.models import Project
from tests.dashboard.access.conftest import create_member

pytestmark = [pytest.mark.django_db, pytest.mark.urls(__name__)]

API, PAGE = "/planted/api/snake/", "/planted/page/snake/"


def answer_visitor(request: HttpRequest, slug: str) -> JsonResponse:
    return JsonResponse(
        {"visitor": str(visitor_of(request).user), "session": str(request.user), "slug": slug}
    )


urlpatterns = [
    path("planted/api/<slug:slug>/", answer_visitor, name="planted-api"),
    path("planted/page/<slug:slug>/", answer_visitor, name="planted-page"),
    path("", include("dashboard.urls")),
]


@pytest.fixture(autouse=True)
def _planted_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RULES, "planted-api", Rule(Audience.OPERATE, "slug", api=True))
    monkeypatch.setitem(RULES, "planted-page", Rule(Audience.OPERATE, "slug"))


@pytest.fixture
def operator(public: Project) -> User:
    return create_member("ada", "operator", public)


@pytest.fixture
def bearer(public: Project, operator: User) -> dict[str, str]:
    return {"Authorization": f"Bearer {make_token(Visitor(operator), public, 'nightly', ['operate'])[1]}"}


@pytest.fixture
def strict() -> Client:
    """A browser: it has to show that a form is of this site."""
    return Client(enforce_csrf_checks=True)


def test_a_token_needs_no_csrf_cookie_where_it_is_taken(strict: Client, bearer: dict[str, str]) -> None:
    assert strict.post(API, headers=bearer).json() == {
        "visitor": "ada",
        "session": "AnonymousUser",
        "slug": "snake",
    }
    assert strict.post(PAGE, headers=bearer).status_code == 403


def test_a_session_needs_the_cookie_everywhere(strict: Client, operator: User) -> None:
    strict.force_login(operator)
    assert [strict.post(where).status_code for where in (API, PAGE)] == [403, 403]
    assert strict.get(API).json()["visitor"] == "ada"


@pytest.mark.parametrize("header", ["Bearer ", "Bearer nonsense", "Basic YWRhOnNlY3JldA=="])
def test_no_other_header_spares_the_cookie(strict: Client, operator: User, header: str) -> None:
    strict.force_login(operator)
    assert strict.post(API, headers={"Authorization": header}).status_code in (401, 403)


def test_a_script_is_told_to_send_a_token(client: Client, public: Project) -> None:
    answer = client.post(API)
    assert (answer.status_code, answer.json()["detail"]) == (
        401,
        "Send a token: Authorization: Bearer plt_...",
    )


def test_a_token_that_may_not_is_told_why(client: Client, public: Project, operator: User) -> None:
    token = make_token(Visitor(operator), public, "reader", ())[1]
    answer: Any = client.post(API, headers={"Authorization": f"Bearer {token}"})
    sentence = "This token may only view, within the rights of ada: what was asked for needs more."
    assert (answer.status_code, answer.json()["detail"]) == (403, sentence)
