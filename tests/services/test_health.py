from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client, RequestFactory
from django.utils import timezone
from kombu import Connection

from dashboard import runs
from dashboard.dispatch import app
from dashboard.middleware.browser_security import hash_source
from dashboard.models import Machine
from dashboard.monitoring import health


@pytest.fixture
def get(rf: RequestFactory):
    def get(view):
        response = view(rf.get("/"))
        return response.status_code, json.loads(response.content)

    return get


@pytest.fixture
def signed_in(admin_client: Client, monkeypatch: pytest.MonkeyPatch) -> Client:
    """A browser with a session, whose site has lost its database."""
    monkeypatch.setitem(connection.settings_dict, "HOST", "/nowhere")
    connection.close()
    admin_client.raise_request_exception = False
    return admin_client


@pytest.fixture
def everybody_lives(db: None) -> None:
    runs.record_machine("gpu-1", "default")
    runs.record_heartbeat("scheduler")
    runs.record_heartbeat("service worker")
    runs.record_heartbeat("fetch worker")


def test_a_process_that_answers_lives(get):
    assert get(health.report_liveness) == (200, {"status": "ok"})


def test_whether_it_lives_is_answered_without_the_database(client):
    # No access to the database is allowed here.
    assert client.get("/healthz").json() == {"status": "ok"}


def test_ready_when_every_part_reports(get, everybody_lives):
    status, body = get(health.report_readiness)
    assert (status, body["status"]) == (200, "ok")
    assert {name: part["status"] for name, part in body["parts"].items()} == dict.fromkeys(
        health.CHECKS, "ok"
    )


def test_a_site_that_nobody_has_reported_to_is_not_ready(get, db):
    status, body = get(health.report_readiness)
    assert status == 503
    assert body["parts"]["worker"] == {"status": "down", "detail": "No measuring worker has reported yet."}
    assert body["parts"]["database"]["status"] == "ok"


def test_a_worker_that_fell_silent_is_told(get, everybody_lives):
    Machine.objects.update(seen_at=timezone.now() - timedelta(seconds=75))
    status, body = get(health.report_readiness)
    assert status == 503
    assert body["parts"]["worker"]["detail"].startswith("The last measuring worker reported 75 seconds ago")


def test_a_queue_that_is_gone_is_told(get, everybody_lives, monkeypatch):
    monkeypatch.setattr(app, "connection_for_write", lambda: Connection("redis+socket:///nowhere/redis.sock"))
    status, body = get(health.report_readiness)
    assert status == 503
    assert body["parts"]["queue"] == {"status": "down", "detail": "The queue doesn't answer."}


def test_a_database_that_is_gone_is_told_without_its_address(get, everybody_lives, monkeypatch):
    monkeypatch.setitem(connection.settings_dict, "HOST", "/nowhere")
    connection.close()
    status, body = get(health.report_readiness)
    assert status == 503
    assert body["parts"]["database"] == {"status": "down", "detail": "The database doesn't answer."}
    assert body["parts"]["queue"]["status"] == "ok"


def test_monitors_are_told_the_same_with_a_session_while_the_database_is_gone(
    signed_in: Client, client: Client
) -> None:
    for browser in (signed_in, client):
        answer = browser.get("/readyz")
        assert (answer.status_code, answer["Content-Type"]) == (503, "application/json")
        assert answer.json()["parts"]["database"] == {
            "status": "down",
            "detail": "The database doesn't answer.",
        }
        assert browser.get("/healthz").json() == {"status": "ok"}


def test_scripts_are_told_in_json_that_the_database_is_gone(signed_in: Client) -> None:
    answer = signed_in.get("/metrics")
    assert (answer.status_code, answer["Retry-After"]) == (503, "10")
    assert answer.json()["detail"] == "The database doesn't answer: ask again in a moment."


def test_a_page_without_a_database_loads_itself_again(signed_in: Client) -> None:
    answer = signed_in.get("/search/?q=snake")
    page = answer.content.decode()
    assert (answer.status_code, answer["Retry-After"]) == (503, "10")
    assert '<meta http-equiv="refresh" content="10">' in page
    assert '<a href="">Load this page again now</a>' in page
    assert "prefers-color-scheme: dark" in page
    # Nothing but the page itself is needed.
    assert [part for part in ("<link", "<script", "<img", "url(") if part in page] == []
    style = page.partition("<style>")[2].partition("</style>")[0]
    assert f"style-src {hash_source(style)};" in answer["Content-Security-Policy"]


def test_a_form_sent_without_a_database_is_not_loaded_over(signed_in: Client) -> None:
    page = signed_in.post("/search/", {"name": "typed"}).content.decode()
    assert "What you sent may not have been stored." in page
    assert "http-equiv" not in page
