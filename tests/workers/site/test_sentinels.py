"""A sentinel's day on a real worker: pinned after the first run, measured a day later, kept apart."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from dashboard import regressions
from dashboard.models import Machine, Point, Run, Sentinel
from tests.workers.conftest import Host, Requested
from workers.site import tasks


def test_a_pinned_commit_is_measured_again_a_day_later(host: Host, requested: Requested) -> None:
    first = requested()
    assert host.execute_next()
    # Other tests may run beside this one and disturb it: what is tainted isn't pinned.
    Run.objects.update(tainted=False)
    tasks.watch_machines()
    pinned = Sentinel.objects.get()
    assert (pinned.commit, pinned.machine.name) == (first.commit, "gpu-1")
    assert not Run.objects.filter(origin="sentinel").exists()

    yesterday = timezone.now() - timedelta(days=1)
    Run.objects.update(requested_at=yesterday, finished_at=yesterday)
    pinned.points.update(measured_at=yesterday)
    Machine.objects.update(seen_at=timezone.now())
    tasks.watch_machines()
    points = Point.objects.count()
    assert host.execute_next()
    again = Run.objects.get(origin="sentinel")
    regressions.judge_run(again.pk)
    assert (again.state, again.reason, Point.objects.count()) == ("done", "", points)
    assert pinned.points.filter(metric__name="step_time").count() == 2
