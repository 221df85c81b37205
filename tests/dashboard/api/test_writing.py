"""What is done by the API: the same as on the pages, with the same lines in the audit log."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from dashboard.models import ApiToken, AuditEntry, Channel, Experiment, Project, Run, Triage, Trigger
from tests.dashboard.api.conftest import post_json
from tests.dashboard.conftest import MANIFEST, Repository
from tests.pages import builders
from tests.pages.experiment_builders import create_ended

pytestmark = pytest.mark.django_db

API = "/api/v1"


def newest_action() -> tuple[str, str]:
    """What was done last, and by which kind of visitor."""
    entry = AuditEntry.objects.latest("pk")
    return entry.action, entry.source


def test_runs_are_asked_for_as_on_the_page(script: Client, project: Project, admin: User) -> None:
    answer = post_json(script, "/projects/snake/runs", last=3, benchmarks=["snake_dqn"])
    trigger = Trigger.objects.get()
    assert (answer.status_code, answer.json()["id"]) == (202, trigger.pk)
    assert trigger.source == "token"
    assert (trigger.revisions, trigger.benchmarks, trigger.requested_by) == (
        {"last": 3},
        ["snake_dqn"],
        admin,
    )
    assert newest_action() == ("runs requested", "token")
    told = script.get(f"{API}/projects/snake/triggers/{trigger.pk}").json()
    assert (told["state"], told["runs"]) == ("received", 0)


@pytest.mark.parametrize(
    ("body", "sentence", "field"),
    [
        ({"last": 0}, "last: it must be greater than or equal to 1.", "last"),
        ({"last": 1, "commit": "main"}, "Ask for one of commit and last, not for both.", "last"),
        (
            {"last": 1, "commit": "main", "range": "a..b"},
            "Ask for one of commit, range and last, not for all.",
            "last",
        ),
        ({"last": "x"}, "last: it must be a whole number.", "last"),
        ({"commit": 3}, "commit: it must be a text.", "commit"),
        ({"benchmarks": {}}, "benchmarks: it must be a list.", "benchmarks"),
        ({"comit": "main"}, "comit: there is no field of that name: did you mean commit?", "comit"),
        ({"commits": ["main"]}, "commits: there is no field of that name: did you mean commit?", "commits"),
        ({"colour": "red"}, "colour: there is no field of that name.", "colour"),
        ({"commit": "--upload-pack=x"}, "--upload-pack=x", "commit"),
        ({"benchmarks": ["x"] * 1000}, "benchmarks: it must have at most", "benchmarks"),
        ({"benchmarks": [""]}, "The name of a benchmark is empty: to measure all of them", "benchmarks"),
        (
            {"benchmarks": ["x" * 101]},
            "That many or that long names of benchmarks can't be right.",
            "benchmarks",
        ),
    ],
)
def test_what_cannot_be_measured_is_refused(
    script: Client, project: Project, body: dict[str, Any], sentence: str, field: str | None
) -> None:
    answer = post_json(script, "/projects/snake/runs", **body)
    assert (answer.status_code, sentence in answer.json()["detail"]) == (422, True)
    assert answer.json().get("field") == field
    assert not Trigger.objects.exists()


def test_a_body_that_is_no_object_is_refused(script: Client, project: Project) -> None:
    answer = script.post(f"{API}/projects/snake/runs", [1], content_type="application/json")
    assert (answer.status_code, answer.json()["detail"]) == (422, "body: it must be an object.")


def test_a_commit_that_does_not_exist_is_refused(
    script: Client, project: Project, repository: Repository
) -> None:
    project.repository = str(repository.folder)
    project.save()
    answer = post_json(script, "/projects/snake/runs", range="HEAD..nowhere")
    assert (answer.status_code, answer.json()["field"]) == (422, "range")
    assert "nowhere" in answer.json()["detail"]
    assert post_json(script, "/projects/snake/runs", commit="HEAD").status_code == 202


def test_an_unknown_benchmark_is_refused_where_it_is_known_to_be(
    script: Client, project: Project, repository: Repository
) -> None:
    project.repository = str(repository.folder)
    project.save()
    answer = post_json(script, "/projects/snake/runs", benchmarks=["tiny", "zzz"])
    assert answer.status_code == 202, "nobody has read the repository yet"
    project.mirror.fetch()
    problem = post_json(script, "/projects/snake/runs", benchmarks=["tiny", "othr"]).json()
    assert (problem["status"], problem["field"]) == (422, "benchmarks")
    assert problem["detail"].endswith("has no benchmark 'othr'; did you mean other? It has tiny, other.")
    assert Trigger.objects.count() == 1


def test_a_kept_manifest_knows_its_benchmarks_without_a_repository(script: Client, project: Project) -> None:
    Project.objects.update(manifest=MANIFEST)
    problem = post_json(script, "/projects/snake/runs", benchmarks=["zzz"]).json()
    assert problem["detail"] == "The manifest of snake has no benchmark 'zzz'; it has tiny, other."
    assert post_json(script, "/projects/snake/runs", benchmarks=["tiny"]).status_code == 202


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"{", "application/json", 400),
        (b"[]", "application/json", 422),
        (b'{"last": 1}', "text/plain", 415),
        (b"last=1", "application/x-www-form-urlencoded", 415),
        (b'{"commit": "a\\u0000"}', "application/json", 400),
        (b"[" * 100_000, "application/json", 400),
        (b" " * 3_000_000, "application/json", 413),
    ],
)
def test_a_body_that_cannot_be_read_is_a_problem(
    script: Client, project: Project, body: bytes, kind: str, status: int
) -> None:
    answer = script.post(f"{API}/projects/snake/runs", body, kind)
    assert (answer.status_code, answer["Content-Type"]) == (status, "application/problem+json")


@pytest.mark.parametrize(
    ("body", "field", "detail"),
    [
        ({"commit": "a\0"}, "commit", "commit: there is a NUL in it."),
        ({"benchmarks": ["a\0"]}, "benchmarks", "benchmarks: there is a NUL in it."),
        ({"a\0": 1}, None, "The body has a NUL in a text."),
    ],
)
def test_a_nul_is_told_with_its_field(
    script: Client, project: Project, body: dict[str, Any], field: str | None, detail: str
) -> None:
    problem = post_json(script, "/projects/snake/runs", **body).json()
    assert (problem.get("field"), problem["detail"]) == (field, detail)


@pytest.mark.parametrize(
    ("address", "field", "value", "said"),
    [
        ("runs", "last", True, "it must be a whole number."),
        ("runs", "last", "3", "it must be a whole number."),
        ("runs", "last", 2.5, "it must be a whole number."),
        ("runs", "last", 1e30, "it must be less than or equal to"),
        ("runs", "last", [3], "it must be a whole number."),
        ("runs", "benchmarks", "snake_dqn", "it must be a list."),
        ("runs", "benchmarks.0", [3], "it must be a text."),
        ("experiments", "minutes", "5", "it must be a number."),
        ("experiments", "minutes", True, "it must be a number."),
        ("experiments", "quick", 1, "it must be true or false."),
        ("checks", "quick", "yes", "it must be true or false."),
        ("checks", "head", ["main"], "it must be a text."),
        ("channels", "enabled", 0, "it must be true or false."),
        ("channels", "pictures", "false", "it must be true or false."),
        ("channels", "remind_days", "7", "it must be a whole number."),
        ("channels", "minimum_percent", "5", "it must be a number."),
        ("channels", "destination", [], "it must be an object."),
        ("channels", "destination.url", {"url": 3}, "it must be a text."),
        ("claims", "claims", {"a": 1}, "it must be a list."),
        ("tokens", "days", "90", "it must be a whole number."),
    ],
)
def test_a_value_of_another_type_is_refused(
    script: Client, admin: User, address: str, field: str, value: object, said: str
) -> None:
    """The sentence on that field is the same whether others are missing or not."""
    browser = Client()
    browser.force_login(admin)
    client = browser if address == "tokens" else script
    answer = post_json(client, f"/projects/snake/{address}", **{field.partition(".")[0]: value})
    problem = answer.json()
    told = problem.get("errors") or [{"field": problem["field"], "detail": problem["detail"]}]
    sentences = {row["field"]: row["detail"].removeprefix(f"{field}: ") for row in told}
    assert (answer.status_code, sentences[field][: len(said)]) == (422, said)


def test_three_with_a_point_is_a_whole_number(script: Client, project: Project) -> None:
    answer = post_json(script, "/projects/snake/runs", last=3.0)
    assert (answer.status_code, Trigger.objects.get().revisions) == (202, {"last": 3})


def test_claims_of_an_unknown_pool_are_refused(script: Client, project: Project) -> None:
    problem = post_json(script, "/projects/snake/claims", pool="nowhere").json()
    assert (problem["status"], problem["field"]) == (422, "pool")


def test_a_session_needs_its_csrf_token(admin: User, project: Project) -> None:
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(admin)
    answer = post_json(browser, "/projects/snake/runs")
    assert (answer.status_code, answer["Content-Type"]) == (403, "application/problem+json")
    assert "CSRF" in answer.json()["detail"]
    assert not Trigger.objects.exists()


def test_a_token_needs_no_csrf_token(script: Client, project: Project) -> None:
    script.handler.enforce_csrf_checks = True
    assert post_json(script, "/projects/snake/runs").status_code == 202


def test_a_session_without_its_second_factor_writes_nothing(
    client: Client, admin: User, project: Project, settings: Any
) -> None:
    settings.PACELINE_REQUIRE_SECOND_FACTOR = "all"
    client.force_login(admin)
    answer = post_json(client, "/projects/snake/runs")
    assert (answer.status_code, "second factor" in answer.json()["detail"]) == (403, True)


def test_a_run_is_cancelled_once(script: Client, project: Project) -> None:
    commit = builders.create_commits(project, 1)[0]
    run = builders.create_run(commit, builders.create_case(project), Run.State.REQUESTED)
    first, second = (post_json(script, f"/runs/{run.pk}/cancel") for _ in range(2))
    assert (first.status_code, first.json()["state"]) == (200, "cancelled")
    assert newest_action() == ("run cancelled", "token")
    assert (second.status_code, "had already ended" in second.json()["detail"]) == (409, True)
    assert AuditEntry.objects.filter(action="run cancelled").count() == 1


def test_what_is_left_of_a_request_is_cancelled_once(script: Client, project: Project) -> None:
    line = builders.create_commits(project, 3)
    trigger = Trigger.objects.create(project=project, source="api", revisions={"last": 3}, state="resolved")
    case = builders.create_case(project)
    for commit, state in zip(line, (Run.State.DONE, Run.State.MEASURING, Run.State.REQUESTED), strict=True):
        builders.create_run(commit, case, state, trigger=trigger)
    builders.create_run(line[0], case, Run.State.REQUESTED)
    where = f"/projects/snake/triggers/{trigger.pk}/cancel"
    first, second = (post_json(script, where) for _ in range(2))
    assert (first.status_code, first.json()["runs"]) == (200, 3)
    assert sorted(trigger.runs.values_list("state", flat=True)) == ["cancelled", "cancelled", "done"]
    assert Run.objects.filter(state="requested").count() == 1
    assert newest_action() == ("request cancelled", "token")
    assert AuditEntry.objects.get(action="request cancelled").details == {"runs": 2}
    assert (second.status_code, "is left to cancel" in second.json()["detail"]) == (409, True)


def test_what_measures_disturbed_runs_again_is_cancelled_together(script: Client, project: Project) -> None:
    line, case = builders.create_commits(project, 3), builders.create_case(project)
    for commit in line[:2]:
        builders.create_run(commit, case, Run.State.REQUESTED, not_before=timezone.now())
    of_a_person = builders.create_run(line[2], case, Run.State.REQUESTED)
    other = builders.create_project("other")
    elsewhere = builders.create_run(
        builders.create_commits(other, 1)[0],
        builders.create_case(other),
        Run.State.REQUESTED,
        not_before=timezone.now(),
    )
    first, second = (post_json(script, "/projects/snake/runs/remeasuring/cancel") for _ in range(2))
    assert (first.status_code, first.json()) == (200, {"runs": 2})
    assert set(Run.objects.filter(state="requested")) == {of_a_person, elsewhere}
    assert newest_action() == ("remeasuring cancelled", "token")
    entry = AuditEntry.objects.get(action="remeasuring cancelled")
    assert (entry.project, entry.details) == (project, {"runs": 2})
    assert (second.status_code, "No disturbed run is left" in second.json()["detail"]) == (409, True)


def test_what_waits_of_a_project_is_cancelled(script: Client, project: Project) -> None:
    line, case = builders.create_commits(project, 3), builders.create_case(project)
    measuring = builders.create_run(line[0], case, Run.State.MEASURING)
    for commit in line[1:]:
        builders.create_run(commit, case, Run.State.REQUESTED)
    first, second = (post_json(script, "/projects/snake/runs/waiting/cancel") for _ in range(2))
    assert (first.status_code, first.json()) == (200, {"runs": 2})
    assert list(Run.objects.exclude(state="cancelled")) == [measuring]
    assert newest_action() == ("waiting runs cancelled", "token")
    assert (second.status_code, "No run that waits is left" in second.json()["detail"]) == (409, True)


@pytest.mark.parametrize(("purpose", "status"), [("person", 200), ("proof", 409)])
def test_an_experiment_is_cancelled_by_who_may_ask(
    script: Client, project: Project, purpose: str, status: int
) -> None:
    line = builders.create_commits(project, 2)
    experiment = create_ended(line, state="requested", verdict="", purpose=purpose)
    assert post_json(script, f"/experiments/{experiment.pk}/cancel").status_code == status
    assert Experiment.objects.filter(state="cancelled").exists() is (status == 200)


def test_an_experiment_is_asked_for_once(two_commits: Repository, script: Client, project: Project) -> None:
    Project.objects.update(repository=str(two_commits.folder))
    body = {"base": "main", "case": "tiny[size=1]", "head_case": "tiny[size=2]", "precision": "2%"}
    first, again = (post_json(script, "/projects/snake/experiments", **body) for _ in range(2))
    assert (first.status_code, again.status_code) == (201, 200), first.content
    experiment = Experiment.objects.get()
    assert first.json()["id"] == again.json()["id"] == experiment.pk
    assert (experiment.purpose, experiment.precision) == ("script", 0.02)
    assert newest_action() == ("experiment requested", "token")


def test_an_experiment_without_a_base_is_refused(script: Client, project: Project) -> None:
    missing = post_json(script, "/projects/snake/experiments", head="main")
    assert (missing.status_code, missing.json()["detail"]) == (422, "base: it is missing.")
    wrong = post_json(script, "/projects/snake/experiments", base="main", precision="none")
    assert (wrong.status_code, wrong.json()["field"]) == (422, "precision")
    assert wrong.json()["detail"].startswith("precision: 'none' isn't a number")


def test_a_regression_is_triaged_as_on_the_page(script: Client, project: Project, admin: User) -> None:
    line = builders.create_commits(project, 2)
    case = builders.create_case(project)
    builders.create_measured_run(line[0], case, 0.01)
    regression = builders.create_regression(builders.headline_series(case), *line)
    address = f"/regressions/{regression.pk}/triage"
    answer = post_json(script, address, action="intended", comment="a larger network")
    assert (answer.status_code, answer.json()["triaged"]) == (200, "intended")
    assert answer.json()["triages"][0]["comment"] == "a larger network"
    assert Triage.objects.get().person == admin
    assert newest_action() == ("regression triaged", "token")
    again = post_json(script, address, action="intended")
    assert (again.status_code, again.json()["field"]) == (422, "action")


SLACK = {"kind": "slack", "destination": {"url": "https://hooks.slack.com/services/T0/B0/secret"}}


def test_a_channel_is_added_changed_tested_and_removed(
    script: Client, project: Project, settings: Any
) -> None:
    settings.PACELINE_ALLOW_INTERNAL_WEBHOOKS = True
    added = post_json(script, "/projects/snake/channels", **SLACK, name="#speed", minimum_percent=5)
    assert added.status_code == 201, added.content
    assert (added.json()["secret"], added.json()["minimum_percent"]) == (None, 5)
    where = f"{API}/projects/snake/channels/{added.json()['id']}"
    changed = script.patch(
        where, {"enabled": False, "quiet_from": "22:00", "quiet_until": "07:00"}, "application/json"
    )
    assert (changed.json()["enabled"], changed.json()["quiet_from"]) == (False, "22:00")
    assert (changed.json()["name"], changed.json()["minimum_percent"]) == ("#speed", 5)
    tested = script.post(f"{where}/test")
    assert (tested.status_code, tested.json()["state"]) == (202, "pending")
    assert script.delete(where).status_code == 204
    assert not Channel.objects.exists()
    changes = AuditEntry.objects.filter(action="channel changed").order_by("pk")
    assert [entry.details["change"] for entry in changes] == ["added", "edited", "turn-off", "test", "remove"]


def test_a_region_alone_is_changed(script: Client, project: Project, settings: Any) -> None:
    settings.PACELINE_ALLOW_INTERNAL_WEBHOOKS = True
    body = {"kind": "pagerduty", "destination": {"key": "a" * 32, "region": "us"}}
    pk = post_json(script, "/projects/snake/channels", **body).json()["id"]
    where = f"{API}/projects/snake/channels/{pk}"
    changed = script.patch(where, {"destination": {"region": "eu"}}, "application/json").json()
    assert changed["address"].startswith("https://events.eu.pagerduty.com/")
    assert Channel.objects.get().secret == "a" * 32


def test_the_secret_of_a_webhook_is_told_once(script: Client, project: Project, settings: Any) -> None:
    settings.PACELINE_ALLOW_INTERNAL_WEBHOOKS = True
    body = {"kind": "webhook", "destination": {"address": "https://ci.example.org/hook"}}
    secret = post_json(script, "/projects/snake/channels", **body).json()["secret"]
    assert secret == Channel.objects.get().secret
    assert secret not in script.get(f"{API}/projects/snake/channels").content.decode()


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"kind": "slack"}, "destination.url"),
        ({**SLACK, "remind_days": True}, "remind_days"),
        ({**SLACK, "minimum_percent": True}, "minimum_percent"),
        ({"kind": "smoke"}, "kind"),
        ({**SLACK, "time_zone": "Moon/Crater"}, "time_zone"),
        ({**SLACK, "quiet_from": "22:00"}, "quiet_until"),
        ({**SLACK, "enabled": "perhaps"}, "enabled"),
        ({**SLACK, "destination": {"token": "x"}}, "destination.token"),
        ({"kind": "pagerduty", "destination": {"key": "x"}, "digest": "daily"}, "digest"),
    ],
)
def test_a_wrong_field_keeps_a_channel_out(
    script: Client, project: Project, settings: Any, body: dict[str, Any], field: str
) -> None:
    settings.PACELINE_ALLOW_INTERNAL_WEBHOOKS = True
    answer = post_json(script, "/projects/snake/channels", **body)
    assert (answer.status_code, answer.json().get("field")) == (422, field), answer.content
    assert not Channel.objects.exists()


def test_a_person_makes_a_token_and_revokes_it(client: Client, admin: User, project: Project) -> None:
    client.force_login(admin)
    made = post_json(client, "/projects/snake/tokens", name="nightly", actions=["operate"], days=7)
    assert (made.status_code, made.json()["actions"]) == (201, ["view", "operate"])
    script = Client(headers={"Authorization": f"Bearer {made.json()['token']}"})
    assert script.get(f"{API}/token").json()["name"] == "nightly"
    where = f"{API}/projects/snake/tokens/{made.json()['id']}"
    assert [client.delete(where).status_code for _ in range(2)] == [204, 409]
    assert script.get(f"{API}/token").status_code == 401


def test_no_token_makes_another(script: Client, project: Project) -> None:
    answer = post_json(script, "/projects/snake/tokens", name="more")
    assert (answer.status_code, "made by people" in answer.json()["detail"]) == (403, True)
    assert ApiToken.objects.count() == 1


def test_no_token_is_made_for_the_whole_site(client: Client, admin: User, project: Project) -> None:
    client.force_login(admin)
    answer = post_json(client, "/projects/snake/tokens", name="all", actions=["administer site"])
    assert (answer.status_code, answer.json()["field"]) == (422, "actions.0")
