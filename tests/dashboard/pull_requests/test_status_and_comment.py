"""What a forge is told of a check, held against its published description by a stand-in of each kind."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from dashboard import pull_requests, runs
from dashboard.models import Check, Commit, Experiment, ForgeConnection, PullRequest
from dashboard.pull_requests.status_and_comment import publish_check, send_unpublished_checks
from tests.dashboard.forges.conftest import connection_to, open_stand_in, stand_in
from tests.dashboard.forges.stand_ins import Forced, StandIn
from tests.dashboard.forges.test_answers import COMMENTS, EDIT, KINDS, STATUS
from tests.pages import builders
from tests.pages.check_builders import create_check, create_pull_request, grow_memory, measure_case

__all__ = ["open_stand_in", "stand_in"]
pytestmark = [pytest.mark.django_db, pytest.mark.parametrize("kind", KINDS)]


@pytest.fixture
def line() -> list[Commit]:
    return builders.create_commits(builders.create_project("snakes"), 2)


@pytest.fixture
def connection(stand_in: StandIn, line: list[Commit]) -> ForgeConnection:
    """A forge that takes statuses and comments, and has no comment yet."""
    kind = stand_in.kind
    stand_in.responses |= {
        STATUS[kind]: {"id": 1},
        EDIT[kind]: {"id": 42},
        "GET /user": {"id": 7, "uuid": "u"},
    }
    stand_in.responses |= {f"GET {COMMENTS[kind]}": [], f"POST {COMMENTS[kind]}": {"id": 42}}
    made = connection_to(stand_in, line[0].project)
    made.save()
    return made


@pytest.fixture
def worse(line: list[Commit], connection: ForgeConnection) -> Check:
    check = create_check(line, create_pull_request(line), answer="worse")
    measure_case(check, line, 1.38, verdict="worse")
    return check


def sent_names(stand_in: StandIn) -> list[str]:
    return [sent.name for sent in stand_in.requests if not sent.name.startswith("GET")]


def test_status_and_comment_are_told_once(kind: str, stand_in: StandIn, worse: Check) -> None:
    publish_check(worse.pk)
    publish_check(worse.pk)
    assert sent_names(stand_in) == [STATUS[kind], f"POST {COMMENTS[kind]}"]
    status = stand_in.requests[0]
    assert status.body["description"].startswith("Worse: step time +38 %")
    assert worse.head_hash in status.places.values()
    assert PullRequest.objects.get().comment_id == "42"


def test_two_workers_tell_it_one_after_the_other(kind: str, stand_in: StandIn, worse: Check) -> None:
    PullRequest.objects.update(publishing_until=timezone.now() + timedelta(minutes=1))
    with pytest.raises(runs.Busy):
        publish_check(worse.pk)
    assert sent_names(stand_in) == []
    PullRequest.objects.update(publishing_until=timezone.now())
    publish_check(worse.pk)
    assert len(sent_names(stand_in)) == 2
    assert PullRequest.objects.get().publishing_until is None


def test_the_comment_is_edited_in_place(kind: str, stand_in: StandIn, worse: Check) -> None:
    publish_check(worse.pk)
    Check.objects.update(intended_by="grace")
    publish_check(worse.pk)
    assert sent_names(stand_in)[2:] == [STATUS[kind], EDIT[kind]]
    assert "Intended, says grace" in str(stand_in.last.body)


def test_a_comment_that_was_deleted_is_posted_anew(kind: str, stand_in: StandIn, worse: Check) -> None:
    PullRequest.objects.update(comment_id="41")
    del stand_in.responses[EDIT[kind]]
    publish_check(worse.pk)
    assert sent_names(stand_in)[-1] == f"POST {COMMENTS[kind]}"
    assert PullRequest.objects.get().comment_id == "42"


def test_while_it_is_measured_the_status_alone_says_so(
    kind: str, stand_in: StandIn, connection: ForgeConnection, line: list[Commit]
) -> None:
    check = create_check(line, create_pull_request(line), state="measuring")
    publish_check(check.pk)
    measure_case(check, line, 1.2, state="measuring", verdict="")
    publish_check(check.pk)
    assert sent_names(stand_in) == [STATUS[kind]]


def test_what_is_proved_early_is_told_once_and_completed_at_the_end(
    kind: str, stand_in: StandIn, connection: ForgeConnection, line: list[Commit]
) -> None:
    check = create_check(line, create_pull_request(line), state="measuring")
    row = measure_case(check, line, 1.001, state="measuring", verdict="", finished_at=None)
    grow_memory(row, 1.3)
    publish_check(check.pk)
    pull_requests.proved_worse(row.experiment_id)
    publish_check(check.pk)
    publish_check(check.pk)
    told = [STATUS[kind], STATUS[kind], f"POST {COMMENTS[kind]}"]
    assert sent_names(stand_in) == told
    assert "Step time is still being measured" in str(stand_in.last.body)
    Experiment.objects.update(state="done", verdict="not worse")
    pull_requests.experiment_ended(row.experiment_id)
    publish_check(check.pk)
    assert sent_names(stand_in) == [*told, STATUS[kind], EDIT[kind]]
    states = [sent.body["state"] for sent in stand_in.requests if sent.name == STATUS[kind]]
    assert states[1] == states[2] != states[0]
    assert "still being measured" not in str(stand_in.last.body)


def test_after_an_approval_nothing_waits_for_it(
    kind: str, stand_in: StandIn, connection: ForgeConnection, line: list[Commit]
) -> None:
    check = create_check(line, create_pull_request(line), state="waiting")
    publish_check(check.pk)
    for state in ("requested", "measuring"):
        Check.objects.update(state=state)
        publish_check(check.pk)
        publish_check(check.pk)
    told = [STATUS[kind], EDIT[kind]]
    assert sent_names(stand_in) == [STATUS[kind], f"POST {COMMENTS[kind]}", *told, *told]
    assert "Waiting for an approval" not in str(stand_in.last.body)


def test_the_comment_is_the_newest_checks(
    kind: str, stand_in: StandIn, worse: Check, line: list[Commit]
) -> None:
    newer = create_check(line, worse.pull_request, state="measuring", head_hash="b" * 40)
    PullRequest.objects.update(head_hash=newer.head_hash, base_ref=newer.onto)
    publish_check(worse.pk)
    assert sent_names(stand_in) == [STATUS[kind]]
    # Of the same head the status is the newer one's too.
    Check.objects.filter(pk=newer.pk).update(head_hash=worse.head_hash)
    PullRequest.objects.update(head_hash=worse.head_hash)
    Check.objects.filter(pk=worse.pk).update(published={})
    publish_check(worse.pk)
    assert sent_names(stand_in) == [STATUS[kind]]


@pytest.mark.parametrize("status", [503, 429])
def test_a_forge_that_is_away_or_busy_is_told_later(
    kind: str, stand_in: StandIn, worse: Check, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in.forced.append(Forced(status, {"Retry-After": "60"}))
    publish_check(worse.pk)
    publish_check(worse.pk)
    assert sent_names(stand_in) == []
    sent: list[Any] = []
    monkeypatch.setattr("dashboard.dispatch.send_task", lambda *call: sent.append(call))
    send_unpublished_checks()
    assert sent == [("workers.publish_check", worse.pk)]
    Check.objects.update(published={"again_at": "2026-01-01T00:00:00+00:00", "error": "busy"})
    publish_check(worse.pk)
    assert len(sent_names(stand_in)) == 2
    worse.refresh_from_db()
    assert (worse.published["error"], worse.published["again_at"]) == ("", "")


def test_a_refused_status_keeps_no_comment_back(kind: str, stand_in: StandIn, worse: Check) -> None:
    del stand_in.responses[STATUS[kind]]
    publish_check(worse.pk)
    assert sent_names(stand_in) == [STATUS[kind], f"POST {COMMENTS[kind]}"]
    worse.refresh_from_db()
    assert worse.published["refused"].startswith("Worse")


def test_what_a_forge_refuses_is_kept_and_not_asked_again(kind: str, stand_in: StandIn, worse: Check) -> None:
    stand_in.authorization = ("Authorization", "of somebody else")
    publish_check(worse.pk)
    worse.refresh_from_db()
    assert worse.published["refused"].startswith("Worse")
    assert "a-token-of-the-forge" not in str(worse.published)
