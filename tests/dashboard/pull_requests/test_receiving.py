"""From a forge's signed webhook to a check, and what people say of it in comments."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from dashboard.models import AuditEntry, Check, ForgeConnection, Project, PullRequest
from dashboard.pull_requests.receiving import complete_pull_request, handle_comment
from dashboard.sentences.administration.audit import describe_actor, describe_entry
from tests.dashboard.conftest import Repository
from tests.dashboard.forges.conftest import connection_to, open_stand_in, stand_in
from tests.dashboard.forges.payloads import EXAMPLES, SECRET, Sender, change_field, read_example
from tests.dashboard.forges.stand_ins import StandIn
from tests.dashboard.forges.test_answers import KINDS, ROLE, UUID
from tests.dashboard.pull_requests.conftest import prepare_check
from tests.dashboard.triggers.test_forge_hook import REPOSITORIES

__all__ = ["open_stand_in", "stand_in"]
pytestmark = pytest.mark.django_db
GITHUB = "github/pull-request-opened"
REPOSITORY_PATHS = {"gitlab": "project.path_with_namespace"}


def connect_project(project: Project, kind: str) -> None:
    values = {"api_address": "https://forge.example", "token": "t", "webhook_secret": SECRET}
    ForgeConnection.objects.create(project=project, kind=kind, repository=REPOSITORIES[kind], **values)


def deliver_webhook(name: str, **changes: Any) -> Any:
    """Send an example, of the connected repository, with the values at some paths changed."""
    kind = name.partition("/")[0]
    payload = read_example(name)
    change_field(payload, REPOSITORY_PATHS.get(kind, "repository.full_name"), REPOSITORIES[kind])
    for path, value in changes.items():
        change_field(payload, path.replace("__", "."), value)
    body = json.dumps(payload).encode()
    headers = Sender(kind).headers(EXAMPLES[name], body)
    client = Client(enforce_csrf_checks=True)
    return client.post("/hooks/snakes/forge/", body, content_type="application/json", headers=headers)


def test_a_pull_request_of_github_is_checked(tracked: Project, proposed: Repository) -> None:
    connect_project(tracked, "github")
    head, tip = proposed.git("rev-parse", "feature", "main").split()
    changes = {"pull_request__head__sha": head, "pull_request__base__sha": tip}
    changes |= {"pull_request__base__ref": "main", "pull_request__draft": False}
    assert deliver_webhook(GITHUB, **changes).status_code == 202
    check = Check.objects.get()
    assert (check.head_hash, check.onto, check.onto_hash) == (head, "main", tip)
    assert check.state == "requested"
    assert prepare_check(check).state == "measuring"


def test_one_delivery_has_its_effect_once(tracked: Project) -> None:
    connect_project(tracked, "github")
    for _ in range(3):
        deliver_webhook(GITHUB, pull_request__draft=False)
    assert Check.objects.count() == 1


def test_a_draft_is_not_checked_before_it_is_ready(tracked: Project) -> None:
    connect_project(tracked, "github")
    deliver_webhook(GITHUB, pull_request__draft=True)
    assert not Check.objects.exists()
    deliver_webhook(GITHUB, pull_request__draft=False)
    assert Check.objects.count() == 1


def test_a_push_to_a_draft_ends_the_check_of_the_head_before(tracked: Project) -> None:
    connect_project(tracked, "github")
    deliver_webhook(GITHUB, pull_request__draft=False)
    deliver_webhook(GITHUB, pull_request__draft=True)
    assert Check.objects.get().state == "requested"
    pushed = {"pull_request__head__sha": "b" * 40}
    deliver_webhook(GITHUB, pull_request__draft=True, **pushed)
    old = Check.objects.get()
    assert (old.state, old.reason["code"]) == ("cancelled", "newer head")
    deliver_webhook(GITHUB, pull_request__draft=False, **pushed)
    assert Check.objects.latest("pk").head_hash == "b" * 40


@pytest.mark.parametrize("name", ["gitlab/merge-request", "gitea/pull-request"])
def test_pull_requests_of_other_forges_are_known(tracked: Project, name: str) -> None:
    connect_project(tracked, name.partition("/")[0])
    assert deliver_webhook(name).status_code == 202
    assert PullRequest.objects.count() == 1


def test_a_closed_one_ends_its_check(tracked: Project) -> None:
    connect_project(tracked, "github")
    deliver_webhook(GITHUB, pull_request__draft=False)
    number = PullRequest.objects.get().number
    deliver_webhook("github/pull-request-closed", number=number, pull_request__number=number)
    assert Check.objects.get().state == "cancelled"


@pytest.mark.parametrize("kind", ["github"])
def test_an_abbreviated_head_is_completed_by_its_forge(tracked: Project, stand_in: StandIn) -> None:
    connection = connection_to(stand_in, tracked)
    connection.save()
    request = read_example("github/pull-request-opened")["pull_request"] | {"draft": False}
    stand_in.responses["GET /repos/{owner}/{repo}/pulls/{pull_number}"] = request
    complete_pull_request(tracked.pk, 2)
    assert Check.objects.get().head_hash == request["head"]["sha"]


@pytest.fixture
def refused(tracked: Project) -> Check:
    row = PullRequest.objects.create(project=tracked, number=2, head_hash="a" * 40, base_ref="main")
    return Check.objects.create(
        project=tracked, pull_request=row, head_hash="a" * 40, onto="main", minutes=20, floor=0.03,
        state="done", answer="worse",
    )  # fmt: skip


def role_answer(kind: str, role: str) -> Any:
    """What each forge says of an account that may write, or only read."""
    level = {"write": 30, "read": 20}[role]
    return {
        "github": {"permission": role},
        "gitlab": {"access_level": level},
        "gitea": {"permission": role},
        "bitbucket": [{"permission": role, "user": {"uuid": UUID}}],
    }[kind]


ACCOUNTS = {"github": "ada", "gitlab": "id:12", "gitea": "ada", "bitbucket": UUID}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("role", "intended"), [("write", "Ada"), ("read", "")])
def test_who_may_write_calls_it_intended(
    tracked: Project, stand_in: StandIn, refused: Check, kind: str, role: str, intended: str
) -> None:
    connection_to(stand_in, tracked).save()
    stand_in.responses[ROLE[kind]] = role_answer(kind, role)
    handle_comment(tracked.pk, 2, ACCOUNTS[kind], "Ada", "intended")
    refused.refresh_from_db()
    assert refused.intended_by == (f"Ada ({kind})" if intended else "")


@pytest.mark.parametrize("kind", ["github"])
@pytest.mark.parametrize(
    ("said", "values", "action", "sentence"),
    [
        ("intended", {}, "check intended", "called intended check"),
        (f"intended {'a' * 40}", {}, "check intended", "called intended check"),
        ("again", {}, "check requested", "asked for check"),
        (
            f"approve {'a' * 40}",
            {"state": "waiting", "answer": ""},
            "check approved",
            "let the head run of check",
        ),
    ],
)
def test_what_a_comment_does_stands_in_the_audit_log(
    tracked: Project,
    stand_in: StandIn,
    refused: Check,
    said: str,
    values: dict[str, str],
    action: str,
    sentence: str,
) -> None:
    connection_to(stand_in, tracked).save()
    stand_in.responses[ROLE["github"]] = role_answer("github", "write")
    Check.objects.update(**values)
    handle_comment(tracked.pk, 2, "ada", "Ada", said)
    entry = AuditEntry.objects.get()
    about = Check.objects.latest("pk")
    assert (entry.source, entry.action, entry.project, entry.user) == ("forge", action, tracked, None)
    assert entry.details == {"head": "a" * 40, "pull_request": 2, "forge_account": "ada"}
    assert describe_actor(entry) == "Ada (github), by a comment"
    assert describe_entry(entry) == f"{sentence} {about.pk}"


@pytest.mark.parametrize("kind", ["github"])
@pytest.mark.parametrize(
    ("role", "said"),
    [("read", "intended"), ("write", f"intended {'b' * 40}"), ("write", f"approve {'b' * 40}")],
)
def test_what_a_comment_may_not_do_leaves_no_entry(
    tracked: Project, stand_in: StandIn, refused: Check, role: str, said: str
) -> None:
    connection_to(stand_in, tracked).save()
    stand_in.responses[ROLE["github"]] = role_answer("github", role)
    handle_comment(tracked.pk, 2, "ada", "Ada", said)
    assert not AuditEntry.objects.exists()


@pytest.mark.parametrize("kind", ["github"])
@pytest.mark.parametrize(
    ("said", "state"), [(f"approve {'a' * 40}", "requested"), (f"approve {'b' * 40}", "waiting")]
)
def test_a_comment_approves_the_head_that_it_names(
    tracked: Project, stand_in: StandIn, refused: Check, said: str, state: str
) -> None:
    connection_to(stand_in, tracked).save()
    stand_in.responses[ROLE["github"]] = role_answer("github", "write")
    Check.objects.update(state="waiting", answer="")
    handle_comment(tracked.pk, 2, "ada", "Ada", said)
    refused.refresh_from_db()
    assert refused.state == state


def test_what_is_intended_is_the_head_that_was_there(
    tracked: Project, refused: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect_project(tracked, "github")
    sent: list[Any] = []
    monkeypatch.setattr("dashboard.dispatch.send_task", lambda *call: sent.append(call))
    PullRequest.objects.update(number=1)
    values = {"comment__body": "/paceline intended", "issue__pull_request": {"url": "https://x"}}
    deliver_webhook("github/issue-comment-created", **values)
    assert [call[-1] for call in sent] == [f"intended {'a' * 40}"]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("/paceline intended", "intended"),
        ("We want that.\n/paceline again\n", "again"),
        (f"/paceline approve {'a1' * 20}", f"approve {'a1' * 20}"),
        ("/paceline approve 0123abcdef", None),
        ("/paceline approve", None),
        ("please /paceline intended", None),
        ("/paceline intended by nobody", None),
    ],
)
def test_a_command_has_a_line_of_its_own(
    tracked: Project, body: str, said: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect_project(tracked, "github")
    sent: list[Any] = []
    monkeypatch.setattr("dashboard.dispatch.send_task", lambda *call: sent.append(call))
    deliver_webhook(
        "github/issue-comment-created", comment__body=body, issue__pull_request={"url": "https://x"}
    )
    assert [call[-1] for call in sent] == ([said] if said else [])
