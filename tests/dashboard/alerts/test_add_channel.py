from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from pytest_django import Settings

from dashboard.mail_server import PRINTED
from dashboard.models import AuditEntry, Channel, Project


def add_channel(*arguments: str) -> str:
    out = StringIO()
    call_command("add_channel", "snakes", *arguments, stdout=out)
    return out.getvalue()


def test_a_mail_address_is_added(project: Project) -> None:
    output = add_channel("--email", "team@example.org", "--minimum-percent", "5")
    channel = Channel.objects.get()
    assert (channel.kind, channel.address, channel.minimum_percent) == ("email", "team@example.org", 5)
    assert output == "Confirmed regressions of snakes of 5 % and more are sent to team@example.org.\n"


def test_mail_that_nobody_gets_is_told_as_such(project: Project, settings: Settings) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.console.EmailBackend"
    assert PRINTED in add_channel("--email", "team@example.org")
    assert PRINTED not in add_channel("--webhook", "https://203.0.113.9.invalid/hook")


def test_the_secret_of_a_webhook_is_shown_once(project: Project) -> None:
    first = add_channel("--webhook", "https://203.0.113.9.invalid/hook")
    second = add_channel("--webhook", "https://203.0.113.9.invalid/hook")
    secret = Channel.objects.get().secret
    assert len(secret) >= 32
    assert secret in first
    assert secret not in second


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("https://ci.example.org:s3cret/hook", "its port is no number up to 65535"),
        ("https://ci.example.org:99999/hook", "its port is no number up to 65535"),
        ("https://[::1/hook", "it can't be read"),
    ],
)
def test_a_url_that_cannot_be_read_is_told_without_it(project: Project, url: str, problem: str) -> None:
    with pytest.raises(CommandError, match=f"^The webhook's URL is wrong: {problem}\\.$"):
        add_channel("--webhook", url)
    assert not Channel.objects.exists()


def test_adding_again_changes_the_minimum(project: Project) -> None:
    add_channel("--email", "team@example.org")
    Channel.objects.update(enabled=False)
    add_channel("--email", "team@example.org", "--minimum-percent", "7")
    recorded = AuditEntry.objects.filter(action="channel changed").order_by("pk")
    assert [entry.details["change"] for entry in recorded] == ["added", "edited"]
    channel = Channel.objects.get()
    assert (channel.minimum_percent, channel.enabled) == (7, True)


HOOK = "https://93.184.216.34/services/T0/B0/a-secret-key"


def test_the_url_of_a_chat_is_read_from_a_file_and_not_shown(project: Project, tmp_path: Path) -> None:
    file = tmp_path / "url"
    file.write_text(f"{HOOK}\n")
    output = add_channel("--kind", "slack", "--name", "#training", "--secret-file", str(file))
    assert output == "Confirmed regressions of snakes are sent to slack #training.\n"
    assert Channel.objects.get().secret == HOOK


def test_a_token_is_read_from_the_environment(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PACELINE_CHANNEL_SECRET", "a-token")
    add_channel("--kind", "matrix", "--server", "https://93.184.216.34", "--room", "!room:example.org")
    channel = Channel.objects.get()
    assert (channel.address, channel.secret) == ("https://93.184.216.34/!room:example.org", "a-token")


def test_adding_a_chat_again_changes_it(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PACELINE_CHANNEL_SECRET", HOOK)
    for minimum in ("5", "7"):
        add_channel("--kind", "slack", "--minimum-percent", minimum)
    assert Channel.objects.get().minimum_percent == 7


def test_no_secret_is_kept_in_plain(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PACELINE_CHANNEL_SECRET", HOOK)
    add_channel("--kind", "slack")
    with connection.cursor() as cursor:
        cursor.execute("SELECT dashboard_channel::text FROM dashboard_channel")
        assert "a-secret-key" not in str(cursor.fetchall())


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--kind", "slack"], "Webhook URL is missing: give --secret-file or set PACELINE_CHANNEL_SECRET"),
        (["--kind", "slack", "--secret-file", "/nowhere"], "--secret-file: /nowhere can't be read"),
        (["--kind", "slack", "--secret-file", "/dev/null"], "Webhook URL is missing."),
        (["--email", "nobody"], "'nobody' is not an e-mail address"),
        (["--webhook", "example.org/hook"], "must begin with http"),
        (["--webhook", "http://127.0.0.1/hook"], "127.0.0.1 is an internal address; an"),
        (["--webhook", "http://[::ffff:10.0.0.1]/hook"], " internal address"),
        (["--email", "a@example.org", "--minimum-percent", "-1"], "minimum-percent must be 0 or more"),
        (["--email", "a@example.org", "--minimum-percent", "nan"], "minimum-percent must be 0 or more"),
        (["--email", "a@example.org", "--minimum-percent", "few"], "minimum-percent"),
        ([], "one of the arguments --email --webhook --kind is required"),
    ],
)
def test_what_can_not_work_is_refused(project: Project, arguments: list[str], sentence: str) -> None:
    with pytest.raises(CommandError, match=sentence.replace("[", r"\[")):
        add_channel(*arguments)
    assert not Channel.objects.exists()


def test_a_project_that_is_not_there_is_named(project: Project) -> None:
    with pytest.raises(CommandError, match="did you mean snakes"):
        call_command("add_channel", "snake", "--email", "a@example.org")
