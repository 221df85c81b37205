"""What people say about a regression, on its page and in the inbox."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from dashboard.models import Regression, Triage

pytestmark = pytest.mark.django_db


@pytest.fixture
def regression(confirmed: Regression) -> Regression:
    return confirmed


@pytest.fixture
def grace(client: Client) -> User:
    """Signed in, and allowed to triage and nothing else."""
    user = User.objects.create_user("grace")
    user.user_permissions.add(Permission.objects.get(codename="add_triage"))
    client.force_login(user)
    return user


def submit_form(client: Client, regression: Regression, **form: Any) -> str:
    """The page after the form was sent."""
    answer = client.post(f"/regressions/{regression.pk}/triage/", form, follow=True)
    assert answer.status_code == 200
    return answer.content.decode()


def is_listed(client: Client, regression: Regression, state: str) -> bool:
    page = client.get("/regressions/", {"state": state}).content.decode()
    return f'href="/regressions/{regression.pk}/"' in page


def test_acknowledged_stays_open_with_a_name(client: Client, grace: User, regression: Regression) -> None:
    shown = submit_form(client, regression, action="acknowledge", comment="On it <today>.")
    assert "Acknowledged by <strong>grace</strong>" in shown
    assert "On it &lt;today&gt;." in shown
    assert is_listed(client, regression, "open")
    assert "acknowledged by grace" in client.get("/regressions/?state=acknowledged").content.decode()


def test_what_has_recovered_is_not_said_to_stay_open(
    client: Client, grace: User, regression: Regression
) -> None:
    Regression.objects.update(recovered_by=regression.last_good)
    assert "it has recovered" in submit_form(client, regression, action="acknowledge")


@pytest.mark.parametrize("action", ["intended", "not real", "won't fix"])
def test_decided_ones_leave_the_open_ones(
    client: Client, grace: User, regression: Regression, action: str
) -> None:
    submit_form(client, regression, action=action)
    assert is_listed(client, regression, action)
    assert not is_listed(client, regression, "open")
    assert "no open regression" in client.get("/").content.decode()
    submit_form(client, regression, action="reopen")
    assert is_listed(client, regression, "open")


def test_a_refused_form_keeps_what_was_typed(client: Client, grace: User, regression: Regression) -> None:
    form = {"action": "frobnicate", "comment": "Half an <hour> of typing"}
    answer = client.post(f"/regressions/{regression.pk}/triage/", form)
    shown = answer.content.decode()
    assert answer.status_code == 400
    assert "action: &#x27;frobnicate&#x27; is none of" in shown
    assert "Half an &lt;hour&gt; of typing</textarea>" in shown


def test_what_somebody_said_meanwhile_is_not_overwritten_unseen(
    client: Client, grace: User, regression: Regression
) -> None:
    submit_form(client, regression, action="intended", seen="")
    stale = {"action": "not real", "seen": "", "comment": "It is noise"}
    answer = client.post(f"/regressions/{regression.pk}/triage/", stale)
    shown = answer.content.decode()
    assert answer.status_code == 400
    assert "since you opened this page you said intended; nothing was changed." in shown
    assert "It is noise</textarea>" in shown
    assert Regression.objects.get().triaged == "intended"
    submit_form(client, regression, action="comment", comment="Still noise", seen="")
    submit_form(client, regression, action="not real", seen="intended")
    assert Regression.objects.get().triaged == "not real"


def test_who_is_not_signed_in_is_sent_to_sign_in_and_back(client: Client, regression: Regression) -> None:
    answer = client.post(f"/regressions/{regression.pk}/triage/", {"action": "intended"})
    assert answer["Location"] == f"/sign-in/?next=/regressions/{regression.pk}/"
    assert 'name="action"' not in client.get(f"/regressions/{regression.pk}/").content.decode()


def test_who_may_only_look_may_not_triage(client: Client, regression: Regression) -> None:
    client.force_login(User.objects.create_user("eve"))
    assert client.post(f"/regressions/{regression.pk}/triage/", {"action": "intended"}).status_code == 403
    shown = client.get(f"/regressions/{regression.pk}/").content.decode()
    assert "Your account can view this regression but not triage it" in shown
    assert not Triage.objects.exists()


def test_the_form_is_protected_against_other_sites(regression: Regression, grace: User) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(grace)
    answer = strict.post(f"/regressions/{regression.pk}/triage/", {"action": "intended"})
    assert answer.status_code == 403
    assert 'name="csrfmiddlewaretoken"' in strict.get(f"/regressions/{regression.pk}/").content.decode()


def test_only_what_can_be_done_is_offered(client: Client, grace: User, regression: Regression) -> None:
    where = f"/regressions/{regression.pk}/"
    assert 'value="reopen"' not in client.get(where).content.decode()
    shown = submit_form(client, regression, action="intended")
    assert 'value="reopen"' in shown
    assert 'name="action" value="intended"' not in shown


def test_the_log_outlives_the_account(client: Client, grace: User, regression: Regression) -> None:
    submit_form(client, regression, action="won't fix", comment="Too rare.")
    grace.delete()
    shown = client.get(f"/regressions/{regression.pk}/").content.decode()
    assert "a former account" in shown
    assert "Too rare." in shown


def test_a_look_changes_nothing(client: Client, grace: User, regression: Regression) -> None:
    page = f"/regressions/{regression.pk}/"
    # The address of a form that was refused leads back to its page.
    assert client.get(f"{page}triage/")["Location"] == client.get(f"{page}snooze/")["Location"] == page
    assert not Triage.objects.exists()
    assert client.post("/regressions/999999/triage/", {"action": "intended"}).status_code == 404
