from __future__ import annotations

import base64
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from pytest_django import Settings

from dashboard.forges.connecting import (
    ConnectingError,
    ConnectionRequest,
    check_api_address,
    check_app,
    check_repository,
    check_token,
)
from dashboard.forges.events import ForgeKind
from dashboard.models import ForgeConnection, Project
from tests.dashboard.commands.conftest import manage_here
from tests.dashboard.forges.conftest import OpenStandIn
from tests.dashboard.forges.stand_ins import TOKEN

__all__ = ["manage_here"]
Manage = Callable[..., "subprocess.CompletedProcess[str]"]
REPOSITORY = "GET /repos/{owner}/{repo}"


@pytest.fixture
def connect(
    manage_here: Manage, project: Project, open_stand_in: OpenStandIn, monkeypatch: pytest.MonkeyPatch
) -> Manage:
    """`connect_forge snakes` with a Gitea that has the repository."""
    stand_in = open_stand_in("gitea")
    stand_in.responses[REPOSITORY] = {"id": 1}
    monkeypatch.setenv("PACELINE_FORGE_TOKEN", TOKEN)

    def call(*options: str) -> subprocess.CompletedProcess[str]:
        given = ("--kind", "gitea", "--repository", "ada/snakes", "--api", stand_in.url)
        return manage_here("connect_forge", "snakes", *given, *options)

    return call


def test_a_project_is_connected(connect: Manage) -> None:
    done = connect()
    connection = ForgeConnection.objects.get()
    assert (done.returncode, connection.repository, connection.token) == (0, "ada/snakes", TOKEN)
    assert connection.api_address.endswith("/api/v1")
    assert "Add a webhook there: http://127.0.0.1:8000/hooks/snakes/forge/" in done.stdout
    assert f"shown only now: {connection.webhook_secret}" in done.stdout
    assert TOKEN not in done.stdout + done.stderr
    assert len(base64.b64decode(connection.webhook_secret.removeprefix("whsec_"))) == 32


def test_connecting_again_keeps_the_secret(connect: Manage) -> None:
    connect()
    secret = ForgeConnection.objects.get().webhook_secret
    assert "shown only now" not in connect().stdout
    assert ForgeConnection.objects.get().webhook_secret == secret
    assert "shown only now" in connect("--renew-secret").stdout
    assert ForgeConnection.objects.get().webhook_secret != secret


def test_a_token_that_does_not_work_is_not_kept(connect: Manage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PACELINE_FORGE_TOKEN", "a wrong-token".replace(" ", "-"))
    done = connect()
    assert (done.returncode, ForgeConnection.objects.count()) == (1, 0)
    assert done.stderr.startswith("CommandError: Gitea answered 401: Bad credentials. Its token is wrong")
    assert "a-wrong-token" not in done.stdout + done.stderr


def test_the_token_comes_from_a_file(
    connect: Manage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PACELINE_FORGE_TOKEN")
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    assert connect("--token-from", str(tmp_path / "token")).returncode == 0
    assert ForgeConnection.objects.get().token == TOKEN
    done = connect("--token-from", str(tmp_path / "nothing"))
    assert done.stderr.strip().endswith("nothing can't be read: No such file or directory.")


def test_without_a_token_the_ways_to_give_it_are_named(
    connect: Manage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PACELINE_FORGE_TOKEN")
    done = connect()
    assert (done.returncode, "--token-from FILE or by PACELINE_FORGE_TOKEN" in done.stderr) == (1, True)


def test_a_connection_is_removed(connect: Manage, manage_here: Manage) -> None:
    connect()
    assert manage_here("connect_forge", "snakes", "--remove").returncode == 0
    assert not ForgeConnection.objects.exists()
    assert "isn't connected" in manage_here("connect_forge", "snakes", "--remove").stderr


def test_what_to_connect_must_be_said(manage_here: Manage, project: Project) -> None:
    done = manage_here("connect_forge", "snakes", "--kind", "github")
    assert (done.returncode, "--kind and --repository" in done.stderr) == (1, True)


def test_a_lost_secret_says_how_it_is_set_again(
    connect: Manage, manage_here: Manage, settings: Settings
) -> None:
    connect()
    settings.SECRET_KEY = "another key of this site"
    printed = manage_here("secrets").stdout
    assert printed.count("manage.py connect_forge snakes --kind gitea --repository ada/snakes") == 2


@pytest.mark.parametrize("kind", ForgeKind)
@pytest.mark.parametrize(
    "wrong", ["", "name", "/name", "a/", "../x", "a/..", "a b/c", "a/b?c", "a/b#c", "a/" + "b" * 300]
)
def test_a_wrong_repository_is_refused(kind: ForgeKind, wrong: str) -> None:
    with pytest.raises(ConnectingError, match="isn't a repository of"):
        check_repository(kind, wrong)


def test_only_gitlab_has_groups_in_groups() -> None:
    assert check_repository(ForgeKind.GITLAB, "a/b/c") == "a/b/c"
    with pytest.raises(ConnectingError, match="write owner/name"):
        check_repository(ForgeKind.GITHUB, "a/b/c")


@pytest.mark.parametrize(
    ("kind", "given", "address"),
    [
        (ForgeKind.GITHUB, "", "https://api.github.com"),
        (ForgeKind.GITHUB, "https://api.github.com/", "https://api.github.com"),
        (ForgeKind.GITHUB, "https://git.example.org", "https://git.example.org/api/v3"),
        (ForgeKind.GITLAB, "", "https://gitlab.com/api/v4"),
        (ForgeKind.GITLAB, "https://git.example.org/", "https://git.example.org/api/v4"),
        (ForgeKind.GITLAB, "https://example.org/git/api/v4", "https://example.org/git/api/v4"),
        (ForgeKind.GITEA, "https://codeberg.org", "https://codeberg.org/api/v1"),
        (ForgeKind.BITBUCKET, "", "https://api.bitbucket.org/2.0"),
    ],
)
def test_the_address_of_the_api(kind: ForgeKind, given: str, address: str) -> None:
    assert check_api_address(kind, given) == address


@pytest.mark.parametrize(
    ("kind", "wrong", "sentence"),
    [
        (ForgeKind.GITEA, "", "name the host of yours"),
        (ForgeKind.GITEA, "git.example.org", "must begin with http"),
        (ForgeKind.GITEA, "https://ada:secret@git.example.org", "must not hold a user"),
        (ForgeKind.GITEA, "http://git.example.org", "a token would be sent in the clear"),
        (ForgeKind.GITEA, "https://git.example.org/?x=1", "must be like https"),
    ],
)
def test_a_wrong_address_is_refused(kind: ForgeKind, wrong: str, sentence: str) -> None:
    with pytest.raises(ConnectingError, match=sentence):
        check_api_address(kind, wrong)


@pytest.mark.parametrize(
    "wrong", ["", "  ", "short", "two words here", "line\nbreak-here", "ümlauts-in-it", "x" * 1001]
)
def test_a_wrong_token_is_refused_and_not_shown(wrong: str) -> None:
    with pytest.raises(ConnectingError) as caught:
        check_token(wrong, is_key=False)
    assert not wrong.strip() or wrong not in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "app_id", "installation", "sentence"),
    [
        (ForgeKind.GITLAB, "1", "", "Only GitHub has apps"),
        (ForgeKind.GITHUB, "", "2", "The number of an installation needs"),
        (ForgeKind.GITHUB, "1/2", "", "The number of the app must be"),
    ],
)
def test_wrong_numbers_of_an_app_are_refused(
    kind: ForgeKind, app_id: str, installation: str, sentence: str
) -> None:
    wanted = ConnectionRequest(kind, "a/b", "token", app_id=app_id, installation=installation)
    with pytest.raises(ConnectingError, match=sentence):
        check_app(kind, wanted)


def test_an_app_needs_a_key() -> None:
    with pytest.raises(ConnectingError, match=r"what its \.pem file holds"):
        check_token(TOKEN, is_key=True)
