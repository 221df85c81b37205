"""What is measured of ingest, as a table."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

from bench.ingest.documents import SERIES
from bench.ingest.measuring import (
    IN_FLIGHT,
    Rate,
    RunTimes,
    measure_alone,
    measure_pages,
    measure_rate,
    site_processes,
)
from bench.ingest.site import COMMITS, create_waiting_runs, fill_with_history
from bench.lines import Line, format_part
from bench.pages.measuring import P95_TARGET
from bench.pages.requests import AnswerTimes
from bench.scratch_site import scratch_site

TARGET_PER_MINUTE = 100
# New commits; each is a run of every case of its project.
ALONE, WARM_UP = 2, 1
LEAST_COMMITS = 4


def measure_ingest(runs: int) -> str:
    """The table: so many runs stored and judged, and as many once more beside pages."""
    # Django reads its settings once in a process, and another part may have a site of its own.
    command = [sys.executable, "-m", "bench.ingest", "--runs", str(runs)]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def measure_here(runs: int, *, with_pages: bool) -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    os.environ["PORT"] = str(port)
    # They are counted as ever, and never refused.
    os.environ["PACELINE_RATES"] = "pages=9999999/s,api=9999999/s"
    with scratch_site(), tempfile.TemporaryDirectory() as logs:
        from dashboard.hosts import create_join_code, join_machines
        from dashboard.models import Pool

        fill_with_history()
        ((machine, token),) = join_machines(
            create_join_code(Pool.objects.get(name="default"), "bench"), ["host-1"]
        )
        address = f"http://127.0.0.1:{port}"
        settled = create_waiting_runs(machine, WARM_UP)
        with site_processes(Path(logs)) as processes:
            # The first judgement of a case has all of its history to settle, each worker much to import.
            measure_rate(settled, address, token, processes)
        alone = measure_alone(create_waiting_runs(machine, ALONE))
        each = len(settled) // WARM_UP
        commits = max(LEAST_COMMITS, runs // each)
        with site_processes(Path(logs)) as processes:
            measure_rate(create_waiting_runs(machine, WARM_UP), address, token, processes)
            rate = measure_rate(create_waiting_runs(machine, commits), address, token, processes)
            pages = (
                measure_pages(create_waiting_runs(machine, commits), address, token, port, TARGET_PER_MINUTE)
                if with_pages
                else {}
            )
    return format_part(
        f"ingest: documents of {SERIES} series, behind {COMMITS} runs of each case",
        ("", "figure", ""),
        [*format_alone(alone), *format_rate(rate), *format_pages(pages)],
    )


def format_alone(alone: Sequence[RunTimes]) -> list[Line]:
    storing, judging = ([getattr(run, name) for run in alone] for name in ("storing", "judging"))
    return [
        Line(
            f"{name} a run, alone",
            f"{1000 * median(times):.0f} ms",
            f"{queries:.0f} queries, slowest {1000 * max(times):.0f} ms",
        )
        for name, times, queries in (
            ("storing", storing, median(run.storing_queries for run in alone)),
            ("judging", judging, median(run.judging_queries for run in alone)),
        )
    ]


def format_rate(rate: Rate) -> list[Line]:
    spent = ", ".join(f"{name} {seconds / rate.runs:.2f}" for name, seconds in rate.processors.items())
    return [
        Line(
            f"{rate.runs} runs, handed in at once",
            f"{rate.per_minute:.0f} a minute",
            f"processor seconds a run: {spent}",
            f"at least {TARGET_PER_MINUTE} a minute",
            rate.per_minute >= TARGET_PER_MINUTE,
        )
    ]


def format_pages(pages: Mapping[str, AnswerTimes]) -> list[Line]:
    return [
        Line(
            f"{name}, meanwhile",
            f"p95 {times.p95:.0f} ms",
            f"p50 {times.p50:.0f} ms, {IN_FLIGHT} in flight, {TARGET_PER_MINUTE} runs a minute",
            f"p95 below {P95_TARGET:.0f} ms",
            times.p95 < P95_TARGET,
        )
        for name, times in pages.items()
    ]
