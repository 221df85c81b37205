"""From a request to the first line of the measured process, and what a run costs around its benchmark."""

from __future__ import annotations

import re
from statistics import median

from bench.lines import Line, format_part
from bench.robustness.running_site import request_runs, running_site, wait_for_runs

FIRST_LINE_SECONDS = 1.5
AROUND_SECONDS = 2.0


def measure_latency(requests: int) -> str:
    """One run after the other, each requested while nothing else waits; the first, which is cold, apart."""
    with running_site() as site:
        from dashboard.models import Run
        from dashboard.runs import repeat_run

        (key,) = request_runs(site.home / "repository", 1, 1)
        before, around = [], []
        for _ in range(requests + 1):
            wait_for_runs([key], 120)
            run = Run.objects.select_related("log", "commit", "configuration").get(pk=key)
            times = [float(found) for found in re.findall(r"(?:first|last) line ([0-9.]+)", run.log.text)]
            if run.finished_at is None or not times:
                raise RuntimeError(f"The run {run.state}: {run.reason}")
            before.append(times[0] - run.requested_at.timestamp())
            around.append(before[-1] + run.finished_at.timestamp() - times[-1])
            key = repeat_run(run, run.commit).pk
    lines = [
        describe_seconds("request to first line, cold", before[:1], None),
        describe_seconds("request to first line, warm", before[1:], FIRST_LINE_SECONDS),
        describe_seconds("around the benchmark", around[1:], AROUND_SECONDS),
    ]
    return format_part("A run of nothing, in a box", ["seconds", "median", "beside"], lines)


def describe_seconds(what: str, seconds: list[float], target: float | None) -> Line:
    middle = median(seconds)
    beside = f"{min(seconds):.2f} to {max(seconds):.2f} s of {len(seconds)}"
    aim = f"median below {target:g} s" if target else ""
    return Line(what, f"{middle:.2f} s", beside, aim, middle < target if target else None)
