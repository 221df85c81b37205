"""A lost or changed key costs what it encrypted and nothing else."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.core.management import CommandError, call_command
from django.test import Client

from dashboard import alerts, runs
from dashboard.alerts.errors import DeliveryError
from dashboard.alerts.kinds import webhook
from dashboard.models import Channel, Delivery, Project, Run
from dashboard.secrets import is_lost

pytestmark = pytest.mark.django_db
URL = "https://93.184.216.34/hook"


@pytest.fixture
def lost(project: Project, settings: Any) -> Project:
    """A project whose secrets were encrypted by a key that is gone."""
    Project.objects.filter(pk=project.pk).update(
        hook_secret="a hook's secret", repository="https://git.example/x", credentials="ann:hunter2"
    )
    alerts.add_channel(project, Channel.Kind.WEBHOOK, URL)
    settings.SECRET_KEY = "another key"
    return Project.objects.get()


def call_for_output(*arguments: str, **options: Any) -> str:
    output = StringIO()
    call_command(*arguments, stdout=output, **options)
    return output.getvalue()


def test_pages_answer_and_runs_are_claimed(lost: Project, run: Run, client: Client) -> None:
    for address in ("/", lost.get_absolute_url(), run.get_absolute_url(), "/readyz"):
        assert client.get(address).status_code in (200, 503)
    assert runs.claim_run("default", "gpu-1")
    assert lost.fetch_address == "https://git.example/x"


def test_each_lost_secret_is_listed_with_what_sets_it_again(lost: Project) -> None:
    lines = call_for_output("secrets").splitlines()
    assert lines == [
        "The credentials of project snakes can't be read any more; set it again: "
        "manage.py add_project snakes --repository ADDRESS, with the user and password in it.",
        "The hook secret of project snakes can't be read any more; set it again: "
        "manage.py install_hook snakes.",
        f"The secret of channel webhook {URL} can't be read any more; set it again: "
        f"manage.py add_channel snakes --webhook {URL}.",
        "3 secrets, of which 3 can't be read with this SECRET_KEY.",
    ]


def test_the_settings_of_a_project_say_which_are_lost(lost: Project, client: Client) -> None:
    client.force_login(User.objects.create_superuser("ada"))
    page = client.get(f"/admin/dashboard/project/{lost.pk}/change/").text
    assert "hook secret of project snakes can&#x27;t be read any more; set it again" in page
    assert "hunter2" not in page
    channel = client.get(f"/admin/dashboard/channel/{Channel.objects.get().pk}/change/").text
    assert "secret of channel webhook" in channel


def test_the_administration_sets_nothing_that_decides_what_hosts_run(
    project: Project, client: Client
) -> None:
    staff = User.objects.create_user("ann", is_staff=True)
    staff.user_permissions.add(Permission.objects.get(codename="change_project"))
    client.force_login(staff)
    address = f"/admin/dashboard/project/{project.pk}/change/"
    form = client.get(address).context["adminform"].form
    given = {name: form.initial.get(name) for name in form.fields if form.initial.get(name) is not None}
    own = {
        "repository": "https://git.example/x",
        "branch": "mine",
        "manifest": "[benchmarks.x]",
        "policy": "#",
    }
    assert not own.keys() & form.fields.keys()
    client.post(address, {**given, **own, "experiment_pairs": 7})
    changed = Project.objects.get()
    assert changed.experiment_pairs == 7
    assert {name: getattr(changed, name) for name in own} == {name: getattr(project, name) for name in own}


def test_a_hook_without_its_secret_says_so(lost: Project, client: Client) -> None:
    answer = client.post(f"/hooks/{lost.slug}/", b"{}", content_type="application/json")
    assert answer.status_code == 401
    assert "install_hook makes a new secret" in answer.json()["error"]


def test_nothing_is_signed_with_an_empty_secret(lost: Project) -> None:
    with pytest.raises(DeliveryError, match="secret can't be read any more"):
        webhook.send_webhook(Delivery(channel=Channel.objects.get()))


def test_adding_the_channel_again_gives_it_a_new_secret(lost: Project) -> None:
    assert "signed with this secret, shown only now" in call_for_output("add_channel", lost.slug, webhook=URL)
    channel = Channel.objects.get()
    assert channel.secret
    assert not is_lost(channel.secret)
    assert "signed with this secret" not in call_for_output("add_channel", lost.slug, webhook=URL)
    call_for_output("add_channel", lost.slug, webhook=URL, renew_secret=True)
    assert Channel.objects.get().secret != channel.secret


def test_secrets_move_to_a_new_key(lost: Project, settings: Any) -> None:
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    Project.objects.update(hook_secret="by the other key")
    settings.SECRET_KEY = "the newest key"
    assert "3 secrets, of which 2 can't be read" in call_for_output("secrets", reencrypt=True)
    settings.SECRET_KEY_FALLBACKS = []
    assert Project.objects.get().hook_secret == "by the other key"
    assert is_lost(Project.objects.get().credentials)


def test_a_key_of_the_environment_is_not_renewed_in_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_KEY", "given")
    with pytest.raises(CommandError, match="SECRET_KEY is set in the environment"):
        call_for_output("secrets", renew_key=True)
