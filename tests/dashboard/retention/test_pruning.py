"""Dropping: cut off in the middle, done twice, beside judging, by policies within the site's bounds."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.models.expressions import RawSQL

from dashboard import retention
from dashboard.models import Document, DroppedDetail, Project, Run, RunLog, Telemetry
from dashboard.policy.effective import Origin
from dashboard.regressions.judged_rows import lock_project
from dashboard.retention import detail_kinds, pruning
from tests.dashboard import factories
from tests.dashboard.retention.histories import KEEP_A_DAY, measure_values

KINDS = {kind.name: kind for kind in detail_kinds.KINDS}
EVERYTHING = {"logs", "telemetry", "profiles", "documents", "points"}


@pytest.fixture
def history(project: Project, settings: Any) -> list[Run]:
    """Forty runs, older than anything is kept. The newest one keeps its detail anyway."""
    settings.PACELINE_KEEP_LEAST_DAYS = 0
    Project.objects.filter(pk=project.pk).update(policy=KEEP_A_DAY)
    project.refresh_from_db()
    return measure_values(project, factories.noisy_levels((40, 0.010)))


@pytest.mark.django_db
def test_it_says_what_was_dropped_and_when(history: list[Run], project: Project) -> None:
    forecast = {row.kept.kind: row for row in retention.forecast_project(project)}
    dropped = retention.prune_runs(seconds=60)
    assert dropped == {"logs": 39, "telemetry": 39, "profiles": 39, "documents": 39, "points": 7}
    told = {row.kind: row for row in DroppedDetail.objects.filter(project=project)}
    for kind in ("logs", "telemetry", "points"):
        assert (told[kind].runs, told[kind].entries, told[kind].size) == (
            forecast[kind].runs,
            forecast[kind].rows,
            forecast[kind].size,
        )
        assert told[kind].size > 0
    # Four series that nothing reads.
    assert told["points"].entries == 4 * 7


@pytest.mark.django_db
def test_a_second_time_nothing_is_left(history: list[Run], project: Project) -> None:
    retention.prune_runs(seconds=60)
    told = list(DroppedDetail.objects.values_list("kind", "runs", "entries", "size"))
    assert retention.prune_runs(seconds=60) == dict.fromkeys(EVERYTHING, 0)
    assert {row.runs for row in retention.forecast_project(project)} == {0}
    assert list(DroppedDetail.objects.values_list("kind", "runs", "entries", "size")) == told


@pytest.mark.django_db
def test_what_is_cut_off_is_gone_on_with(
    history: list[Run], project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the middle of a batch nothing of it is gone; between two what was dropped is dropped and told."""
    monkeypatch.setattr(pruning, "BATCH", 10)

    def fail(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(pruning, "note_dropped", fail)
        with pytest.raises(KeyboardInterrupt):
            retention.prune_runs(seconds=60)
    assert (RunLog.objects.count(), Telemetry.objects.count()) == (40, 40)
    for kind in ("logs", "telemetry"):
        batches = pruning.drop_in_batches(project, KINDS[kind])
        assert next(batches) == 10
    assert (RunLog.objects.count(), Telemetry.objects.count()) == (30, 30)
    assert set(DroppedDetail.objects.values_list("runs", flat=True)) == {10}
    # Their documents still hold the telemetry, and are known to.
    assert Document.objects.filter(rewrite_due=True).exclude(body__telemetry=[]).count() == 10
    retention.prune_runs(seconds=60)
    assert (RunLog.objects.count(), Document.objects.filter(rewrite_due=True).count()) == (1, 0)
    assert set(DroppedDetail.objects.exclude(kind="points").values_list("runs", flat=True)) == {39}


@pytest.mark.django_db
def test_documents_are_written_anew_without_what_was_dropped(history: list[Run], project: Project) -> None:
    Project.objects.filter(pk=project.pk).update(policy="[policy.keep]\ntelemetry = 1\nprofiles = 0")
    retention.prune_runs(seconds=60)
    assert Document.objects.filter(body__telemetry=[], rewrite_due=False).count() == 39
    Project.objects.filter(pk=project.pk).update(policy="[policy.keep]\nprofiles = 1")
    retention.prune_runs(seconds=60)
    bodies = Document.objects.filter(telemetry_dropped=True, profile_dropped=True).values_list(
        "body", flat=True
    )
    assert [(body["telemetry"], body["profile"]) for body in bodies] == [([], None)] * 39


@pytest.mark.django_db
def test_nobodys_documents_are_written_where_none_are_due(history: list[Run]) -> None:
    # Whatever is written to a row, it lies in another place then.
    placed = Document.objects.annotate(place=RawSQL("ctid::text", [])).order_by("run")
    before = list(placed.values_list("run", "place"))
    detail_kinds.rewrite_documents(time.monotonic() + 60)
    assert list(placed.values_list("run", "place")) == before
    Document.objects.update(rewrite_due=True)
    detail_kinds.rewrite_documents(time.monotonic() + 60)
    assert not set(placed.values_list("run", "place")) & set(before)


@pytest.mark.django_db
def test_a_regression_opened_between_two_batches_keeps_its_runs(
    history: list[Run], project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning, "BATCH", 10)
    batches = pruning.drop_in_batches(project, KINDS["logs"])
    assert next(batches) == 10
    factories.create_regression([run.commit for run in history], 15, "step_time", 15)
    assert next(batches) == 4
    assert RunLog.objects.filter(run__in=history[12:18]).count() == 6


@pytest.mark.django_db(transaction=True)
def test_a_regression_opened_while_a_batch_waits_keeps_its_runs(history: list[Run], project: Project) -> None:
    """Judging holds the project's lock; the batch was chosen before, and waits for it."""
    dropped: list[int] = []

    def drop() -> None:
        try:
            dropped.append(pruning.drop_batch(project, KINDS["logs"], [run.pk for run in history[:20]]))
        finally:
            connection.close()

    waiting = threading.Thread(target=drop)
    with transaction.atomic():
        lock_project(project.pk)
        waiting.start()
        wait_for_lock()
        factories.create_regression([run.commit for run in history], 15, "step_time", 15)
    waiting.join()
    assert dropped == [14]
    assert RunLog.objects.filter(run__in=history[12:18]).count() == 6


def wait_for_lock() -> None:
    """Until another connection of this database waits for a lock that somebody holds."""
    with connection.cursor() as cursor:
        while True:
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity "
                "WHERE datname = current_database() AND wait_event_type = 'Lock'"
            )
            (number,) = cursor.fetchone()
            if number:
                return
            # What is seen of others stays the same within a transaction, unless it is asked for anew.
            cursor.execute("SELECT pg_stat_clear_snapshot()")
            time.sleep(0.01)


@pytest.mark.django_db
def test_a_policy_that_keeps_longer_holds_for_what_was_chosen_before(
    history: list[Run], project: Project
) -> None:
    keys = [run.pk for run in history[:20]]
    Project.objects.filter(pk=project.pk).update(policy="[policy.keep]\nlogs = 0")
    assert pruning.drop_batch(project, KINDS["logs"], keys) == 0
    assert RunLog.objects.count() == 40


@pytest.mark.django_db
def test_no_project_waits_until_another_is_done(history: list[Run], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pruning, "BATCH", 1)
    other = factories.create_project("other", policy="[policy.keep]\nlogs = 1")
    measure_values(other, factories.noisy_levels((3, 0.010)))
    clock = iter(range(1000))
    monkeypatch.setattr(pruning, "monotonic", lambda: next(clock))
    retention.prune_runs(seconds=12)
    assert set(DroppedDetail.objects.values_list("project__slug", flat=True)) == {"snakes", "other"}


@pytest.mark.django_db
def test_one_project_alone(history: list[Run], project: Project) -> None:
    other = factories.create_project("other", policy="[policy.keep]\nlogs = 1")
    measure_values(other, factories.noisy_levels((3, 0.010)))
    assert retention.prune_runs(seconds=60, project=other)["logs"] == 2
    assert RunLog.objects.filter(run__configuration__case__project=project).count() == 40


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("policy", "bounds", "days", "asked"),
    [
        ("", (30, 100), 180, None),
        ("logs = 90", (30, 100), 90, None),
        ("logs = 1", (30, 0), 30, 1),
        ("logs = 400", (0, 365), 365, 400),
        ("logs = 0", (0, 365), 365, 0),
        ("logs = 0", (30, 0), 0, None),
    ],
)
def test_a_policy_counts_within_what_the_site_allows(
    project: Project, settings: Any, policy: str, bounds: tuple[int, int], days: int, asked: int | None
) -> None:
    settings.PACELINE_KEEP_LEAST_DAYS, settings.PACELINE_KEEP_MOST_DAYS = bounds
    settings.PACELINE_KEEP_LOGS_DAYS = 180
    project.policy = f"[policy.keep]\n{policy}"
    logs = retention.kept_days(project)[0]
    assert (logs.days, logs.asked) == (days, asked)
    assert logs.origin == (Origin.SITE if policy else Origin.DEFAULT)


@pytest.mark.django_db
def test_the_site_says_above_the_manifest(project: Project) -> None:
    project.manifest_policy = {"keep": {"logs": 60, "points": 400, "points_every": 5}}
    project.policy = "[policy.keep]\nlogs = 90"
    days = {row.kind: (row.days, row.origin) for row in retention.kept_days(project)}
    assert (days["logs"], days["points"]) == ((90, Origin.SITE), (400, Origin.MANIFEST))
