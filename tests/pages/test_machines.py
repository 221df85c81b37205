"""The machines that measure: what each is said to be, and who may do what with them."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from dashboard import hosts
from dashboard.models import Commit, Experiment, Machine, Metric, Project, Run, Sentinel
from dashboard.pages.machines.machines import count_codes
from dashboard.querysets.machines import NEWEST_RUNS
from tests.pages import builders
from tests.pages.conftest import shown_text
from tests.pages.experiment_builders import create_experiment

pytestmark = pytest.mark.django_db

ACTIONS = ("pause", "drain", "resume", "retire")
FINGERPRINT = {
    "cpu_model": "AMD EPYC 9654",
    "cpu_count": 96,
    "memory_bytes": 8.1e11,
    "gpus": [{"name": "NVIDIA H100", "memory_bytes": 85_520_809_984}] * 2,
    "driver": "570.86",
    "os": "Debian 12",
    "kernel": "6.1.0",
}


@pytest.fixture
def machine(db: None) -> Machine:
    return builders.create_machine("gpu-1", fingerprint=FINGERPRINT, agent_version="0.4.0", protocol=1)


def create_runs(line: list[Commit], machine: Machine, count: int, **fields: Any) -> list[Run]:
    """Done runs of the machine, one a minute, the newest first."""
    case = line[0].project.cases.first() or builders.create_case(line[0].project)
    began = fields.pop("claimed_at", timezone.now())
    return [
        builders.create_run(
            line[0], case, machine=machine, claimed_at=began - timedelta(minutes=number), **fields
        )
        for number in range(count)
    ]


def create_sentinel(run: Run, *values: float, **fields: Any) -> Sentinel:
    """With a measurement a day, the oldest first."""
    made = Sentinel.objects.create(
        configuration=run.configuration, machine=run.machine, commit=run.commit, **fields
    )
    metric, _ = Metric.objects.get_or_create(name="step_time", unit="s", better="lower", kind="time")
    for age, value in enumerate(reversed(values)):
        again = builders.create_run(run.commit, run.case, origin="sentinel", machine=run.machine)
        at = timezone.now() - timedelta(days=age)
        made.points.create(run=again, metric=metric, value=value, measured_at=at)
    return made


def page_text(client: Client, where: str = "/machines/") -> str:
    return shown_text(client.get(where))


def drawn_figure(client: Client, machine: Machine, name: str) -> Any:
    content = client.get(machine.get_absolute_url()).content.decode()
    found = re.search(rf'<script type="application/json" id="figure-{name}">(.*?)</script>', content)
    assert found is not None
    return json.loads(found[1])


# The list


def test_without_a_machine_it_says_how_a_host_joins(client: Client) -> None:
    shown = page_text(client)
    assert "No machine measures yet" in shown
    assert "Sign in to add a host" in shown


def test_machines_stand_by_pool_with_what_they_are(client: Client, machine: Machine) -> None:
    builders.create_machine("cpu-1", pool=builders.get_pool("cpu"))
    shown = page_text(client)
    assert shown.index("cpu 1 machine") < shown.index("cpu-1") < shown.index("default 1 machine")
    assert "AMD EPYC 9654 96 810 GB 2 \N{MULTIPLICATION SIGN} NVIDIA H100, 85.5 GB 0.4.0 just now" in shown


@pytest.mark.parametrize(
    ("fields", "label"),
    [
        ({}, "idle"),
        ({"state": "paused"}, "paused"),
        ({"state": "draining"}, "draining"),
        # Its agent ends: nobody waits to hear from it.
        ({"state": "draining", "seen_at": timezone.now() - timedelta(hours=1)}, "draining"),
        ({"seen_at": timezone.now() - timedelta(hours=1)}, "silent"),
        ({"state": "paused", "seen_at": timezone.now() - timedelta(hours=1)}, "silent"),
        ({"seen_at": None}, "not started yet"),
        ({"protocol": 0}, "update the host"),
        ({"too_few_bytes": 12 * 2**20}, "disk full"),
        ({"state": "retired", "protocol": 0, "seen_at": None}, "retired"),
    ],
)
def test_a_machine_has_one_status(
    client: Client, machine: Machine, fields: dict[str, Any], label: str
) -> None:
    Machine.objects.update(**fields)
    content = client.get(machine.get_absolute_url()).content.decode()
    assert re.findall(r'<span class="chip machine-\w+">(.+?)</span>', content) == [label]
    assert ("its disk has 12 MiB left of the 64 MiB that are needed" in content) == (label == "disk full")
    listed = client.get("/machines/").content.decode()
    assert label in listed
    assert f"/machines/{machine.pk}/" in listed


def test_what_is_measured_stands_with_its_progress(client: Client, machine: Machine) -> None:
    line = builders.create_commits(builders.create_project(), 2)
    run = builders.create_run(
        line[0], builders.create_case(line[0].project), "measuring", machine=machine, progress=0.43
    )
    made = create_experiment(line, state="measuring", machine=machine, activity="pair 7")
    for where in ("/machines/", machine.get_absolute_url()):
        content = client.get(where).content.decode()
        assert "machine-measuring" in content
        assert f'<a href="/runs/{run.pk}/">' in content
        assert 'value="0.43"' in content
        assert f'<a href="/experiments/{made.pk}/">' in content


def test_what_is_measured_for_too_long_is_told(client: Client, machine: Machine) -> None:
    line = builders.create_commits(builders.create_project(), 2)
    case = builders.create_case(line[0].project)
    since = timezone.now() - timedelta(minutes=100)
    held = {"machine": machine, "measuring_at": since}
    builders.create_run(line[0], case, "measuring", claimed_at=since, time_limit=1800, **held)
    create_experiment(line, state="measuring", most_seconds=600, **held)
    for where in ("/machines/", machine.get_absolute_url()):
        text = page_text(client, where)
        assert "measuring for 1 h 40 min" in text
        assert "past its time limit of 30 min" in text
        assert "far past its budget of 10 min" in text
    # What came before, and what an experiment builds, is no measuring.
    Run.objects.update(measuring_at=timezone.now())
    Experiment.objects.update(measuring_at=timezone.now() - timedelta(minutes=60))
    assert "past its" not in page_text(client)


def test_a_pool_says_what_waits_for_it(client: Client, machine: Machine, line: list[Commit]) -> None:
    case = builders.create_case(line[0].project)
    for commit, hours in zip(line[:3], (1, 5, 3), strict=True):
        asked = timezone.now() - timedelta(hours=hours)
        builders.create_run(commit, case, "requested", requested_at=asked)
    later = timezone.now() + timedelta(hours=2)
    builders.create_run(line[3], case, "requested", not_before=later)
    assert "1 machine · 3 runs wait, the oldest for 5 h" in page_text(client)
    assert "Waits in its pool 3 runs, the oldest for 5 h" in page_text(client, machine.get_absolute_url())
    create_experiment(line)
    assert "3 runs and 1 experiment wait" in page_text(client)


def test_a_pool_without_a_machine_is_told(client: Client, line: list[Commit]) -> None:
    builders.create_machine("gone", state="retired", pool=builders.get_pool("a100"))
    case = builders.create_case(line[0].project)
    builders.create_run(line[0], case, "requested", pool=builders.get_pool("a100"))
    assert "a100 1 run waits, and no machine can take it" in page_text(client)


def test_the_newest_runs_say_how_disturbed_a_machine_is(
    client: Client, machine: Machine, line: list[Commit]
) -> None:
    create_runs(line, machine, NEWEST_RUNS - 5)
    create_runs(line, machine, 3, warning_codes=["throttling", "too_few_samples"])
    create_runs(line, machine, 2, warning_codes=["throttling", "co_tenant"], tainted=True)
    long_ago = timezone.now() - timedelta(days=3)
    create_runs(line, machine, 4, warning_codes=["clock_change"], claimed_at=long_ago)
    shown = page_text(client)
    assert "5 of 50, 2 tainted throttling 5, co tenant 2" in shown
    assert "clock change" not in shown
    # They came with an archive: who measured them counts them.
    Project.objects.update(imported_at=timezone.now() + timedelta(minutes=1))
    assert "throttling" not in page_text(client)
    assert "throttling" not in page_text(client, machine.get_absolute_url())


def test_a_run_with_two_codes_is_one_disturbed_run() -> None:
    rows = [{"codes": ["a", "b"]}, {"codes": ["b", "c"]}, {"codes": []}]
    assert count_codes(rows, frozenset("ab")) == (2, {"b": 2, "a": 1})


def test_retired_machines_are_folded_away(client: Client) -> None:
    builders.create_machine("old-1", state="retired")
    content = client.get("/machines/").content.decode()
    assert content.index("1 retired machine") < content.index("old-1")
    assert "No machine measures yet" not in content


def test_the_list_renews_itself(client: Client, machine: Machine) -> None:
    content = client.get("/machines/").content.decode()
    assert 'hx-get="/machines/" hx-select="#machine-list"' in content


# One machine


@pytest.mark.parametrize(
    ("before", "action", "after"),
    [
        ("active", "pause", "paused"),
        ("active", "drain", "draining"),
        ("paused", "resume", "active"),
        ("draining", "resume", "active"),
        ("paused", "retire", "retired"),
    ],
)
def test_each_button_has_its_effect(
    signed_in: Client, machine: Machine, before: str, action: str, after: str
) -> None:
    Machine.objects.update(state=before, token_hash="x")
    address = machine.get_absolute_url()
    assert f'name="action" value="{action}"' in signed_in.get(address).content.decode()
    response = signed_in.post(f"{address}state/", {"action": action}, follow=True)
    machine.refresh_from_db()
    assert (machine.state, bool(machine.token_hash)) == (after, after != "retired")
    assert 'class="message success"' in response.content.decode()


def test_what_a_retired_machine_held_is_requested_again(
    signed_in: Client, machine: Machine, line: list[Commit]
) -> None:
    case = builders.create_case(line[0].project)
    run = builders.create_run(line[0], case, "measuring", machine=machine)
    signed_in.post(f"{machine.get_absolute_url()}state/", {"action": "retire"})
    run.refresh_from_db()
    assert (run.state, run.machine) == ("requested", None)


def test_retiring_asks_first(signed_in: Client, machine: Machine) -> None:
    content = signed_in.get(machine.get_absolute_url()).content.decode()
    folded = re.findall(r"<details.*?</details>", content, re.DOTALL)
    assert ['value="retire"' in part for part in folded].count(True) == content.count('value="retire"') == 1


@pytest.mark.parametrize("action", ACTIONS)
def test_a_retired_machine_stays_retired(signed_in: Client, machine: Machine, action: str) -> None:
    Machine.objects.update(state="retired")
    address = machine.get_absolute_url()
    assert 'name="action"' not in signed_in.get(address).content.decode()
    shown = shown_text(signed_in.post(f"{address}state/", {"action": action}, follow=True))
    assert "gpu-1 is retired: it may join again, with a new code." in shown
    assert Machine.objects.get().state == "retired"


@pytest.mark.parametrize("action", ["", "delete", "state"])
def test_another_action_is_refused(signed_in: Client, machine: Machine, action: str) -> None:
    address = machine.get_absolute_url()
    response = signed_in.post(f"{address}state/", {"action": action}, follow=True)
    assert "A machine can't be asked to" in shown_text(response)
    assert Machine.objects.get().state == "active"


@pytest.mark.parametrize("action", ACTIONS)
def test_who_is_not_signed_in_changes_nothing(client: Client, machine: Machine, action: str) -> None:
    address = machine.get_absolute_url()
    content = client.get(address).content.decode()
    assert "Sign in</a> to pause, drain or retire it." in content
    assert 'method="post"' not in content
    response = client.post(f"{address}state/", {"action": action})
    assert response["Location"] == f"/sign-in/?next={address}"
    assert Machine.objects.get().state == "active"


def test_who_may_not_changes_nothing_and_is_told(client: Client, machine: Machine) -> None:
    client.force_login(User.objects.create_user("grace"))
    address = machine.get_absolute_url()
    answer = client.post(f"{address}state/", {"action": "pause"})
    assert (answer.status_code, "Only administrators of this site" in shown_text(answer)) == (403, True)
    assert Machine.objects.get().state == "active"


def test_a_state_is_changed_by_a_form_of_this_site_alone(operator: User, machine: Machine) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(operator)
    address = f"{machine.get_absolute_url()}state/"
    assert strict.post(address, {"action": "pause"}).status_code == 403
    assert strict.get(address)["Location"] == address.removesuffix("state/")


def test_the_status_is_asked_for_until_it_is_another(client: Client, machine: Machine) -> None:
    address = f"{machine.get_absolute_url()}status/"
    assert f'hx-get="{address}?seen=idle"' in client.get(f"{address}?seen=idle").content.decode()
    Machine.objects.update(state="paused")
    assert client.get(f"{address}?seen=idle")["HX-Refresh"] == "true"


def test_an_old_agent_is_told_to_be_updated(client: Client, machine: Machine) -> None:
    Machine.objects.update(protocol=0)
    assert "Its agent (0.4.0) speaks protocol 0, and this site needs 1 or newer" in page_text(
        client, machine.get_absolute_url()
    )


@pytest.mark.parametrize(
    "fingerprint",
    [
        {},
        {"gpus": None, "memory_bytes": None, "cpu_count": None},
        {"gpus": "many", "memory_bytes": "8 GB", "cpu_model": ["a"], "os": {"a": 1}},
        {"gpus": [None, 3, {"name": None}, {"memory_bytes": "x"}]},
    ],
)
def test_a_host_may_send_anything_as_its_fingerprint(
    client: Client, machine: Machine, fingerprint: dict[str, Any]
) -> None:
    Machine.objects.update(fingerprint=fingerprint)
    assert client.get("/machines/").status_code == 200
    assert client.get(machine.get_absolute_url()).status_code == 200


def test_doubts_of_a_month_stand_by_code(client: Client, machine: Machine, line: list[Commit]) -> None:
    create_runs(line, machine, 6)
    create_runs(line, machine, 3, warning_codes=["processor_contention", "limit_crossed"], tainted=True)
    create_runs(line, machine, 1, warning_codes=["processor_contention"])
    old = timezone.now() - timedelta(days=31)
    create_runs(line, machine, 2, warning_codes=["throttling"], claimed_at=old)
    shown = page_text(client, machine.get_absolute_url())
    assert "End other work on the machine while it measures. 4 40 % 3 Of 10 runs." in shown
    assert "Limit crossed" not in shown.partition("Last runs")[0]
    assert "Throttling" not in shown.partition("Last runs")[0]


def test_a_machine_without_doubts_says_so(client: Client, machine: Machine, line: list[Commit]) -> None:
    address = machine.get_absolute_url()
    assert "It measured nothing in these days." in page_text(client, address)
    create_runs(line, machine, 2)
    assert "None of its 2 runs had a warning." in page_text(client, address)


def test_the_calibration_loop_is_drawn_over_the_runs(
    client: Client, machine: Machine, line: list[Commit]
) -> None:
    create_runs(line, machine, 1)
    drifted = create_runs(line, machine, 1, calibration=0.015, warning_codes=["calibration_drift"])
    calm = create_runs(line, machine, 2, calibration=0.01, claimed_at=timezone.now() - timedelta(hours=1))
    (trace,) = drawn_figure(client, machine, "calibration")["data"]
    assert trace["y"] == pytest.approx([10, 10, 15])
    assert trace["marker"]["symbol"] == ["circle", "circle", "x-thin-open"]
    assert trace["customdata"] == [f"/runs/{run.pk}/" for run in (*reversed(calm), *drifted)]
    assert "while it measured (1 of 3)" in page_text(client, machine.get_absolute_url())


def test_a_sentinel_is_drawn_against_its_median(client: Client, machine: Machine, line: list[Commit]) -> None:
    (run,) = create_runs(line, machine, 1)
    create_sentinel(run, 0.010, 0.010, 0.012, ratio=1.2, moved_before=timezone.now())
    (trace,) = drawn_figure(client, machine, "sentinels")["data"]
    assert trace["y"] == pytest.approx([0, 0, 20])
    assert f"{line[0].short} , measured 3 times; +20 % since" in page_text(client, machine.get_absolute_url())


def test_another_machines_history_is_not_shown(client: Client, machine: Machine, line: list[Commit]) -> None:
    other = builders.create_machine("gpu-2")
    (run,) = create_runs(line, other, 1, calibration=0.01, warning_codes=["throttling"])
    create_sentinel(run, 0.01)
    shown = page_text(client, machine.get_absolute_url())
    for sentence in (
        "has timed the calibration loop yet",
        "It has none yet",
        "It hasn't measured anything yet",
    ):
        assert sentence in shown


# Elsewhere


def test_a_machines_name_leads_to_its_page(client: Client, machine: Machine, line: list[Commit]) -> None:
    (run,) = create_runs(line, machine, 1)
    case = builders.create_case(line[0].project, "walker")
    active = builders.create_run(line[0], case, "measuring", machine=machine)
    experiment = create_experiment(line, machine=machine, state="measuring")
    link = f'<a href="{machine.get_absolute_url()}">gpu-1</a>'
    pages = (run, active, experiment, line[0].project)
    assert [page for page in pages if link not in client.get(page.get_absolute_url()).content.decode()] == []
    assert link in client.get("/").content.decode()


def test_only_machines_that_should_be_heard_are_silent(client: Client) -> None:
    builders.create_history()
    for state in Machine.State:
        builders.create_machine(f"m-{state}", seen=timedelta(hours=3), state=state)
    silent = re.findall(r"Machine (m-\w+) is silent", page_text(client, "/"))
    assert sorted(silent) == ["m-active", "m-paused"]


def test_runs_of_a_pool_that_is_paused_wait_in_vain(client: Client) -> None:
    builders.create_only_run("requested")
    machine = builders.create_machine()
    assert "1 run waits in pool" not in page_text(client, "/")
    hosts.pause_machine(machine)
    assert "1 run waits in pool default , and no active machine of it answers" in page_text(client, "/")


def test_a_run_says_that_its_pool_is_paused(client: Client) -> None:
    run = builders.create_only_run("requested")
    machine = builders.create_machine()
    assert "its turn comes after the runs before it" in page_text(client, run.get_absolute_url())
    hosts.pause_machine(machine)
    assert "No active machine of this pool was seen" in page_text(client, run.get_absolute_url())


def test_a_retired_machine_is_no_silent_one_to_a_monitor(client: Client) -> None:
    builders.create_machine("there")
    builders.create_machine("gone", state="retired")
    told = re.findall(r'machine_silent_seconds{machine="(\w+)"', client.get("/metrics").content.decode())
    assert told == ["there"]
