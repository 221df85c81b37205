"""What was disturbed is measured again by itself: later, behind what somebody waits for, twice at most."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from paceline.document import CODES_OF_DISTURBANCE, CODES_TAINTING_ALL
from paceline.manifest import Benchmark

from dashboard import cancelling, dispatch, ingest, runs
from dashboard.access import Visitor
from dashboard.models import AuditEntry, Machine, Project, Run, Trigger
from dashboard.repositories import DETACHED
from dashboard.runs.sweeping import wake_for_waiting_runs
from dashboard.sentences.administration.audit import describe_entry
from tests.dashboard import factories
from tests.dashboard.access.conftest import create_member
from tests.dashboard.conftest import MANIFEST, Repository
from tests.dashboard.documents import encoded_document
from tests.dashboard.ingest.conftest import assignment, measure, storing
from tests.pages.conftest import shown_text

__all__ = ["assignment", "measure", "storing"]

pytestmark = pytest.mark.django_db
Measure = Callable[..., Run]


def tainting_warnings(*codes: str) -> list[dict[str, Any]]:
    return [{"code": code, "message": "m", "advice": "a", "taints": True} for code in codes]


DISTURBED = tainting_warnings("processor_contention")


@pytest.fixture
def disturbed(measure: Measure) -> Run:
    return measure(5, warnings=DISTURBED)


def waiting_run() -> Run | None:
    return Run.objects.filter(state=Run.State.REQUESTED).first()


def let_its_time_come(run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(not_before=timezone.now() - timedelta(seconds=1))


def measure_waiting(storing: Callable[[Run], Any], **changes: object) -> None:
    """Let the waiting run's time come, and measure it."""
    run = waiting_run()
    assert run is not None
    let_its_time_come(run)
    ingest.store_document(storing(run).lease, encoded_document(**changes))


def test_it_waits_ten_minutes_behind_what_somebody_waits_for(disturbed: Run) -> None:
    again = waiting_run()
    assert again is not None
    assert (again.commit, again.configuration) == (disturbed.commit, disturbed.configuration)
    assert (again.repetitions, again.time_limit, again.origin) == (3, 60, "measured")
    assert again.priority < 0
    assert again.not_before is not None
    assert timedelta(minutes=9) < again.not_before - timezone.now() <= timedelta(minutes=10)


def test_nobody_claims_it_before_its_time(disturbed: Run) -> None:
    again = waiting_run()
    assert again is not None
    assert runs.claim_run("default", "gpu-1") is None
    let_its_time_come(again)
    claimed = runs.claim_run("default", "gpu-1")
    assert claimed is not None
    assert claimed.run_id == again.pk


def test_it_is_measured_again_twice_at_most(disturbed: Run, storing: Callable[[Run], Any]) -> None:
    measure_waiting(storing, warnings=DISTURBED)
    second = waiting_run()
    assert second is not None
    assert second.not_before is not None
    assert timedelta(minutes=59) < second.not_before - timezone.now() <= timedelta(hours=1)
    measure_waiting(storing, warnings=DISTURBED)
    assert waiting_run() is None
    assert Run.objects.filter(tainted=True).count() == 3


def test_a_calm_one_ends_it(disturbed: Run, storing: Callable[[Run], Any]) -> None:
    measure_waiting(storing)
    assert waiting_run() is None
    assert list(Run.objects.order_by("pk").values_list("tainted", flat=True)) == [True, False]


def test_a_run_that_nothing_taints_is_not_measured_again(measure: Measure) -> None:
    slow = {"code": "too_few_samples", "message": "m", "advice": "a", "taints": False}
    measure(5, warnings=[slow, {**DISTURBED[0], "taints": False}])
    assert waiting_run() is None


@pytest.mark.parametrize("code", ["quality_below_guard", "memory_pressure", "warmup_never_ended"])
def test_what_the_code_does_at_any_hour_is_not_measured_again(measure: Measure, code: str) -> None:
    measure(5, warnings=tainting_warnings(code, "processor_contention"))
    assert waiting_run() is None


def test_a_disturbed_sentinel_is_not_measured_again(measure: Measure, storing: Callable[[Run], Any]) -> None:
    first = measure(5)
    again = runs.request_sentinel_run(first, first.commit, Machine.objects.get(name="gpu-1"), -20)
    assert again is not None
    ingest.store_document(storing(again).lease, encoded_document(warnings=DISTURBED))
    again.refresh_from_db()
    assert (again.tainted, waiting_run()) == (True, None)


@pytest.mark.parametrize(
    "changes", [{"origin": Run.Origin.IMPORTED}, {"origin": Run.Origin.SENTINEL}, {"branch": DETACHED}]
)
def test_what_is_not_measured_again(disturbed: Run, changes: dict[str, str]) -> None:
    """An imported run, a sentinel's, and a commit that left its branch."""
    Run.objects.exclude(pk=disturbed.pk).delete()
    disturbed.refresh_from_db()
    disturbed.commit.branch = changes.get("branch", "main")
    disturbed.origin = changes.get("origin", Run.Origin.MEASURED)
    assert runs.remeasure_disturbed(disturbed, ["processor_contention"]) is None
    assert waiting_run() is None


def test_one_that_was_measured_calmly_since_is_enough(disturbed: Run) -> None:
    Run.objects.exclude(pk=disturbed.pk).delete()
    disturbed.refresh_from_db()
    newer = factories.create_run(disturbed.commit, disturbed.case)
    assert newer.configuration == disturbed.configuration
    assert runs.remeasure_disturbed(disturbed, ["processor_contention"]) is None
    Run.objects.filter(pk=newer.pk).update(tainted=True)
    assert runs.remeasure_disturbed(disturbed, ["processor_contention"]) is not None


def test_another_commit_has_its_own_two(disturbed: Run, measure: Measure) -> None:
    measure(6, warnings=DISTURBED)
    waiting = Run.objects.filter(state=Run.State.REQUESTED)
    assert {run.commit.position for run in waiting} == {5, 6}
    assert all(run.not_before - timezone.now() <= timedelta(minutes=10) for run in waiting if run.not_before)


def test_whoever_asks_for_it_has_it_measured_at_once(disturbed: Run, benchmark: Benchmark) -> None:
    waiting = waiting_run()
    asked = runs.request_run(disturbed.commit, disturbed.case, benchmark)
    assert (asked, asked.not_before, asked.priority) == (waiting, None, 0)
    stored = Run.objects.get(pk=asked.pk)
    assert (stored.not_before, stored.priority) == (None, 0)
    claimed = runs.claim_run("default", "gpu-1")
    assert claimed is not None
    assert claimed.run_id == asked.pk


def test_a_proof_that_asks_for_it_has_it_measured_at_once(disturbed: Run) -> None:
    waiting = waiting_run()
    asked = runs.repeat_run(disturbed, disturbed.commit, priority=5)
    stored = Run.objects.get(pk=asked.pk)
    assert (asked, stored.not_before, stored.priority) == (waiting, None, 5)


def test_asking_wakes_workers(disturbed: Run, benchmark: Benchmark, monkeypatch: pytest.MonkeyPatch) -> None:
    woken: list[tuple[str, int]] = []
    monkeypatch.setattr(dispatch, "wake_workers", lambda pool, times=1: woken.append((pool, times)))
    runs.request_run(disturbed.commit, disturbed.case, benchmark)
    assert woken == [("default", 1)]


@pytest.mark.parametrize(("source", "waits"), [(Trigger.Source.WEB, False), (Trigger.Source.HOOK, True)])
def test_a_persons_trigger_does_and_a_hooks_does_not(
    tracked: Project, repository: Repository, source: str, waits: bool
) -> None:
    """A hook says only that a commit is there, and that one is measured already."""
    commit = factories.create_commit(tracked, 1, name=repository.git("rev-parse", "HEAD"))
    case = tracked.cases.create(benchmark="other", params={}, key="")
    run = factories.create_run(commit, case, tainted=True, version=4)
    again = runs.repeat_run(run, commit, -5, timedelta(minutes=10))
    trigger = tracked.triggers.create(source=source, benchmarks=["other"])
    runs.resolve_trigger(trigger.pk)
    again = Run.objects.get(pk=again.pk)
    assert MANIFEST.count("version = 4") == 1
    assert (again.not_before is not None) is waits
    assert Run.objects.filter(state=Run.State.REQUESTED).count() == 1


def test_a_sweep_wakes_workers_once_its_time_has_come(
    disturbed: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    woken: list[tuple[str, int]] = []
    monkeypatch.setattr(dispatch, "wake_workers", lambda pool, times=1: woken.append((pool, times)))
    monkeypatch.setattr(dispatch, "count_waiting_messages", lambda _pool: 0)
    wake_for_waiting_runs()
    assert woken == []
    Run.objects.filter(state=Run.State.REQUESTED).update(not_before=timezone.now())
    wake_for_waiting_runs()
    assert woken == [("default", 1)]


def test_the_codes_of_disturbances_are_warnings_that_may_taint() -> None:
    readme = (Path(__file__).resolve().parents[3] / "trainers/harness/README.md").read_text()
    rows = re.findall(r"^\| (`.+?) \| (.+?) \|", readme.partition("## Warnings")[2], re.MULTILINE)
    taints = {code for codes, when in rows if when != "no" for code in re.findall(r"`(\w+)`", codes)}
    assert taints >= CODES_OF_DISTURBANCE
    assert taints - CODES_OF_DISTURBANCE == CODES_TAINTING_ALL | {"warmup_never_ended"}


def test_where_nothing_else_is_left_it_need_not_wait(disturbed: Run) -> None:
    waiting = waiting_run()
    assert waiting is not None
    assert runs.hasten_remeasuring(disturbed.commit.project) == [waiting.pk]
    assert Run.objects.get(pk=waiting.pk).not_before is None


def test_all_that_is_left_is_cancelled_together(
    client: Client, disturbed: Run, measure: Measure, benchmark: Benchmark
) -> None:
    measure(6, warnings=DISTURBED)
    of_a_person = runs.request_run(factories.create_commit(disturbed.project, 7), disturbed.case, benchmark)
    page, button = "/projects/snakes/runs/", "/projects/snakes/runs/remeasuring/cancel/"
    listed = "2 runs were asked for by the site itself, since earlier ones of these commits were disturbed."
    shown = shown_text(client.get(f"{page}?state=remeasuring"))
    assert listed in shown
    assert "Cancel the 2 left" not in shown
    assert client.post(button).status_code == 302
    client.force_login(create_member("operator", "operator", disturbed.project))
    assert f"{listed} Cancel the 2 left" in shown_text(client.get(f"{page}?state=remeasuring"))
    assert f"{listed} Cancel the 2 left" in shown_text(client.get("/projects/snakes/"))
    # It would end more than what is listed.
    assert "left" not in shown_text(client.get(f"{page}?state=remeasuring&case=tiny"))
    assert "2 runs cancelled." in shown_text(client.post(button, follow=True))
    assert waiting_run() == of_a_person
    entry = AuditEntry.objects.get(action="remeasuring cancelled")
    assert (entry.project, entry.details) == (disturbed.project, {"runs": 2})
    assert describe_entry(entry) == "cancelled 2 runs that measured disturbed ones again"
    assert "No disturbed run is left" in shown_text(client.post(button, follow=True))
    assert AuditEntry.objects.filter(action="remeasuring cancelled").count() == 1


def test_what_a_person_asked_for_meanwhile_is_not_cancelled(disturbed: Run, benchmark: Benchmark) -> None:
    """Also where a machine had begun with it before they asked."""
    again = waiting_run()
    assert again is not None
    let_its_time_come(again)
    assert runs.claim_run("default", "gpu-1") is not None
    asked = disturbed.project.triggers.create(source=Trigger.Source.WEB)
    assert runs.request_run(disturbed.commit, disturbed.case, benchmark, trigger=asked) == again
    with pytest.raises(cancelling.NotCancellable):
        cancelling.cancel_remeasuring(Visitor(), disturbed.project)
    # Once they take it back it is the site's own again.
    assert cancelling.cancel_trigger(Visitor(), asked) == 0
    assert cancelling.cancel_remeasuring(Visitor(), disturbed.project) == 1
