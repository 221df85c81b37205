"""Many runs while every part of the site is killed: each is done exactly once, and pages answer meanwhile."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from contextlib import suppress

import psutil

from bench.lines import Line, format_part
from bench.robustness.running_site import RunningSite, count_states, request_runs, running_site, wait_for_runs

PAGE_SECONDS = 0.2
PAGES = ("/", "/projects/nothing/", "/machines/")
SECONDS_PER_RUN = 10


def measure_restarts(requests: int, hosts: int, kills: int, seed: int) -> str:
    """So many runs on so many hosts; each host is killed `kills` times, the queue, database and web once."""
    with running_site(hosts) as site:
        keys = request_runs(site.home / "repository", max(1, requests // 10), min(10, requests))
        over = threading.Event()
        pages = PageVisits(site, over)
        started = time.monotonic()
        killer = threading.Thread(target=kill_parts, args=(site, kills, seed, over, len(keys)))
        for thread in (pages, killer):
            thread.start()
        try:
            wait_for_runs(keys, 120 + SECONDS_PER_RUN * len(keys))
        finally:
            over.set()
            killer.join()
            pages.join()
        took = time.monotonic() - started
        return describe_restarts(keys, pages, took, f"{len(keys):,} runs on {hosts} hosts")


def kill_parts(site: RunningSite, kills: int, seed: int, over: threading.Event, requests: int) -> None:
    """At random moments of about the time that the runs take, with SIGKILL."""
    dice = random.Random(seed)
    acts: list[Callable[[], object]] = [
        lambda: site.part("redis-server").kill(),
        lambda: site.part("postgres", "-D").kill(),
        lambda: site.part("gunicorn").kill(),
    ]
    for host in site.hosts:
        acts += [host.kill] * kills
    acts += [lambda: site.part("workers.host").kill()] * kills
    dice.shuffle(acts)
    for act in acts:
        if over.wait(dice.uniform(0, 2 * 1.5 * requests / len(acts))):
            return
        # It may be starting again just now.
        with suppress(ValueError, ProcessLookupError, psutil.Error):
            act()


class PageVisits(threading.Thread):
    """Looks at a page every second; `seconds` are those that were answered, `refused` counts the others."""

    def __init__(self, site: RunningSite, over: threading.Event) -> None:
        super().__init__()
        self.site = site
        self.over = over
        self.seconds: list[float] = []
        self.refused = 0

    def run(self) -> None:
        while not self.over.wait(1):
            for path in PAGES:
                try:
                    self.seconds.append(self.site.get_page(path))
                except OSError:
                    self.refused += 1


def describe_restarts(keys: list[int], pages: PageVisits, took: float, title: str) -> str:
    from django.db.models import Count

    from dashboard.models import Document, Point, Run

    states = count_states(keys)
    stored = Document.objects.filter(run__in=keys).count()
    doubled = Point.objects.values("series", "run").annotate(times=Count("pk")).filter(times__gt=1).count()
    again = Run.objects.filter(pk__in=keys, attempt__gt=1).count()
    ordered = sorted(pages.seconds)
    slow = ordered[int(0.95 * (len(ordered) - 1))] if ordered else float("nan")
    every, done = len(keys), states["done"]
    once = stored == every and not doubled
    lines = [
        Line("done", f"{done:,}", f"{took:.0f} s, {again} in a later attempt", "all", done == every),
        Line("documents", f"{stored:,}", f"{doubled} points twice", "one of each run", once),
        Line(
            "pages, 95 of 100",
            f"{1000 * slow:.0f} ms",
            f"{len(ordered)} answered, {pages.refused} not, while a part was away",
            f"below {1000 * PAGE_SECONDS:.0f} ms",
            slow < PAGE_SECONDS,
        ),
    ]
    return format_part(title, ["what", "figure", "beside"], lines)
