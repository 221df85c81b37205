"""A code lets one host join, once and soon; the site keeps hashes alone."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from dashboard import hosts, runs
from dashboard.hosts import JoinRefused
from dashboard.models import JoinCode, Machine, Run
from tests.dashboard.hosts.conftest import Call

pytestmark = pytest.mark.django_db


def make_code(machine_name: str = "") -> str:
    return hosts.create_join_code(runs.pool_named("a100"), "Ada", machine_name)


def test_a_host_joins_over_http_without_a_token(client: Client) -> None:
    message = {"code": make_code(), "machines": ["gpu-7"]}
    answer = client.post("/api/v1/host/join", message, content_type="application/json")
    assert (answer.status_code, answer.json()["pool"]) == (200, "a100")
    (joined,) = answer.json()["machines"]
    assert hosts.machine_with_token(joined["token"]) == Machine.objects.get(name="gpu-7")


@pytest.mark.parametrize("names", [[], ["a", "a"], [f"gpu-{number}" for number in range(65)]])
def test_a_host_joins_as_machines_of_different_names(names: list[str]) -> None:
    with pytest.raises(JoinRefused, match="A host joins as 1 to 64 machines"):
        hosts.join_machines(make_code(), names)


def test_where_one_of_its_machines_can_not_join_none_does() -> None:
    hosts.join_machine(make_code(), "gpu-1")
    code = make_code()
    with pytest.raises(JoinRefused, match="There is a machine gpu-1 already"):
        hosts.join_machines(code, ["gpu-0", "gpu-1"])
    assert not Machine.objects.filter(name="gpu-0").exists()
    assert len(hosts.join_machines(code, ["gpu-0", "gpu-2"])) == 2


def test_neither_code_nor_token_is_kept() -> None:
    code = make_code()
    machine, token = hosts.join_machine(code, "gpu-7")
    kept = [*JoinCode.objects.values_list("code_hash", flat=True), machine.token_hash]
    assert not {code, token} & set(kept)
    assert all(len(text) == 64 for text in kept)


def test_a_code_is_good_once() -> None:
    code = make_code()
    hosts.join_machine(code, "gpu-7")
    with pytest.raises(JoinRefused, match="used already"):
        hosts.join_machine(code, "gpu-8")


def test_a_code_lives_a_quarter_of_an_hour() -> None:
    code = make_code()
    JoinCode.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    with pytest.raises(JoinRefused, match="older than 15 minutes"):
        hosts.join_machine(code, "gpu-7")


@pytest.mark.parametrize("name", ["", " ", "a\nb", "x" * 121])
def test_a_name_is_a_printable_text(name: str) -> None:
    with pytest.raises(JoinRefused, match="A machine's name is"):
        hosts.join_machine(make_code(), name)


def test_a_name_that_is_taken_needs_a_code_for_it() -> None:
    _, old = hosts.join_machine(make_code(), "gpu-7")
    with pytest.raises(JoinRefused, match="There is a machine gpu-7 already"):
        hosts.join_machine(make_code(), "gpu-7")
    with pytest.raises(JoinRefused, match="lets gpu-7 join, not gpu-8"):
        hosts.join_machine(make_code("gpu-7"), "gpu-8")
    again, new = hosts.join_machine(make_code("gpu-7"), "gpu-7")
    assert hosts.machine_with_token(old) is None
    assert hosts.machine_with_token(new) == again


def test_a_retired_machine_is_refused_at_its_next_word(call: Call, machine: Machine, run: Run) -> None:
    assert call("claim", {"fingerprint": {}})[1]["assignment"]["kind"] == "run"
    hosts.retire_machine(machine)
    assert call("heartbeat") == (401, {"detail": "This host's token is unknown or was revoked."})
    run.refresh_from_db()
    assert run.state == "requested"
    # Its name is free again.
    hosts.join_machine(make_code(), "gpu-1")
    machine.refresh_from_db()
    assert machine.state == "active"


def test_the_command_prints_a_code(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("join_code", "--pool", "h200", "--machine", "gpu-9")
    machine, _ = hosts.join_machine(capsys.readouterr().out.strip(), "gpu-9")
    assert machine.pool.name == "h200"
    with pytest.raises(CommandError, match="A pool's name consists of"):
        call_command("join_code", "--pool", "a b")
