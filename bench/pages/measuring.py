"""Measures each page of a filled site through its own web server."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench.pages.addresses import list_addresses
from bench.pages.requests import AnswerTimes, time_requests

IN_FLIGHT = 20
ALONE = 9
# So that each of the web server's eight threads has made the page, whichever takes a request.
WARMING = 24
# Of these the first, surely of threads that hadn't.
COLD = 3
ROUNDS = 5
AGAIN = 200
P95_TARGET, ALONE_TARGET, QUERIES_TARGET, BYTES_TARGET = 100.0, 40.0, 12, 150_000


@dataclass(frozen=True, slots=True)
class PageFigures:
    """`first`: waves of 20, each the first since something was written; `again`: of what was made before.

    `alone`: milliseconds of the first since something was written, with nothing beside it; `cold` where the
    thread that made it had never made that page, and PostgreSQL planned all that it asks.
    """

    where: str
    first: AnswerTimes
    again: AnswerTimes
    cold_ms: float
    alone_ms: float
    queries: int
    size: int

    @property
    def p50_ms(self) -> float:
        return max(self.first.p50, self.again.p50)

    @property
    def p95_ms(self) -> float:
        return max(self.first.p95, self.again.p95)

    @property
    def missed_targets(self) -> list[str]:
        found = {
            f"p95 {self.p95_ms:.0f} ms": self.p95_ms >= P95_TARGET,
            f"alone {self.alone_ms:.0f} ms": self.alone_ms >= ALONE_TARGET,
            f"{self.queries} queries": self.queries > QUERIES_TARGET,
            f"{self.size:,} bytes": self.size >= BYTES_TARGET,
        }
        return [what for what, missed in found.items() if missed]

    def as_json(self) -> dict[str, float | int]:
        return {
            "p50_ms": round(self.p50_ms, 2),
            "p95_ms": round(self.p95_ms, 2),
            "alone_ms": round(self.alone_ms, 2),
            "queries": self.queries,
            "bytes": self.size,
        }


@contextmanager
def web_server(logs: Path) -> Iterator[int]:
    """The site's web processes, as `make up` starts them; the port that they listen at."""
    from django.conf import settings

    from dashboard.services.processes import Site, process_program
    from dashboard.services.supervisor import Supervisor

    supervisor = Supervisor(logs)
    try:
        supervisor.start(process_program("web", Site.from_settings(settings)))
        yield settings.PORT
    finally:
        supervisor.stop()


def measure_pages(port: int, only: Collection[str] = ()) -> Iterator[tuple[str, PageFigures]]:
    """Each page of `list_addresses`, or those of these names. ValueError names one that isn't there."""
    addresses = list_addresses()
    if unknown := [name for name in only if name not in addresses]:
        raise ValueError(f"{unknown[0]} is none of the pages: {', '.join(addresses)}.")
    addresses = {name: addresses[name] for name in only or addresses}
    for where in addresses.values():
        # Both processes have imported what the page needs.
        time_requests(port, where, IN_FLIGHT, IN_FLIGHT)
    for name, where in addresses.items():
        yield name, _measure_page(port, where)


def _measure_page(port: int, where: str) -> PageFigures:
    alone = []
    for _ in range(WARMING + ALONE):
        change_everything()
        alone.append(time_requests(port, where, 1, 1).p50)
    waves = []
    for _ in range(ROUNDS):
        change_everything()
        waves.append(time_requests(port, where, IN_FLIGHT, IN_FLIGHT))
    again = time_requests(port, where, AGAIN, IN_FLIGHT)
    first = AnswerTimes([seconds for wave in waves for seconds in wave.seconds], again.received)
    queries, size = _look_at_page(where)
    return PageFigures(where, first, again, median(alone[:COLD]), median(alone[WARMING:]), queries, size)


def change_everything() -> None:
    """As a stored run does: nothing that was made before is the newest any more."""
    from dashboard.models import Pool

    Pool.objects.update(name="default")


def _look_at_page(where: str) -> tuple[int, int]:
    """(queries, bytes) of the page as it is made anew; a rate that is counted is one of them."""
    from django.db import connection
    from django.test import Client
    from django.test.utils import CaptureQueriesContext

    client = Client(headers={"host": "127.0.0.1"})
    client.get(where)
    change_everything()
    with CaptureQueriesContext(connection) as queries:
        response = client.get(where)
    return len(queries), len(response.content)
