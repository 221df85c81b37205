"""Heads of forks that no ref of the repository leads to: fetched from the fork, as little as it takes."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from dashboard.forges.errors import ForgeAway
from dashboard.models import Check, Project
from dashboard.pull_requests import approve_check
from dashboard.pull_requests.fetching_heads import fork_addresses
from dashboard.pull_requests.receiving import complete_pull_request
from tests.dashboard.alerts.sinks import serve_in_thread
from tests.dashboard.conftest import Repository
from tests.dashboard.forges.conftest import REPOSITORY, connection_to, open_stand_in, stand_in
from tests.dashboard.forges.payloads import change_field, read_example
from tests.dashboard.forges.stand_ins import StandIn
from tests.dashboard.forges.test_answers import BUCKET, COMMIT, PULL
from tests.dashboard.pull_requests.conftest import TRAIN, prepare_check

__all__ = ["open_stand_in", "stand_in"]
pytestmark = pytest.mark.django_db
FORK = "ada/Hello-World"
SECRET = "x-token-auth:secret"


@dataclass
class GitHost:
    """Serves repositories as files, `private` ones to who has the secret. `sent`: by path, as who."""

    folder: Path
    private: set[str] = field(default_factory=set)
    sent: list[tuple[str, str]] = field(default_factory=list)
    address: str = ""

    @contextmanager
    def open(self) -> Iterator[GitHost]:
        host = self

        class Handler(SimpleHTTPRequestHandler):
            def do_GET(self) -> None:
                name = self.path.lstrip("/").partition(".git/")[0]
                word = self.headers.get("Authorization", "").removeprefix("Basic ")
                who = base64.b64decode(word).decode()
                if (name, who) not in host.sent:
                    host.sent.append((name, who))
                if name in host.private and who != SECRET:
                    self.send_response(401)
                    self.send_header("WWW-Authenticate", "Basic")
                    self.end_headers()
                else:
                    super().do_GET()

            def log_message(self, *_: object) -> None:
                """Silent: tests read what was sent."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(self.folder)))
        self.address = f"http://127.0.0.1:{server.server_port}/"
        with serve_in_thread(server):
            yield self

    def publish(self, name: str, repository: Repository, *refs: str) -> None:
        """What these refs lead to, as they are now."""
        folder = self.folder / f"{name}.git"
        folder.mkdir(parents=True, exist_ok=True)
        bare = Repository(folder)
        bare.git("init", "--quiet", "--bare")
        bare.git("fetch", "--quiet", "--no-tags", str(repository.folder), *(f"+{ref}:{ref}" for ref in refs))
        bare.git("update-server-info")


@pytest.fixture
def kind() -> str:
    return "bitbucket"


@pytest.fixture
def git_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[GitHost]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    (tmp_path / "served").mkdir()
    with GitHost(tmp_path / "served").open() as host:
        yield host


@pytest.fixture
def head(git_host: GitHost, tracked: Project, proposed: Repository, stand_in: StandIn) -> str:
    """The head of an open pull request, which its fork alone has, behind a tag and a branch of its own."""
    proposed.git("checkout", "--quiet", "-b", "topic", "feature")
    made = proposed.commit("From elsewhere", train_py=TRAIN.replace("8_000", "9_000"))
    proposed.git("tag", "v9")
    git_host.publish(FORK, proposed, "refs/heads/topic", "refs/tags/v9")
    git_host.publish(REPOSITORY, proposed, "refs/heads/main")
    tracked.repository, tracked.credentials = f"{git_host.address}{REPOSITORY}.git", SECRET
    tracked.save()
    connection_to(stand_in, tracked).save()
    tip = proposed.git("rev-parse", "main")
    stand_in.responses |= {
        f"GET {PULL}": described_request(made, tip),
        f"GET {PULL}/commits": [{"hash": COMMIT}, {"hash": made}],
        f"GET {BUCKET}/commit/{{commit}}": {"hash": tip},
    }
    return made


def described_request(head: str, tip: str, fork: str | None = FORK) -> dict[str, object]:
    payload = json.loads(json.dumps(read_example("bitbucket/pull-request-created")))
    changes = {
        "id": 7, "state": "OPEN", "source.commit.hash": head[:12], "source.branch.name": "topic",
        "source.repository.full_name": fork, "destination.repository.full_name": REPOSITORY,
        "destination.commit.hash": tip[:12], "destination.branch.name": "main",
    }  # fmt: skip
    for path, value in changes.items():
        change_field(payload, f"pullrequest.{path}", value)
    request: dict[str, object] = payload["pullrequest"]
    return request


def receive_check(project: Project) -> Check:
    """The newest, after its pull request was read from the forge."""
    complete_pull_request(project.pk, 7)
    return Check.objects.latest("pk")


def approve_and_prepare(check: Check) -> Check:
    approve_check(check, check.head_hash, "grace")
    return prepare_check(check)


def test_nothing_of_a_fork_is_fetched_before_its_very_head_is_approved(
    tracked: Project, git_host: GitHost, head: str
) -> None:
    check = receive_check(tracked)
    assert (check.head_hash, check.state, prepare_check(check).state) == (head, "waiting", "waiting")
    assert git_host.sent == []
    assert approve_and_prepare(check).state == "measuring"
    assert check.head_commit
    assert check.head_commit.hash == head


def test_a_public_fork_is_read_without_the_projects_secret(
    tracked: Project, git_host: GitHost, head: str
) -> None:
    approve_and_prepare(receive_check(tracked))
    assert git_host.sent == [(REPOSITORY, SECRET), (FORK, "")]


def test_a_private_fork_is_read_with_the_projects_secret(
    tracked: Project, git_host: GitHost, head: str
) -> None:
    git_host.private = {FORK}
    assert approve_and_prepare(receive_check(tracked)).state == "measuring"
    assert git_host.sent == [(REPOSITORY, SECRET), (FORK, ""), (FORK, SECRET)]


def test_a_fork_cannot_add_tags(tracked: Project, head: str) -> None:
    approve_and_prepare(receive_check(tracked))
    refs = tracked.mirror.lines("for-each-ref", "--format=%(refname)")
    assert refs == ["refs/heads/main", "refs/proposed/7"]


def test_a_fork_that_nobody_lets_read_is_tried_for_a_while(
    tracked: Project, git_host: GitHost, head: str
) -> None:
    git_host.private = {FORK}
    Project.objects.update(credentials="x-token-auth:wrong")
    check = approve_and_prepare(receive_check(tracked))
    assert check.state == "requested"
    Check.objects.update(requested_at=check.requested_at - timedelta(minutes=20))
    prepare_check(check)
    assert (check.answer, check.reason["code"]) == ("not known", "can't be measured")
    assert f"The fork {FORK} can be read neither by everybody" in check.reason["text"]
    assert "wrong" not in check.reason["text"]


def test_a_fork_that_is_gone_is_not_known(tracked: Project, stand_in: StandIn, head: str) -> None:
    check = receive_check(tracked)
    stand_in.responses[f"GET {PULL}"] = described_request(head, COMMIT, fork=None)
    approve_and_prepare(check)
    assert check.reason == {
        "code": "can't be measured",
        "text": "The fork that pull request 7 comes from is gone, or the token may not see it.",
    }


def test_a_head_that_was_replaced_in_the_fork_is_gone(
    tracked: Project, proposed: Repository, git_host: GitHost, head: str
) -> None:
    check = receive_check(tracked)
    proposed.git("reset", "--quiet", "--hard", "feature")
    git_host.publish(FORK, proposed, "refs/heads/topic")
    assert approve_and_prepare(check).reason == {"code": "head is gone", "head": head}


def test_a_newer_head_waits_anew(
    tracked: Project, proposed: Repository, git_host: GitHost, stand_in: StandIn, head: str
) -> None:
    check = receive_check(tracked)
    approve_check(check, head, "grace")
    newer = proposed.commit("And more", train_py=TRAIN)
    git_host.publish(FORK, proposed, "refs/heads/topic")
    stand_in.responses[f"GET {PULL}"] = described_request(newer, proposed.git("rev-parse", "main"))
    stand_in.responses[f"GET {PULL}/commits"] = [{"hash": newer}, {"hash": head}]
    assert receive_check(tracked).state == "waiting"
    check.refresh_from_db()
    assert (check.state, check.reason) == ("cancelled", {"code": "newer head"})


def test_closing_is_heard_when_the_fork_is_gone(tracked: Project, stand_in: StandIn, head: str) -> None:
    check = receive_check(tracked)
    closed = described_request(head, COMMIT, fork=None) | {"state": "DECLINED"}
    stand_in.responses = {f"GET {PULL}": closed}
    complete_pull_request(tracked.pk, 7)
    check.refresh_from_db()
    assert (check.state, check.reason) == ("cancelled", {"code": "pull request closed"})


def test_a_head_that_isnt_listed_yet_is_asked_for_again(
    tracked: Project, stand_in: StandIn, head: str
) -> None:
    stand_in.responses[f"GET {PULL}/commits"] = [{"hash": COMMIT}]
    with pytest.raises(ForgeAway, match=f"doesn't know the commit {head[:12]} of #7"):
        complete_pull_request(tracked.pk, 7)


def test_two_commits_of_the_same_digits_are_no_head(tracked: Project, stand_in: StandIn, head: str) -> None:
    twin = head[:12] + "0" * 28
    stand_in.responses[f"GET {PULL}/commits"] = [{"hash": twin}, {"hash": head}]
    with pytest.raises(ForgeAway):
        complete_pull_request(tracked.pk, 7)
    assert not Check.objects.exists()


PUBLIC = f"https://bitbucket.org/{FORK}.git"


@pytest.mark.parametrize(
    ("address", "addresses"),
    [
        (f"https://bitbucket.org/{REPOSITORY}", [PUBLIC]),
        (f"https://me:secret@bitbucket.org/{REPOSITORY}.git", [PUBLIC, f"https://me:secret@{PUBLIC[8:]}"]),
        (f"git@bitbucket.org:{REPOSITORY.lower()}.git", [PUBLIC, f"git@bitbucket.org:{FORK}.git"]),
        (
            f"ssh://git@altssh.bitbucket.org:443/{REPOSITORY}.git/",
            [PUBLIC, f"ssh://git@altssh.bitbucket.org:443/{FORK}.git"],
        ),
        (f"bitbucket:{REPOSITORY}", [PUBLIC, f"bitbucket:{FORK}.git"]),
        # Another place than the forge's: neither its secret nor its folders are for a fork.
        ("https://me:secret@mirror.example/snakes.git", [PUBLIC]),
        (f"/srv/git/{REPOSITORY}.git", [PUBLIC]),
        (f"file:///srv/git/{REPOSITORY}", [PUBLIC]),
        (f"../git/{REPOSITORY}", [PUBLIC]),
        ("", [PUBLIC]),
    ],
)
def test_where_a_fork_is_looked_for(address: str, addresses: list[str]) -> None:
    assert fork_addresses(address, REPOSITORY, FORK) == addresses
