"""What a host says over HTTP, what it may do, and what it is told where it may not."""

from __future__ import annotations

import json
from typing import Any

import psycopg
import pytest
from django.db import OperationalError
from django.test import Client
from django.utils import timezone

from dashboard import hosts, runs
from dashboard.api.host_requests import UNKNOWN_HOST
from dashboard.host_protocol import OLDEST_PROTOCOL, PROTOCOL
from dashboard.models import Document, Experiment, Machine, Run, RunLog
from tests.dashboard import documents
from tests.dashboard.hosts.conftest import Call

pytestmark = pytest.mark.django_db


@pytest.fixture
def lease(call: Call, run: Run) -> dict[str, Any]:
    """That of the run, which the machine has claimed."""
    lease: dict[str, Any] = call("claim", {"fingerprint": {"cpu_count": 2}})[1]["assignment"]["lease"]
    assert lease["key"] == run.pk
    return lease


def lease_header(lease: dict[str, Any]) -> dict[str, str]:
    return {"Paceline-Lease": f"{lease['key']} {lease['attempt']} {lease['token']}"}


def advance_to_storing(call: Call, lease: dict[str, Any]) -> None:
    for state in ("preparing", "measuring", "storing"):
        assert call("runs/advance", {"lease": lease, "state": state}) == (200, {})


def test_a_run_goes_its_whole_way(call: Call, run: Run, lease: dict[str, Any]) -> None:
    advance_to_storing(call, lease)
    said = {"lease": lease, "progress": 0.5, "text": "half", "log": "hello\n"}
    assert call("runs/heartbeat", said) == (200, {"held": True})
    document = documents.encoded_document()
    assert call("runs/document", document, **lease_header(lease)) == (200, {})
    # Safe to repeat: an answer may be lost.
    assert call("runs/document", document, **lease_header(lease)) == (200, {})
    run.refresh_from_db()
    assert (run.state, run.fingerprint) == ("done", {"cpu_count": 2})
    assert RunLog.objects.get().text == "hello\n"
    assert Document.objects.count() == 1


def test_advancing_twice_is_an_answer_that_was_lost(call: Call, lease: dict[str, Any]) -> None:
    for _ in range(2):
        assert call("runs/advance", {"lease": lease, "state": "preparing"}) == (200, {})
    status, said = call("runs/advance", {"lease": lease, "state": "storing"})
    assert (status, "can't be storing" in said["detail"]) == (409, True)


def test_a_bad_document_is_told_and_the_run_fails(call: Call, run: Run, lease: dict[str, Any]) -> None:
    advance_to_storing(call, lease)
    status, said = call("runs/document", b"{}", **lease_header(lease))
    assert (status, said["detail"]) == (422, "format: is missing")
    said = {"lease": lease, "failure": "bad document", "reason": said["detail"], "log": "bye\n"}
    assert call("runs/fail", said) == (200, {})
    run.refresh_from_db()
    assert (run.state, run.failure, run.reason) == ("failed", "bad document", "format: is missing")


def test_a_reason_holds_nothing_that_a_terminal_obeys(call: Call, run: Run, lease: dict[str, Any]) -> None:
    """Measured code printed it last; `manage.py trigger --wait` prints it where somebody types commands."""
    printed = "\x1b[1;31mbad\x1b[0m \x1b]52;c;cm0gLXJm\x07thing\x9b2J\x1bc\x08\r\n\x1b]0;never ended"
    said = {"lease": lease, "failure": "crash", "reason": printed, "log": printed}
    assert call("runs/fail", said) == (200, {})
    run.refresh_from_db()
    assert run.reason == "bad thing2J"
    assert RunLog.objects.get().text == printed


def test_another_machines_work_is_nobody_elses(call: Call, lease: dict[str, Any]) -> None:
    other = hosts.join_machine(hosts.create_join_code(runs.pool_named("default"), "Eve"), "gpu-2")[1]
    status, said = call("runs/advance", {"lease": lease, "state": "preparing"}, token=other)
    assert (status, said["detail"]) == (409, f"Run {lease['key']} is no longer this machine's.")
    assert call("runs/document", b"{}", token=other, **lease_header(lease))[0] == 409


@pytest.mark.parametrize("guess", ["", "host_guessed", "\x00", "é" * 500])
def test_without_a_token_nothing_is_told(client: Client, guess: str, machine: Machine) -> None:
    for path in ("register", "claim", "runs/document", "git/snakes.git/git-upload-pack"):
        answer = client.post(f"/api/v1/host/{path}", headers={"Authorization": f"Bearer {guess}"})
        assert (answer.status_code, "token" in answer.json()["detail"]) == (401, True)


@pytest.mark.parametrize(
    ("path", "message", "sentence"),
    [
        ("claim", b"{", "The message is no JSON with numbers that can be stored."),
        ("claim", b"[]", "The message must be an object."),
        ("claim", {}, "fingerprint must be an object."),
        ("runs/advance", {"state": "preparing"}, "lease must be an object."),
        ("runs/advance", {"lease": {"key": 1, "attempt": 1, "token": "x"}}, "lease.token must be a UUID."),
        ("runs/advance", {"lease": {"key": -1}}, "lease.token must be a text."),
        ("runs/heartbeat", b'{"progress": NaN}', "The message is no JSON with numbers that can be stored."),
        (
            "runs/heartbeat",
            b'{"progress": ' + b"9" * 400 + b"}",
            "The message is no JSON with numbers that can be stored.",
        ),
        ("runs/heartbeat", b'{"progress": 1e999}', "The message is no JSON with numbers that can be stored."),
        ("register", {"protocol": True}, "protocol must be a whole number up to 32767."),
        ("register", {"protocol": 1, "version": "x" * 61}, "version must be 60 characters long at most."),
        (
            "register",
            {"protocol": 1, "version": "\0"},
            "version must hold no NUL and no half of a character.",
        ),
        ("register", b'{"version": "\\ud800"}', "version must hold no NUL and no half of a character."),
        ("claim", {"fingerprint": {"x": ["\0"]}}, "fingerprint must hold no NUL and no half of a character."),
        ("runs/fail", {"a\0": 1}, "The message has a NUL or half a character in a name."),
        (
            "experiments/pair",
            {"pair": {"phases": {"\0": [1, 1]}}},
            "pair must hold no NUL and no half of a character.",
        ),
        ("experiments/pair", {"commands": ["\0"]}, "commands must hold no NUL and no half of a character."),
        ("claim", {"fingerprint": {"x": "y" * 70_000}}, "fingerprint must be 65536 characters long at most."),
        ("runs/document", b"{}", "Paceline-Lease must be the lease's key, attempt and token."),
    ],
)
def test_a_message_that_cannot_be_read_names_its_field(
    call: Call, path: str, message: Any, sentence: str
) -> None:
    assert call(path, message) == (400, {"detail": sentence})


@pytest.mark.parametrize(
    ("protocol", "sentence"),
    [(OLDEST_PROTOCOL - 1, "update the host"), (PROTOCOL + 1, "update the site first")],
)
def test_an_agent_that_does_not_fit_is_told_so_and_gets_no_work(
    call: Call, run: Run, protocol: int, sentence: str
) -> None:
    said = {"protocol": protocol, "version": "0.0.1", "fingerprint": {}, "kept_runs": []}
    status, answer = call("register", said)
    assert (status, sentence in answer["detail"]) == (426, True)
    if protocol < OLDEST_PROTOCOL:
        assert call("claim", {"fingerprint": {}})[1]["assignment"] is None


@pytest.mark.parametrize("act", [hosts.pause_machine, hosts.drain_machine])
def test_a_machine_that_is_put_aside_gets_nothing_more(
    call: Call, run: Run, machine: Machine, act: Any
) -> None:
    act(machine)
    machine.refresh_from_db()
    assert call("claim", {"fingerprint": {}})[1] == {"state": machine.state, "assignment": None}
    assert call("heartbeat") == (200, {"state": machine.state})
    hosts.resume_machine(machine)
    assert call("claim", {"fingerprint": {}})[1]["assignment"]["kind"] == "run"


def register_agent(call: Call, **changed: Any) -> Any:
    said = {"protocol": PROTOCOL, "version": "1", "fingerprint": {}, "kept_runs": [], **changed}
    status, answer = call("register", said)
    assert status == 200
    return answer


def test_a_full_disk_is_kept_until_there_is_room_again(call: Call, machine: Machine) -> None:
    kept = []
    for said in ({}, {"free_bytes": 64 * 2**20 - 1}, {"free_bytes": 2**50}):
        assert call("heartbeat", said)[0] == 200
        machine.refresh_from_db()
        kept.append(machine.too_few_bytes)
    assert kept == [None, 64 * 2**20 - 1, None]


def test_a_drained_agent_that_is_started_again_is_active(call: Call, machine: Machine) -> None:
    hosts.drain_machine(machine)
    register_agent(call)
    assert call("heartbeat") == (200, {"state": "active"})


def test_a_worker_that_begins_anew_undoes_no_drain(call: Call, machine: Machine) -> None:
    hosts.drain_machine(machine)
    register_agent(call, same_agent=True)
    assert call("heartbeat") == (200, {"state": "draining"})


def test_a_run_that_kills_its_host_three_times_is_given_up(call: Call, run: Run) -> None:
    for _ in range(3):
        assert call("claim", {"fingerprint": {}})[1]["assignment"]["kind"] == "run"
        register_agent(call)
    run.refresh_from_db()
    assert (run.state, run.failure, run.attempt) == ("failed", "lost", 3)


def test_an_agent_that_a_person_ends_loses_no_attempt(call: Call, run: Run, lease: dict[str, Any]) -> None:
    call("stopping")
    run.refresh_from_db()
    assert (run.state, run.attempt) == ("requested", 0)
    assert call("runs/heartbeat", {"lease": lease, "text": "", "log": ""})[0] == 409


def test_an_agent_that_ends_gives_up_nothing_that_it_kept(
    call: Call, run: Run, lease: dict[str, Any]
) -> None:
    advance_to_storing(call, lease)
    call("stopping", {"kept_runs": [run.pk]})
    assert call("runs/document", documents.encoded_document(), **lease_header(lease)) == (200, {})


def test_a_claim_that_meets_a_retirement_gets_nothing(run: Run, machine: Machine) -> None:
    """The request had shown its token before that was revoked."""
    hosts.retire_machine(Machine.objects.get(pk=machine.pk))
    assert hosts.claim_next(machine) is None


def test_a_host_is_given_one_thing_at_a_time(
    call: Call, run: Run, lease: dict[str, Any], machine: Machine
) -> None:
    waiting = Run.objects.create(
        **{name: getattr(run, name) for name in ("commit", "configuration", "repetitions", "time_limit")},
        state=Run.State.REQUESTED,
        origin=Run.Origin.SENTINEL,
        only_on=machine,
    )
    assert call("claim", {"fingerprint": {}})[1] == {"state": "active", "assignment": None}
    # A lease that is over holds nothing up, though no sweep has looked at it yet.
    Run.objects.filter(pk=run.pk).update(lease_until=timezone.now())
    assert call("claim", {"fingerprint": {}})[1]["assignment"]["lease"]["key"] == waiting.pk


def test_what_a_host_kept_to_hand_in_is_not_requeued(call: Call, run: Run, lease: dict[str, Any]) -> None:
    advance_to_storing(call, lease)
    register_agent(call, kept_runs=[run.pk])
    document = documents.encoded_document()
    assert call("runs/document", document, **lease_header(lease)) == (200, {})
    run.refresh_from_db()
    assert (run.state, run.attempt) == ("done", 1)


def test_only_what_it_measures_is_served_to_a_host(client: Client, token: str, run: Run) -> None:
    sent = {"Authorization": f"Bearer {token}"}
    refs = "/api/v1/host/git/snakes.git/info/refs"
    answer = client.get(f"{refs}?service=git-upload-pack", headers=sent)
    assert (answer.status_code, answer.json()["detail"]) == (409, "gpu-1 measures nothing of snakes.")
    for service in ("git-receive-pack", ""):
        assert client.get(f"{refs}?service={service}", headers=sent).status_code == 403


def test_a_commit_that_cannot_be_had_is_told(call: Call, run: Run, lease: dict[str, Any]) -> None:
    status, said = call("bring-commit", {"project": "snakes", "commit": "a" * 40})
    assert (status, "/nowhere can't be fetched" in said["detail"]) == (424, True)


def test_an_experiment_ends_only_as_untestable_by_its_host(call: Call, run: Run, machine: Machine) -> None:
    held = Experiment(attempt=1, machine=machine)
    said = {"lease": {"key": 1, "attempt": 1, "token": str(held.lease)}, "reason": "x", "seconds": 1.0}
    assert call("experiments/conclude", said) == (
        409,
        {"detail": "Experiment 1 is no longer this machine's."},
    )


def test_a_body_that_is_too_large_is_refused(call: Call) -> None:
    body = json.dumps({"fingerprint": {"x": "y" * 9_000_000}}).encode()
    assert call("claim", body) == (400, {"detail": "The message is larger than 8388608 bytes."})


def test_a_browser_gets_a_sentence(client: Client) -> None:
    answer = client.get("/api/v1/host/claim")
    assert (answer.status_code, answer.json()["detail"]) == (401, UNKNOWN_HOST)
    answer = client.get("/api/v1/host/join")
    assert (answer.status_code, answer.json()) == (405, {"detail": "This address takes POST."})
    assert answer["Allow"] == "POST"


def test_the_machine_says_that_it_lives(call: Call, machine: Machine) -> None:
    Machine.objects.update(seen_at=None)
    call("heartbeat")
    machine.refresh_from_db()
    assert machine.seen_at
    assert (timezone.now() - machine.seen_at).total_seconds() < 60


@pytest.mark.parametrize(
    ("cause", "status", "sentence"),
    [
        (psycopg.errors.AdminShutdown(), 503, "The database doesn't answer."),
        (
            psycopg.OperationalError("number of parameters must be between 0 and 65535"),
            500,
            "The site failed",
        ),
    ],
)
def test_a_failure_of_the_database_is_told_apart_from_one_of_the_site(
    call: Call, client: Client, monkeypatch: pytest.MonkeyPatch, cause: Exception, status: int, sentence: str
) -> None:
    def fail(*_: object) -> None:
        raise OperationalError("user paceline") from cause

    monkeypatch.setattr(hosts, "machine_with_token", fail)
    client.raise_request_exception = False
    found, said = call("claim", {})
    assert (found, said["detail"][: len(sentence)]) == (status, sentence)
