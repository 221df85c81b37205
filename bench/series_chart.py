"""How soon a long series is drawn in a browser, and whether it can be panned without a stall.

`python -m bench.series_chart --commits 10000` fills a site of its own, and drives the system's Chromium
through its devtools protocol: from the start of the navigation to the drawn chart, then a drag across it.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import shutil
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager
from statistics import median
from typing import Any

from .gunicorn_server import running_server
from .scratch_site import scratch_site

NAMES = ("chromium", "chromium-browser", "google-chrome", "chromium-headless-shell")
PAN_MOVES = 60
RANGE = "document.querySelector('.canvas').layout.xaxis.range.join()"
# Marks the time at which each chart was drawn, and the longest time that the page's thread was busy.
WATCH = """
window.watched = {drawn: 0, tasks: []};
const note = () => requestAnimationFrame(() => { watched.drawn = performance.now(); });
document.addEventListener("chart:drawn", note, true);
new PerformanceObserver((list) => watched.tasks.push(...list.getEntries().map((task) => task.duration)))
  .observe({type: "longtask", buffered: true});
"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.series_chart", description=__doc__)
    parser.add_argument("--commits", type=int, default=10_000, help="commits of the series, one run each")
    parser.add_argument("--rounds", type=int, default=7, help="navigations, after one that warms the site")
    arguments = parser.parse_args()
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}", flush=True)
    with scratch_site():
        series = fill_series(arguments.commits)
        with serve_site() as address:
            where = f"{address}/series/{series}/?show={arguments.commits}"
            for line in measure_page(where, arguments.rounds):
                print(line, flush=True)


def fill_series(commits: int) -> int:
    """The key of a series of noise with a level that moves every thousand commits."""
    from datetime import timedelta

    from django.utils import timezone

    from dashboard.models import (
        Case,
        Commit,
        Configuration,
        Metric,
        Point,
        Pool,
        Project,
        Run,
        Series,
        SeriesLatest,
    )  # fmt: skip

    chance = random.Random(7)
    project = Project.objects.create(slug="long", repository="/nowhere")
    case = Case.objects.create(project=project, benchmark="train")
    pool = Pool.objects.create(name="pool")
    configuration = Configuration.objects.create(case=case, version=1, pool=pool)
    metric = Metric.objects.create(name="step_time", unit="s", better="lower", kind="time")
    series = Series.objects.create(configuration=configuration, metric=metric, headline=True)
    start = timezone.now() - timedelta(hours=commits)
    line = Commit.objects.bulk_create(
        Commit(
            project=project, hash=f"{position:040x}", branch="main", position=position,
            subject=f"Change number {position}", committed_at=start + timedelta(hours=position),
        )
        for position in range(commits)
    )  # fmt: skip
    common = {"configuration": configuration, "state": "done", "repetitions": 5, "time_limit": 60}
    runs = Run.objects.bulk_create(Run(commit=commit, **common) for commit in line)
    values = [
        0.001 * (1 + 0.1 * math.sin(position // 1000)) * chance.gauss(1, 0.01) for position in range(commits)
    ]
    Point.objects.bulk_create(
        Point(
            series=series, position=run.commit.position, run=run, value=value, low=0.99 * value,
            high=1.01 * value, samples=[value] * 5,
        )
        for run, value in zip(runs, values, strict=True)
    )  # fmt: skip
    SeriesLatest.objects.create(series=series, run=runs[-1], position=commits - 1, value=values[-1])
    return series.pk


def serve_site() -> AbstractContextManager[str]:
    """The site's address, served as `make up` serves it, but each page is made anew."""
    return running_server([sys.executable], "dashboard.wsgi", {"PACELINE_PAGE_MEMORY_MB": "0"})


def measure_page(where: str, rounds: int) -> Iterator[str]:
    from playwright.sync_api import sync_playwright

    program = next((path for name in NAMES if (path := shutil.which(name))), None)
    if program is None:
        raise SystemExit("This needs Chromium: apt install chromium.")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.add_init_script(WATCH)
        drawn: list[float] = []
        for _ in range(rounds + 1):
            page.goto(where, wait_until="load")
            # Not by a function in the page, which its policy refuses to evaluate.
            while not page.evaluate("watched.drawn"):
                page.wait_for_timeout(20)
            drawn.append(page.evaluate("watched.drawn"))
        yield f"drawn after {median(drawn[1:]):.0f} ms (median), {max(drawn[1:]):.0f} ms at most"
        before = page.evaluate(RANGE)
        page.evaluate("watched.tasks.length = 0")
        pan_chart(page)
        yield f"a drag of {PAN_MOVES} moves: {describe_stalls(page)}"
        if page.evaluate(RANGE) == before:
            raise SystemExit("The drag has not moved the chart.")
        page.wait_for_url("**zoom=**")
        page.wait_for_timeout(1000)
        yield f"the part that it ends at, loaded and drawn: {describe_stalls(page)}"
        browser.close()


def pan_chart(page: Any) -> None:
    """Drag half across the chart, a frame for each move; what has to be loaded comes after the drag."""
    box = page.locator(".nsewdrag").first.bounding_box()
    y, right = box["y"] + box["height"] / 2, box["x"] + 0.75 * box["width"]
    page.keyboard.down("Shift")
    page.mouse.move(right, y)
    page.mouse.down()
    for move in range(PAN_MOVES):
        page.mouse.move(right - box["width"] / 2 * move / PAN_MOVES, y)
        page.evaluate("new Promise(requestAnimationFrame)")
    page.mouse.up()
    page.keyboard.up("Shift")
    page.wait_for_timeout(60)


def describe_stalls(page: Any) -> str:
    """What kept the page's thread busy for more than 50 ms since the last call."""
    tasks = page.evaluate("watched.tasks.splice(0)")
    return f"{len(tasks)} stalls over 50 ms, the longest {max(tasks, default=0):.0f} ms"


if __name__ == "__main__":
    main()
