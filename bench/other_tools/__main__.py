"""The chart of one series beside codespeed's timeline and asv's graph: the same points, in one Chromium.

`python -m bench.other_tools FOLDER`: the README tells how the folder with both is prepared.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from urllib.parse import urlsplit

from bench.other_tools.asv_site import BENCHMARK, graph_path, publish_history, serve_published
from bench.other_tools.browsing import ChartPage, take_turns
from bench.other_tools.codespeed_site import serve_codespeed
from bench.other_tools.history import read_history
from bench.other_tools.tables import ASV, CODESPEED, SITE, format_visits, write_table
from bench.pages.requests import time_requests
from bench.scratch_site import scratch_site
from bench.series_chart import fill_series
from dashboard.services.preflight import free_port

SIZES = (200, 1_000, 10_000)
SERVER_ROUNDS = 9
SELECTORS = {
    # As the page has it, or as its script has drawn it again.
    SITE: ".chart .canvas .still path, .chart .canvas .scatterlayer path.js-line",
    CODESPEED: "#plot canvas.jqplot-series-canvas",
    ASV: "#main-graph canvas.flot-base",
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.other_tools", description=__doc__)
    parser.add_argument("sources", type=Path, metavar="FOLDER", help="with codespeed, asv and node_modules")
    parser.add_argument("--commits", type=int, nargs="+", default=SIZES, help="that charts show")
    parser.add_argument("--rounds", type=int, default=9, help="of visits, after one that warms everything")
    parser.add_argument("--write", action="store_true", help="write what is printed into bench/README.md")
    arguments = parser.parse_args()
    load = os.getloadavg()[0]
    # Playwright's calls run beside an event loop, in which Django would refuse its own.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    os.environ["PORT"] = str(free_port())
    # They are counted as ever, and never refused.
    os.environ["PACELINE_RATES"] = "pages=9999999/s,api=9999999/s"
    with scratch_site(), tempfile.TemporaryDirectory() as scratch:
        table = measure_tools(arguments.sources.resolve(), Path(scratch), arguments.commits, arguments.rounds)
    loads = f"load {load:.1f} at the start and {os.getloadavg()[0]:.1f} at the end"
    head = f"{arguments.rounds} rounds; {os.cpu_count()} processors, {loads}; milliseconds."
    text = f"{head}\n\n{table}"
    print(text)
    if arguments.write:
        write_table(text)


def measure_tools(sources: Path, scratch: Path, sizes: Sequence[int], rounds: int) -> str:
    from django.db import connection

    from bench.pages.measuring import change_everything, web_server

    series = fill_series(max(sizes))
    commits = read_history(series)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    with ExitStack() as servers:
        port = servers.enter_context(web_server(scratch))
        (scratch / CODESPEED).mkdir()
        codespeed = servers.enter_context(
            serve_codespeed(sources / "codespeed", scratch / CODESPEED, commits, connection.settings_dict)
        )
        pages: list[ChartPage] = []
        requests: dict[tuple[int, str], list[str]] = {}
        for size in sizes:
            folder = scratch / f"asv-{size}"
            publish_history(sources, folder, commits[-size:])
            published = servers.enter_context(serve_published(folder))
            addresses: Mapping[str, list[str]] = {
                SITE: [f"http://127.0.0.1:{port}/series/{series}/?show={size}"],
                CODESPEED: [
                    f"{codespeed}/timeline/?ben={BENCHMARK}&revs={size}",
                    f"{codespeed}/timeline/json/?exe=1&base=none&ben={BENCHMARK}&env=1&revs={size}",
                ],
                ASV: [f"{published}/", *(f"{published}/{path}" for path in data_paths())],
            }
            for tool, where in addresses.items():
                part = f"#{BENCHMARK}" if tool == ASV else ""
                pages.append(ChartPage(tool, size, where[0] + part, SELECTORS[tool], has_event=tool == SITE))
                requests[size, tool] = where
        pairs = list(take_turns(pages, rounds, change_everything))
        server_ms = {which: time_server(where, change_everything) for which, where in requests.items()}
    return format_visits(pairs, server_ms)


def data_paths() -> list[str]:
    return ["info.json", "index.json", graph_path().as_posix()]


def time_server(addresses: Sequence[str], change: Callable[[], None]) -> float:
    """Milliseconds of all these requests together, each the first since something was stored."""
    total = 0.0
    for address in addresses:
        parts = urlsplit(address)
        where = f"{parts.path}?{parts.query}" if parts.query else parts.path
        times = []
        for _ in range(SERVER_ROUNDS):
            change()
            times.append(time_requests(parts.port or 80, where, 1, 1).p50)
        total += median(times)
    return total


if __name__ == "__main__":
    main()
