"""A worker is killed while it measures pairs: another one goes on with the next pair."""

from __future__ import annotations

from pathlib import Path

from dashboard.models import Experiment
from tests.processes import running_agent
from tests.workers.conftest import Host
from tests.workers.host.execution.test_experiment_executor import suspected
from tests.workers.waiting import wait_until

__all__ = ["suspected"]


def test_a_killed_worker_loses_no_pair_and_measures_none_twice(
    host: Host, suspected: Experiment, tmp_path: Path
) -> None:
    with running_agent(host.home, host.client.site, log=tmp_path / "first.log") as first:
        wait_until(lambda: suspected.pairs.exists(), seconds=150)
        first.kill()
    kept = list(suspected.pairs.values())
    # It says that it begins anew: nobody waits for the lease.
    with running_agent(host.home, host.client.site, log=tmp_path / "second.log"):
        wait_until(lambda: suspected.pairs.count() > len(kept), seconds=150)
        suspected.refresh_from_db()
    rows = list(suspected.pairs.values())
    assert rows[: len(kept)] == kept
    assert [row["index"] for row in rows] == list(range(len(rows)))
    assert suspected.attempt == 2
