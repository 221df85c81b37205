"""What the test of a repository finds, of real ones."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.utils import timezone
from pytest_django import Settings

from dashboard.access import Visitor
from dashboard.models import Project, RepositoryTest
from dashboard.project_setup.changing import change_repository
from dashboard.project_setup.repository_test_sentences import ADVICE, manifest_sentence, outcome_sentence
from dashboard.project_setup.repository_tests import (
    drop_old_tests,
    folder_of_test,
    perform_test,
    request_test,
    send_waiting_tests,
)
from dashboard.repositories import FailureKind, Unreachable, classify_failure
from tests.dashboard.conftest import MANIFEST, Repository

pytestmark = pytest.mark.django_db

Outcome = RepositoryTest.Outcome


@pytest.fixture
def ada(db: None, settings: Settings, tmp_path: Path) -> User:
    settings.PACELINE_HOME = tmp_path / "home"
    return User.objects.create_user("ada")


def look_at(
    user: User, address: object, credentials: str = "", branch: str = "", project: Project | None = None
) -> RepositoryTest:
    test = request_test(user, str(address), credentials, branch, project)
    perform_test(test.pk)
    test.refresh_from_db()
    return test


def test_a_repository_is_read(ada: User, repository: Repository) -> None:
    repository.git("branch", "topic")
    test = look_at(ada, repository.folder)
    assert (test.outcome, test.facts["branches"], test.facts["branch"]) == (
        "readable",
        ["main", "topic"],
        "main",
    )
    assert test.facts["commit"]["hash"] == repository.git("rev-parse", "main")
    assert (test.facts["commit"]["subject"], test.facts["manifest"]) == ("Add a manifest", MANIFEST)
    assert not list(folder_of_test(0).parent.glob("*"))


def test_a_commit_without_a_manifest_says_so(ada: User, tmp_path: Path) -> None:
    plain = Repository(tmp_path / "plain")
    plain.commit("Begin", train_py="print(1)\n")
    test = look_at(ada, plain.folder)
    assert test.is_readable
    assert manifest_sentence(test).endswith("has no paceline.toml.")


def test_an_empty_repository_says_so(ada: User, tmp_path: Path) -> None:
    assert look_at(ada, Repository(tmp_path / "empty").folder).outcome == Outcome.EMPTY


def test_a_branch_that_is_not_there_says_which_are(ada: User, repository: Repository) -> None:
    test = look_at(ada, repository.folder, branch="topic")
    assert (test.outcome, test.facts["branches"]) == (Outcome.NO_BRANCH, ["main"])


def test_a_folder_without_a_repository_says_so(ada: User, tmp_path: Path) -> None:
    assert look_at(ada, tmp_path).outcome == Outcome.NOT_FOUND


def test_an_internal_address_is_not_asked(ada: User) -> None:
    assert look_at(ada, "https://127.0.0.1:1/x").outcome == Outcome.INTERNAL_ADDRESS


@pytest.fixture
def server(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[HTTPServer]:
    """Answers with its `status`; `received` is what it is sent to tell who asks."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.server.received.append(self.headers.get("Authorization"))  # type: ignore[attr-defined]
            self.send_response(self.server.status)  # type: ignore[attr-defined]
            self.send_header("Location", self.path)
            self.send_header("WWW-Authenticate", 'Basic realm="x"')
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    settings.PACELINE_ALLOW_INTERNAL_REPOSITORIES = True
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    made = HTTPServer(("127.0.0.1", 0), Handler)
    made.received = []  # type: ignore[attr-defined]
    thread = threading.Thread(target=made.serve_forever, args=[0.01], daemon=True)
    thread.start()
    yield made
    made.shutdown()
    made.server_close()
    thread.join()


@pytest.mark.parametrize(
    ("status", "credentials", "outcome"),
    [
        (401, "", Outcome.CREDENTIALS_MISSING),
        (401, "ann:wrong", Outcome.CREDENTIALS_REFUSED),
        (404, "", Outcome.NOT_FOUND),
        (503, "", Outcome.NO_ANSWER),
    ],
)
def test_what_a_server_answers(
    ada: User, server: HTTPServer, status: int, credentials: str, outcome: str
) -> None:
    server.status = status  # type: ignore[attr-defined]
    test = look_at(ada, f"http://127.0.0.1:{server.server_port}/x", credentials)
    assert test.outcome == outcome
    assert "wrong" not in str(test.facts)


@pytest.fixture
def account(ada: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, adds_projects: bool) -> None:
    """The site's, which is known to the server; and what ada may do."""
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login site password secret")
    monkeypatch.setenv("HOME", str(tmp_path))
    if adds_projects:
        ada.user_permissions.add(Permission.objects.get(codename="add_project"))


@pytest.mark.parametrize("adds_projects", [True, False])
def test_an_admin_of_one_project_reads_nothing_with_the_accounts_credentials(
    ada: User,
    project: Project,
    server: HTTPServer,
    account: None,
    adds_projects: bool,
) -> None:
    server.status = 401  # type: ignore[attr-defined]
    look_at(ada, f"http://127.0.0.1:{server.server_port}/private", project=project)
    assert any(server.received) == adds_projects  # type: ignore[attr-defined]


@pytest.mark.parametrize("adds_projects", [True, False])
def test_what_an_admin_of_one_project_named_is_never_fetched_as_the_account(
    ada: User,
    project: Project,
    server: HTTPServer,
    account: None,
    adds_projects: bool,
) -> None:
    """Later its host may lead git to another one, where the account is known."""
    address = f"http://127.0.0.1:{server.server_port}/led-on"
    facts = {"branch": "main"}
    tested = RepositoryTest.objects.create(
        project=project, requested_by=ada, repository=address, outcome=Outcome.READABLE, facts=facts
    )
    change_repository(Visitor(ada), tested)
    moved = Project.objects.get(pk=project.pk)
    received: dict[int, list[str | None]] = {302: [], 401: []}
    for server.status, server.received in received.items():  # type: ignore[attr-defined]
        with pytest.raises(Unreachable):
            moved.mirror.fetch()
    assert (len(received[302]) > 1, any(received[401])) == (adds_projects, adds_projects)
    server.received = []  # type: ignore[attr-defined]
    look_at(ada, address, project=moved)
    assert any(server.received) == adds_projects  # type: ignore[attr-defined]


def test_nobody_there_says_so(ada: User, settings: Settings) -> None:
    settings.PACELINE_ALLOW_INTERNAL_REPOSITORIES = True
    assert look_at(ada, "http://127.0.0.1:1/x").outcome == Outcome.NO_ANSWER


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("Host key verification failed", FailureKind.HOST_KEY),
        ("git@github.com: Permission denied (publickey)", FailureKind.KEY_REFUSED),
        ("ssh: Could not resolve hostname nowhere: Name or service not known", FailureKind.NO_HOST),
        ("unable to access 'https://x/': SSL certificate problem: self-signed", FailureKind.CERTIFICATE),
        ("unable to access 'https://x/': The requested URL returned error: 301", FailureKind.REDIRECTED),
        ("ssh: connect to host x port 22: Connection timed out", FailureKind.NO_ANSWER),
        ("something new", FailureKind.OTHER),
    ],
)
def test_what_git_says_is_understood(reason: str, kind: FailureKind) -> None:
    assert classify_failure(reason) == kind


@pytest.mark.parametrize("outcome", [outcome for outcome in Outcome if outcome != Outcome.READABLE])
def test_each_outcome_has_a_sentence(outcome: str) -> None:
    test = RepositoryTest(repository="https://git.example.org/x", branch="topic", outcome=outcome)
    assert outcome_sentence(test).endswith(".")
    assert (outcome in ADVICE) == (outcome != Outcome.OTHER)


def test_a_test_that_nobody_began_is_sent_again(ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Any] = []
    monkeypatch.setattr("dashboard.dispatch.send_task", lambda *task: sent.append(task[1]))
    waiting = request_test(ada, "/nowhere", "")
    sent.clear()
    send_waiting_tests()
    assert sent == []
    RepositoryTest.objects.update(created_at=timezone.now() - timedelta(minutes=1))
    send_waiting_tests()
    assert sent == [waiting.pk]
    RepositoryTest.objects.update(started_at=timezone.now())
    send_waiting_tests()
    assert sent == [waiting.pk]


def test_tests_are_forgotten_with_what_they_left(ada: User) -> None:
    old, new = request_test(ada, "/old", "ann:secret"), request_test(ada, "/new", "")
    RepositoryTest.objects.filter(pk=old.pk).update(created_at=timezone.now() - timedelta(days=2))
    for test in (old, new):
        folder_of_test(test.pk).mkdir(parents=True)
    drop_old_tests()
    assert RepositoryTest.objects.get() == new
    assert [folder.name for folder in folder_of_test(0).parent.iterdir()] == [f"{new.pk}.git"]
