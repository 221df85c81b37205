"""What browsers are told about every answer."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping

import pytest
from django.http import HttpResponse
from django.test import Client, RequestFactory, override_settings

from dashboard.middleware.browser_security import HEADERS, hash_source, restrict_browsers

pytestmark = pytest.mark.django_db
EXPECTED = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    **HEADERS,
}


@pytest.mark.parametrize(
    "where",
    [
        *("/", "/sign-in/", "/nowhere/", "/healthz", "/metrics", "/admin/", "/static/paceline.css"),
        *("/?page=%00", "/api/v1/host/claim"),
    ],
)
def test_every_answer_has_the_headers(client: Client, where: str) -> None:
    headers = client.get(where).headers
    assert {name: headers.get(name) for name in EXPECTED} == EXPECTED


def test_no_script_but_the_sites_own_files_may_run() -> None:
    policy = dict(part.partition(" ")[::2] for part in HEADERS["Content-Security-Policy"].split("; "))
    assert policy["script-src"] == policy["form-action"] == "'self'"
    assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert "unsafe-inline" not in HEADERS["Content-Security-Policy"]


def test_a_hash_is_spelt_as_browsers_do() -> None:
    assert hash_source("cursor:pointer") == "'sha256-lGP/R5jOMXytzwBHVEM5Nv4XbT9fuH6V2dET/0dje2s='"


def test_an_answer_keeps_a_header_of_its_own() -> None:
    answered = HttpResponse(headers={"Content-Security-Policy": "sandbox"})
    restrict_browsers(lambda _: answered)(RequestFactory().get("/"))
    assert answered["Content-Security-Policy"] == "sandbox"


@override_settings(DEBUG=True)
def test_djangos_own_page_of_an_error_is_readable() -> None:
    answered = restrict_browsers(lambda _: HttpResponse(status=500))(RequestFactory().get("/"))
    assert "Content-Security-Policy" not in answered


def cookie_settings(environment: Mapping[str, str]) -> str:
    """What a site that is started so does with its cookies."""
    names = ("SESSION_COOKIE_NAME", "CSRF_COOKIE_NAME", "SESSION_COOKIE_SECURE", "SESSION_COOKIE_AGE")
    script = f"from dashboard import settings; print(*[getattr(settings, name) for name in {names}])"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_cookies_are_bound_to_the_host_where_there_is_tls() -> None:
    secure = cookie_settings({"PACELINE_URL": "https://pace.example.org", "PACELINE_SESSION_DAYS": "2"})
    assert secure == "__Host-sessionid __Host-csrftoken True 172800"
    assert cookie_settings({}) == "sessionid csrftoken False 1209600"
