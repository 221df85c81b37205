"""The pages by which an administrator keeps the site: accounts and failed jobs."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import pytest
from django.contrib.auth.models import User
from django.core import mail
from django.test import Client
from pytest_django import Settings

from dashboard import dispatch, failed_jobs
from dashboard.models import AuditEntry, FailedJob
from dashboard.sentences.administration.audit import describe_entry
from tests.dashboard.access.conftest import create_member
from tests.dashboard.accounts.conftest import is_signed_in, sign_in
from tests.pages import builders
from tests.pages.conftest import shown_text

pytestmark = pytest.mark.django_db

ACCOUNTS = "/site/accounts/"
JOBS = "/site/jobs/"
PASSWORD = "a long secret"
NEW_PASSWORD = "another long one 42"


@pytest.fixture
def keeper(client: Client, operator: User) -> Client:
    """A browser in which an administrator has just signed in."""
    sign_in(client)
    return client


def test_an_invited_person_signs_in_by_the_link(keeper: Client) -> None:
    answer = keeper.post(ACCOUNTS, {"name": "eve", "permissions": ["add_project"]})
    assert "no-store" in answer["Cache-Control"]
    link = re.search(r'id="link">([^<]+)<', answer.content.decode())
    assert link
    person = Client()
    form = person.get(urlsplit(link[1]).path, follow=True).request["PATH_INFO"]
    person.post(form, {"password1": NEW_PASSWORD, "password2": NEW_PASSWORD})
    sign_in(person, "eve", NEW_PASSWORD)
    assert is_signed_in(person)
    assert person.get("/projects/new/").status_code == 200
    assert "Add projects" in shown_text(keeper.get(ACCOUNTS, {"q": "ev"}))


def test_a_long_address_is_refused_whole(keeper: Client) -> None:
    """Cut at its end it would be another address, to which the link goes."""
    typed = f"eve@{'e' * 63}.{'e' * 63}.{'e' * 63}.{'e' * 50}.example.org"
    answer = keeper.post(ACCOUNTS, {"name": "eve", "email": typed})
    assert (answer.status_code, f'value="{typed}"' in answer.content.decode()) == (400, True)
    assert not User.objects.filter(username="eve").exists()


def test_the_link_is_mailed_where_mail_leaves_the_site(keeper: Client, settings: Settings) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    shown = shown_text(keeper.post(ACCOUNTS, {"name": "eve", "email": "eve@example.org"}))
    assert "A mail with this link went to eve@example.org." in shown
    assert "/account/password/new/" in mail.outbox[0].body
    assert mail.outbox[0].to == ["eve@example.org"]


def test_a_mail_that_does_not_leave_is_told(keeper: Client, settings: Settings) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 1
    shown = shown_text(keeper.post(ACCOUNTS, {"name": "eve", "email": "eve@example.org"}))
    assert "The mail to eve@example.org couldn't be sent: hand this link on." in shown


def test_a_refused_invitation_keeps_what_was_typed(keeper: Client) -> None:
    answer = keeper.post(ACCOUNTS, {"name": "ada", "email": "x@example.org", "permissions": ["add_triage"]})
    assert answer.status_code == 400
    assert "There is an account ada already." in shown_text(answer)
    shown = answer.content.decode()
    assert 'value="x@example.org"' in shown
    assert 'value="add_triage" checked' in shown


def test_who_signed_in_long_ago_confirms_the_password(signed_in: Client) -> None:
    answer = signed_in.post(ACCOUNTS, {"name": "eve"})
    assert answer["Location"].startswith("/account/confirm/")
    assert not User.objects.filter(username="eve").exists()
    # What was asked for is done then.
    done = signed_in.post(answer["Location"], {"password": PASSWORD})
    assert "The account eve" in shown_text(done)
    assert User.objects.filter(username="eve").exists()


def test_one_account_is_changed(keeper: Client) -> None:
    eve = create_member("eve", "operator", builders.create_project("snake"))
    where = f"{ACCOUNTS}{eve.pk}/"
    assert "snake operator" in shown_text(keeper.get(where))
    for form, told in (
        ({"action": "details", "name": "eva", "email": "eva@example.org"}, "The account is eva now."),
        ({"action": "rights", "permissions": ["add_machine"]}, "The rights of eva are saved."),
        ({"action": "rights", "administrator": "yes"}, "eva administers this site now."),
        ({"action": "close"}, "The account eva is closed"),
        ({"action": "open"}, "eva may sign in again."),
    ):
        assert told in shown_text(keeper.post(where, form, follow=True))
    assert keeper.get(f"{ACCOUNTS}{eve.pk + 1}/").status_code == 404


def test_a_link_for_a_password_is_shown_once(keeper: Client) -> None:
    eve = create_member("eve", "operator")
    shown = keeper.post(f"{ACCOUNTS}{eve.pk}/", {"action": "link"}).content.decode()
    assert "/account/password/new/" in shown
    assert "/account/password/new/" not in keeper.get(f"{ACCOUNTS}{eve.pk}/").content.decode()


def test_the_last_administrator_can_not_shut_the_door(keeper: Client, operator: User) -> None:
    where = f"{ACCOUNTS}{operator.pk}/"
    answer = keeper.post(where, {"action": "rights"})
    assert answer.status_code == 400
    assert "ada is the last administrator of this site" in shown_text(answer)
    assert "ada is the last administrator" in shown_text(keeper.post(where, {"action": "close"}, follow=True))
    assert "action: must be one of" in shown_text(keeper.post(where, {"action": "fly"}, follow=True))


def test_failed_jobs_are_tried_again_and_forgotten(
    signed_in: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[tuple[object, ...]] = []
    monkeypatch.setattr(dispatch, "send_task", lambda *call: sent.append(call))
    assert "None. A failed job is listed here" in shown_text(signed_in.get(JOBS))
    jobs = [failed_jobs.note_failure(dispatch.JUDGE, (number,), KeyError("x")) for number in (12, 13)]
    FailedJob.objects.update(next_try_at=None)
    shown = signed_in.get(JOBS).content.decode()
    assert "Judging run 12 failed once and is set aside" in shown
    assert 'href="/runs/13/"' in shown
    signed_in.post(JOBS, {"action": "retry", "job": jobs[0].pk})
    assert sent == [(dispatch.JUDGE, 12)]
    signed_in.post(JOBS, {"action": "drop", "job": jobs[1].pk})
    assert list(FailedJob.objects.values_list("pk", flat=True)) == [jobs[0].pk]
    told = [describe_entry(row) for row in AuditEntry.objects.filter(action="failed jobs changed")]
    assert sorted(told) == ["had 1 failed jobs forgotten", "had 1 failed jobs tried again"]


@pytest.mark.parametrize(
    "form", [{"action": "fly"}, {"action": "drop", "job": "x"}, {"action": "drop", "job": "7"}]
)
def test_what_is_no_job_is_left_alone(signed_in: Client, form: dict[str, str]) -> None:
    failed_jobs.note_failure(dispatch.PRUNE, (), KeyError("x"))
    assert signed_in.post(JOBS, form, follow=True).status_code == 200
    assert FailedJob.objects.count() == 1
    assert not AuditEntry.objects.filter(action="failed jobs changed").exists()


def test_pages_lead_there(signed_in: Client, client: Client) -> None:
    builders.create_history()
    failed_jobs.note_failure(dispatch.JUDGE, (12,), KeyError("x"))
    shown = signed_in.get("/").content.decode()
    assert f'href="{JOBS}"' in shown
    assert f'href="{ACCOUNTS}"' in shown
    assert f'href="{JOBS}"' not in Client().get("/").content.decode()
