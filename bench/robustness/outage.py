"""The database goes away while runs are measured: all are done afterwards, and none was measured twice."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from bench.lines import Line, format_part
from bench.robustness.running_site import count_states, request_runs, running_site, wait_for, wait_for_runs
from dashboard.services import embedded, service_addresses
from dashboard.services.supervisor import Supervisor

RUNS = 10
# A run takes some seconds, so that one is being measured when the database goes.
STEPS, WORK = 300, 300_000


def measure_outage(seconds: float) -> str:
    """Ten runs; after the third the database is stopped for so long."""
    with tempfile.TemporaryDirectory(prefix="paceline-outage-") as folder:
        home = Path(folder) / "database"
        database = start_database(home)
        try:
            with running_site(database=service_addresses(home).database_url) as site:
                keys = request_runs(site.home / "repository", RUNS, 1, steps=STEPS, work=WORK)
                wait_for(lambda: is_in_the_middle(keys), 300)
                database.stop()
                time.sleep(seconds)
                database = start_database(home)
                wait_for_runs(keys, 600)
                return describe_outage(keys, seconds)
        finally:
            database.stop()


def is_in_the_middle(keys: list[int]) -> bool:
    states = count_states(keys)
    return states["done"] >= 3 and states["measuring"] == 1


def start_database(home: Path) -> Supervisor:
    supervisor = Supervisor(home / "logs")
    embedded.start_embedded(supervisor, home, queue=False)
    return supervisor


def describe_outage(keys: list[int], seconds: float) -> str:
    from dashboard.models import Document, Run

    done = count_states(keys)["done"]
    attempts = sum(Run.objects.filter(pk__in=keys).values_list("attempt", flat=True))
    stored = Document.objects.filter(run__in=keys).count()
    lines = [
        Line("done", str(done), f"{stored} documents", f"all {RUNS}", done == stored == RUNS),
        Line(
            "measured", f"{attempts} times", "attempts of all runs together", "none twice", attempts == RUNS
        ),
    ]
    return format_part(f"{seconds:.0f} s without the database", ["what", "figure", "beside"], lines)
