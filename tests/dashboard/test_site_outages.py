"""While the site is away hosts measure on; once it is back they get time to say so."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from dashboard import runs, site_outages
from dashboard.models import Heartbeat, Run


def claim_expired(run: Run) -> None:
    assert runs.claim_run(run.pool.name, "gpu-1")
    Run.objects.update(lease_until=timezone.now() - timedelta(seconds=1))


def be_silent(part: str, seconds: int) -> None:
    seen = timezone.now() - timedelta(seconds=seconds)
    Heartbeat.objects.update_or_create(name=part, defaults={"seen_at": seen})


@pytest.mark.parametrize("part", ["web", "sweep"])
def test_after_an_outage_nothing_is_requeued_at_once(run: Run, part: str) -> None:
    claim_expired(run)
    be_silent(part, 600)
    assert site_outages.grant_grace()
    runs.sweep_runs()
    run.refresh_from_db()
    assert (run.state, run.attempt) == ("claimed", 1)


def test_grace_ends(run: Run) -> None:
    """A host that says nothing once the site is back has died meanwhile."""
    be_silent("sweep", 600)
    site_outages.grant_grace()
    claim_expired(run)
    assert not site_outages.grant_grace()
    runs.sweep_runs()
    run.refresh_from_db()
    assert run.state == "requested"


def test_while_all_live_a_lost_host_is_lost(run: Run) -> None:
    claim_expired(run)
    for part in ("web", "sweep"):
        be_silent(part, 5)
    assert not site_outages.grant_grace()
    runs.sweep_runs()
    run.refresh_from_db()
    assert run.state == "requested"
