"""What each kind of forge is sent, held against its published description by the stand-in."""

from __future__ import annotations

from typing import Any

import pytest

from dashboard.forges.errors import ForgeAway, ForgeRefused
from dashboard.forges.events import Action
from dashboard.forges.forge_api import Forge, HeadLocation, Issue, Role, StatusState, status_description
from tests.dashboard.forges.payloads import read_example
from tests.dashboard.forges.stand_ins import Forced, StandIn

KINDS = ("github", "gitlab", "gitea", "bitbucket")
COMMIT = "a" * 40
UUID = "{a54f16da-24e9-4d7f-a3a7-b1ba2cd98aa3}"
HUB, LAB, BUCKET = "/repos/{owner}/{repo}", "/projects/{id}", "/repositories/{workspace}/{repo_slug}"
MERGE_REQUEST, PULL = (
    f"{LAB}/merge_requests/{{merge_request_iid}}",
    f"{BUCKET}/pullrequests/{{pull_request_id}}",
)
STATUS = {
    "github": f"POST {HUB}/statuses/{{sha}}",
    "gitlab": f"POST {LAB}/statuses/{{sha}}",
    "gitea": f"POST {HUB}/statuses/{{sha}}",
    "bitbucket": f"POST {BUCKET}/commit/{{commit}}/statuses/build",
}
COMMENTS = {
    "github": f"{HUB}/issues/{{issue_number}}/comments",
    "gitlab": f"{MERGE_REQUEST}/notes",
    "gitea": f"{HUB}/issues/{{index}}/comments",
    "bitbucket": f"{PULL}/comments",
}
EDIT = {
    "github": f"PATCH {HUB}/issues/comments/{{comment_id}}",
    "gitlab": f"PUT {MERGE_REQUEST}/notes/{{note_id}}",
    "gitea": f"PATCH {HUB}/issues/comments/{{id}}",
    "bitbucket": f"PUT {PULL}/comments/{{comment_id}}",
}
ROLE = {
    "github": f"GET {HUB}/collaborators/{{username}}/permission",
    "gitlab": f"GET {LAB}/members/all/{{user_id}}",
    "gitea": f"GET {HUB}/collaborators/{{collaborator}}/permission",
    "bitbucket": "GET /workspaces/{workspace}/permissions/repositories/{repo_slug}",
}
ISSUES = {kind: f"POST {base}/issues" for kind, base in zip(KINDS, (HUB, LAB, HUB, BUCKET), strict=True)}
OWN = {"id": 7, "uuid": UUID, "login": "paceline", "username": "paceline"}

pytestmark = pytest.mark.parametrize("kind", KINDS)


def comment_of(kind: str, number: int, text: str, author: int = 7) -> dict[str, Any]:
    user = {"id": author, "uuid": UUID if author == 7 else "{else}"}
    if kind == "bitbucket":
        return {"id": number, "content": {"raw": text}, "user": user, "deleted": False}
    return {"id": number, "body": text, "author" if kind == "gitlab" else "user": user}


STATES = {
    "github": ["pending", "success", "failure", "success", "error"],
    "gitlab": ["pending", "success", "failed", "success", "failed"],
    "gitea": ["pending", "success", "failure", "success", "error"],
    "bitbucket": ["INPROGRESS", "SUCCESSFUL", "FAILED", "SUCCESSFUL", "FAILED"],
}


def test_the_state_of_a_commit(kind: str, forge: Forge, stand_in: StandIn) -> None:
    stand_in.responses[STATUS[kind]] = {"id": 1}
    for state in StatusState:
        forge.set_status(COMMIT, state, "2 % slower", "https://example.org/c", "paceline")
    assert [sent.body["state"] for sent in stand_in.requests] == STATES[kind]
    assert {sent.places.get("sha") or sent.places["commit"] for sent in stand_in.requests} == {COMMIT}
    neutral = stand_in.requests[list(StatusState).index(StatusState.NEUTRAL)]
    assert neutral.body["description"] == "No verdict: 2 % slower"


def test_a_comment_is_written_found_and_replaced(kind: str, forge: Forge, stand_in: StandIn) -> None:
    stand_in.responses |= {
        f"POST {COMMENTS[kind]}": lambda sent: comment_of(kind, 31, str(sent.body)),
        f"GET {COMMENTS[kind]}": [comment_of(kind, 30, "Hi"), comment_of(kind, 31, "<!-- ours --> Hi")],
        EDIT[kind]: lambda sent: comment_of(kind, 31, str(sent.body)),
        "GET /user": OWN,
    }
    assert forge.post_comment(5, "<!-- ours --> Hi") == 31
    found = forge.find_own_comment(5, "<!-- ours -->")
    assert found == 31
    forge.edit_comment(5, found, "<!-- ours --> Hello")
    assert "Hello" in str(stand_in.last.body)
    assert "31" in stand_in.last.places.values()


def test_a_marker_that_somebody_else_wrote_is_not_ours(kind: str, forge: Forge, stand_in: StandIn) -> None:
    stand_in.responses |= {f"GET {COMMENTS[kind]}": [comment_of(kind, 31, "ours", 8)], "GET /user": OWN}
    assert forge.find_own_comment(5, "ours") is None


def test_comments_are_read_to_the_last_page(kind: str, forge: Forge, stand_in: StandIn) -> None:
    comments = [comment_of(kind, number, "ours" if number == 250 else "x") for number in range(1, 251)]
    stand_in.responses |= {f"GET {COMMENTS[kind]}": comments, "GET /user": OWN}
    # Gitea tells them all at once.
    stand_in.page_size = 1000 if kind == "gitea" else 100
    assert forge.find_own_comment(5, "ours") == 250


@pytest.mark.parametrize("role", [Role.ADMIN, Role.WRITE, Role.READ])
def test_the_role_of_an_account(kind: str, forge: Forge, stand_in: StandIn, role: Role) -> None:
    levels = {Role.ADMIN: 40, Role.WRITE: 30, Role.READ: 20}
    answers: dict[str, Any] = {
        "github": {"permission": role},
        "gitlab": {"access_level": levels[role]},
        "gitea": {"permission": role},
        "bitbucket": [{"permission": role, "user": {"uuid": UUID}}],
    }
    accounts = {"github": "octo/cat?", "gitlab": "id:12", "gitea": "ada", "bitbucket": UUID}
    stand_in.responses[ROLE[kind]] = answers[kind]
    assert forge.role_of(accounts[kind]) == role


def test_a_stranger_has_no_role(kind: str, forge: Forge, stand_in: StandIn) -> None:
    if kind == "bitbucket":
        stand_in.responses[ROLE[kind]] = []
    accounts = {"github": "nobody", "gitlab": "id:99", "gitea": "nobody", "bitbucket": UUID}
    assert forge.role_of(accounts[kind]) == Role.NONE


def test_an_issue_is_created(kind: str, forge: Forge, stand_in: StandIn) -> None:
    url = "https://forge.example/i/9"
    answers: dict[str, Any] = {
        "github": {"number": 9, "html_url": url},
        "gitlab": {"iid": 9, "web_url": url},
        "gitea": {"number": 9, "html_url": url},
        "bitbucket": {"id": 9, "links": {"html": {"href": url}}},
    }
    stand_in.responses[ISSUES[kind]] = answers[kind]
    assert forge.create_issue("t" * 400, "text") == Issue(9, url)
    assert len(stand_in.last.body["title"]) == 250


PULL_REQUESTS = {
    "github": f"GET {HUB}/pulls",
    "gitlab": f"GET {LAB}/merge_requests",
    "gitea": f"GET {HUB}/pulls",
    "bitbucket": f"GET {BUCKET}/pullrequests",
}
PULL_REQUEST = {
    "github": f"GET {HUB}/pulls/{{pull_number}}",
    "gitlab": f"GET {MERGE_REQUEST}",
    "gitea": f"GET {HUB}/pulls/{{index}}",
    "bitbucket": f"GET {PULL}",
}


def described_pull_request(kind: str, state: str) -> dict[str, Any]:
    """A pull request as the forge's API tells it: the webhooks' object, save for GitLab."""
    if kind == "gitlab":
        return {
            "iid": 1,
            "title": "T",
            "state": "opened" if state == "open" else state,
            "author": {"id": 3, "username": "ada"},
            "web_url": "https://gitlab.com/x/-/merge_requests/1",
            "sha": COMMIT,
            "source_branch": "topic",
            "target_branch": "main",
            "source_project_id": 1,
            "target_project_id": 1,
            "draft": True,
            "merge_commit_sha": None,
        }
    names = {"github": "pull-request-opened", "gitea": "pull-request", "bitbucket": "pull-request-created"}
    payload = read_example(f"{kind}/{names[kind]}")
    request: dict[str, Any] = payload["pullrequest" if kind == "bitbucket" else "pull_request"]
    return {**request, "state": state.upper() if kind == "bitbucket" else state}


def test_the_open_pull_requests(kind: str, forge: Forge, stand_in: StandIn) -> None:
    stand_in.responses[PULL_REQUESTS[kind]] = [described_pull_request(kind, "open")]
    (event,) = forge.list_open_pull_requests()
    assert (event.action, event.number > 0, len(event.head_commit) >= 12) == (Action.UPDATED, True, True)
    assert stand_in.last.query["state"].lower().startswith("open")


def test_one_pull_request_as_it_is_now(kind: str, forge: Forge, stand_in: StandIn) -> None:
    closed = "declined" if kind == "bitbucket" else "closed"
    described = described_pull_request(kind, closed)
    stand_in.responses[PULL_REQUEST[kind]] = described
    if kind == "bitbucket":
        # It abbreviates what it says of a pull request, and nothing else.
        head, tip = (described[side]["commit"]["hash"] for side in ("source", "destination"))
        stand_in.responses[f"GET {PULL}/commits"] = [{"hash": COMMIT}, {"hash": head.ljust(40, "1")}]
        stand_in.responses[f"GET {BUCKET}/commit/{{commit}}"] = {"hash": tip.ljust(40, "2")}
    event = forge.read_pull_request(1)
    assert event.action == Action.CLOSED
    assert len(event.head_commit) == 40
    assert len(event.base_commit) in (0, 40)


def test_where_the_head_of_a_pull_request_is(kind: str, forge: Forge, stand_in: StandIn) -> None:
    stand_in.responses[PULL_REQUEST[kind]] = described_pull_request(kind, "open")
    refs = {
        "github": "refs/pull/5/head",
        "gitlab": "refs/merge-requests/5/head",
        "gitea": "refs/pull/5/head",
        "bitbucket": "refs/heads/branch2",
    }
    assert forge.locate_head(5) == HeadLocation(refs[kind])


def test_access_is_checked(kind: str, forge: Forge, stand_in: StandIn) -> None:
    with pytest.raises(ForgeRefused, match=r"answered 404: Not Found\. The repository's name is wrong"):
        forge.check_access()
    names = {"github": HUB, "gitlab": LAB, "gitea": HUB, "bitbucket": BUCKET}
    stand_in.responses[f"GET {names[kind]}"] = {"id": 1}
    forge.check_access()
    repository = "/".join(stand_in.last.places.values())
    assert repository == "Codertocat/Hello-World"


def test_an_answer_of_another_shape_is_no_answer(kind: str, forge: Forge, stand_in: StandIn) -> None:
    answer = b'[{"number": "x", "iid": "x", "id": "x", "sha": "1"}]'
    stand_in.responses[PULL_REQUESTS[kind]] = lambda _: Forced(200, {}, answer)
    with pytest.raises(ForgeAway, match="answer can't be read"):
        forge.list_open_pull_requests()


def test_a_description_fits_everywhere(kind: str) -> None:
    text = status_description(StatusState.NEUTRAL, "much\nto say " * 30)
    assert (len(text), text[-1], "\n" in text) == (140, "…", False)
