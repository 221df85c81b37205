"""How fast runs are stored and judged: one after the other alone, and by the site's own processes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from bench.ingest.site import WaitingRun
from bench.pages.addresses import list_addresses
from bench.pages.requests import AnswerTimes, time_requests

if TYPE_CHECKING:
    from workers.host.site_api.client import SiteClient

# Hosts that hand in documents at once.
HOSTS = 4
PAGES = ("overview", "project", "series", "run")
IN_FLIGHT = 20
PATIENCE_SECONDS = 60.0
# Between two waves of requests.
PAUSE_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class RunTimes:
    """Of one run, stored and then judged with nothing beside it: seconds, and how many queries each made."""

    storing: float
    judging: float
    storing_queries: int
    judging_queries: int


@dataclass(frozen=True, slots=True)
class Rate:
    """`seconds` until all `runs` were judged; `processors`: seconds of them, by the site's processes."""

    runs: int
    seconds: float
    processors: dict[str, float]

    @property
    def per_minute(self) -> float:
        return 60 * self.runs / self.seconds


def measure_alone(waiting: Sequence[WaitingRun]) -> list[RunTimes]:
    """Each in a transaction that is rolled back: nothing of them stays."""
    from dashboard.garbage_collection import freeze_once

    # As in a worker that has judged before.
    freeze_once()
    return [_store_and_judge(run) for run in waiting]


def _store_and_judge(waiting: WaitingRun) -> RunTimes:
    storing, judging = _time_once(waiting)
    storing_queries, judging_queries = _time_once(waiting, count_queries=True)
    return RunTimes(storing[0], judging[0], storing_queries[1], judging_queries[1])


def _time_once(
    waiting: WaitingRun, *, count_queries: bool = False
) -> tuple[tuple[float, int], tuple[float, int]]:
    """(seconds, queries) of storing and of judging it. Counting costs time of its own."""
    from django.db import transaction

    from dashboard import ingest
    from dashboard.regressions import judge_run

    with transaction.atomic():
        stored = _time_act(lambda: ingest.store_document(waiting.lease, waiting.document), count_queries)
        judged = _time_act(lambda: judge_run(waiting.lease.key), count_queries)
        transaction.set_rollback(True)
    return stored, judged


def _time_act(act: Callable[[], None], count_queries: bool) -> tuple[float, int]:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    begun = time.perf_counter()
    if not count_queries:
        act()
        return time.perf_counter() - begun, 0
    with CaptureQueriesContext(connection) as captured:
        act()
    return time.perf_counter() - begun, len(captured)


@contextmanager
def site_processes(logs: Path) -> Iterator[dict[str, psutil.Process]]:
    """The site's web server and its workers that judge, as `make up` starts them; by name."""
    from django.conf import settings

    from dashboard.services.processes import Site, process_program
    from dashboard.services.supervisor import Supervisor

    supervisor = Supervisor(logs)
    site = Site.from_settings(settings)
    try:
        for name in ("web", "service"):
            supervisor.start(process_program(name, site))
        started = {name: psutil.Process(supervisor.pid(name)) for name in ("web", "service")}
        yield {**started, "Postgres": _postgres_process()}
    finally:
        supervisor.stop()


def _postgres_process() -> psutil.Process:
    """The first of those of the scratch site, whose children the others are."""
    descendants = psutil.Process().children(recursive=True)
    return next(process for process in descendants if process.name() == "postgres")


def measure_rate(
    waiting: Sequence[WaitingRun], address: str, token: str, processes: dict[str, psutil.Process]
) -> Rate:
    """All of them handed in by HTTP, as fast as HOSTS hosts can, until the last one is judged."""
    from workers.host.site_api.client import SiteClient

    client = SiteClient(address, token)
    before = {name: processor_seconds(process) for name, process in processes.items()}
    begun = time.perf_counter()
    with ThreadPoolExecutor(HOSTS) as hosts:
        list(hosts.map(lambda run: client.store_document(run.lease, run.document), waiting))
    wait_until_judged(waiting)
    seconds = time.perf_counter() - begun
    spent = {name: processor_seconds(process) - before[name] for name, process in processes.items()}
    return Rate(len(waiting), seconds, spent)


def wait_until_judged(waiting: Sequence[WaitingRun]) -> None:
    """TimeoutError where none of those that are left is judged for long: the workers' log says why."""
    from dashboard.models import Run

    unjudged = Run.objects.filter(pk__in=[run.lease.key for run in waiting], judged_at=None)
    left, moved = len(waiting), time.monotonic()
    while now := unjudged.count():
        if now < left:
            left, moved = now, time.monotonic()
        if time.monotonic() - moved > PATIENCE_SECONDS:
            raise TimeoutError(f"{left} of {len(waiting)} runs are not judged.")
        time.sleep(0.1)


def processor_seconds(process: psutil.Process) -> float:
    """Of a process and all that it has started, those that have ended too."""
    total = 0.0
    for each in (process, *process.children(recursive=True)):
        try:
            spent = each.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += spent.user + spent.system + spent.children_user + spent.children_system
    return total


def measure_pages(
    waiting: Sequence[WaitingRun], address: str, token: str, port: int, per_minute: float
) -> dict[str, AnswerTimes]:
    """Pages asked for IN_FLIGHT times at once, again and again, while so many runs a minute come in."""
    from workers.host.site_api.client import SiteClient

    client, addresses = SiteClient(address, token), list_addresses()
    seconds: dict[str, list[float]] = {name: [] for name in PAGES}
    received = dict.fromkeys(PAGES, 0)
    # In a process of its own: what this one does meanwhile would lengthen the times that it reads.
    with (
        ProcessPoolExecutor(1, mp_context=get_context("spawn")) as asking,
        ThreadPoolExecutor(1) as host,
    ):
        for name in PAGES:
            asking.submit(time_requests, port, addresses[name], IN_FLIGHT, IN_FLIGHT).result()
        handed_in = host.submit(_hand_in_paced, client, waiting, 60 / per_minute)
        while not handed_in.done():
            for name in PAGES:
                wave = asking.submit(time_requests, port, addresses[name], IN_FLIGHT, IN_FLIGHT).result()
                seconds[name] += wave.seconds
                received[name] = wave.received
                time.sleep(PAUSE_SECONDS)
        handed_in.result()
    wait_until_judged(waiting)
    return {name: AnswerTimes(seconds[name], received[name]) for name in PAGES}


def _hand_in_paced(client: SiteClient, waiting: Sequence[WaitingRun], interval: float) -> None:
    begun = time.monotonic()
    for number, run in enumerate(waiting):
        time.sleep(max(0.0, begun + number * interval - time.monotonic()))
        client.store_document(run.lease, run.document)
