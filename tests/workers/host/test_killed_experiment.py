"""A worker is killed while it measures pairs: another one goes on with the next pair."""

from __future__ import annotations

from pathlib import Path

import pytest

from dashboard import dispatch, experiments
from dashboard.models import Experiment, Machine
from tests.processes import running_worker
from tests.workers.host.test_experiment_executor import suspected
from tests.workers.waiting import wait_until

__all__ = ["suspected"]


@pytest.fixture
def environment(site_environment: dict[str, str], home: Path) -> dict[str, str]:
    """Of a worker whose leases end soon."""
    told = {"PACELINE_HOME": str(home), "PACELINE_MACHINE": "gpu-1", "PACELINE_LEASE_SECONDS": "4"}
    return {**site_environment, **told}


@pytest.mark.parametrize("purpose", ["proof", "bisection"])
def test_a_killed_worker_loses_no_pair_and_measures_none_twice(
    environment: dict[str, str], suspected: Experiment, tmp_path: Path, purpose: str
) -> None:
    Experiment.objects.update(purpose=purpose, question="test" if purpose == "proof" else "place")
    with running_worker(environment, "pool.default", log=tmp_path / "first.log") as first:
        wait_until(lambda: Machine.objects.filter(name="gpu-1", seen_at__isnull=False))
        dispatch.wake_workers("default")
        wait_until(lambda: suspected.pairs.exists(), seconds=150)
        first.kill()
    kept = list(suspected.pairs.values())

    def goes_on() -> bool:
        experiments.sweep_experiments()
        return suspected.pairs.count() > len(kept)

    with running_worker(environment, "pool.default", log=tmp_path / "second.log"):
        wait_until(goes_on, seconds=150)
    rows = list(suspected.pairs.values())
    assert rows[: len(kept)] == kept
    assert [row["index"] for row in rows] == list(range(len(rows)))
    suspected.refresh_from_db()
    assert suspected.attempt == 2
