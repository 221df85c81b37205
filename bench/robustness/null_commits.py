"""Commits that change nothing, on a machine that does other work too: how often they alarm, proven or not."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from bench.lines import Line, format_part
from bench.robustness.running_site import running_site, wait_for, wait_for_runs
from tests.workers.repositories import commit_files, create_repository

if TYPE_CHECKING:
    from dashboard.models import Project
    from dashboard.querysets.alarm_record import Suspicion

# Cheap cases: one of calls, one of memory, one of a library's loops.
SCRIPT = """
# {number}
import argparse
import json
import paceline

parser = argparse.ArgumentParser()
parser.add_argument("--work")
work = parser.parse_args().work
rows = [{{"step": number, "loss": number * 0.5}} for number in range(400)]
for _ in paceline.steps(range(10**9)):
    with paceline.phase("act"):
        sum(range(20_000))
    with paceline.phase("learn"):
        if work == "calls":
            sum(number * number for number in range(60_000))
        elif work == "memory":
            bytearray(8_000_000).count(1)
        else:
            json.loads(json.dumps(rows))
"""
MANIFEST = """
[benchmarks.loop]
version = 1
script = "train.py"
warmup_steps = 5
steps = 60
counting_steps = 4
repetitions = 3
time_limit = 120
cases = [{ work = "calls" }, { work = "memory" }, { work = "library" }]
"""
# A whole core, for as long as somebody's build or tests would take it, and away for about as long.
NEIGHBOUR = "while True: sum(range(1_000_000))"
MEAN_BUSY_SECONDS, MEAN_IDLE_SECONDS = 20.0, 40.0
RUN_SECONDS, PROOF_SECONDS = 1800.0, 3600.0


def measure_null_commits(commits: int, minutes: float, seed: int) -> str:
    """So many commits one after the other, or as many as begin within these minutes; and all their proofs."""
    with running_site() as site:
        from dashboard import triggers
        from dashboard.projects.registration import NewProject, add_project

        repository = create_repository(
            site.home / "repository", {"train.py": SCRIPT.format(number=0), "paceline.toml": MANIFEST}
        )
        project = add_project(NewProject("same", str(repository)))
        started = time.monotonic()
        measured = 0
        with coming_and_going_neighbour(random.Random(seed)):
            while measured < commits and time.monotonic() - started < 60 * minutes:
                measured += 1
                head = commit_files(repository, {"train.py": SCRIPT.format(number=measured)})
                keys = triggers.create_command_trigger(project, triggers.parse_revisions(head))[1]
                wait_for_runs(keys, RUN_SECONDS)
            # What was disturbed waits for a calm hour, which may be far.
            with suppress(TimeoutError):
                wait_for(lambda: has_proved_all(project), PROOF_SECONDS)
        return describe_project(project, time.monotonic() - started)


@contextmanager
def coming_and_going_neighbour(dice: random.Random) -> Iterator[None]:
    over = threading.Event()

    def keep_coming() -> None:
        while not over.wait(dice.expovariate(1 / MEAN_IDLE_SECONDS)):
            process = subprocess.Popen([sys.executable, "-c", NEIGHBOUR])
            over.wait(dice.expovariate(1 / MEAN_BUSY_SECONDS))
            process.kill()
            process.wait()

    thread = threading.Thread(target=keep_coming)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def has_proved_all(project: Project) -> bool:
    """Whether each run is judged, and nothing waits for interleaved runs any more."""
    from dashboard.models import Regression, Run

    runs = Run.objects.filter(commit__project=project).exclude(origin=Run.Origin.SENTINEL)
    open_runs = runs.exclude(state__in=Run.TERMINAL) | runs.filter(state=Run.State.DONE, judged_at=None)
    proving = Regression.objects.filter(project=project, proving=True, withdrawn_at=None)
    return not open_runs.exists() and not proving.exists()


def describe_project(project: Project, took: float) -> str:
    from dashboard.models import Run
    from dashboard.querysets.alarm_record import count_measured_commits, read_suspicions

    done = Run.objects.filter(commit__project=project, state=Run.State.DONE)
    commits = count_measured_commits(project, None)
    tainted = done.filter(tainted=True).count()
    waiting = Run.objects.filter(commit__project=project).exclude(state__in=Run.TERMINAL).count()
    return format_part(
        f"{commits} commits of identical code, {took / 60:.0f} min, {done.count()} runs, {tainted} disturbed"
        f"{f', {waiting} that wait for a calm hour' if waiting else ''}",
        ["alarms", "commits with", "in 100 commits"],
        [*describe_alarms(read_suspicions(project, None), commits)],
    )


def describe_alarms(suspicions: list[Suspicion], commits: int) -> Iterator[Line]:
    """`without proof`: every step that was suspected would have been reported."""
    from dashboard.detection.event_rate import estimate_rate
    from dashboard.models import Regression

    proven = [row for row in suspicions if row.state == Regression.State.CONFIRMED or row.proved_at]
    for what, alarms in (("without proof", suspicions), ("with proof", proven)):
        rate = estimate_rate(len(alarms), commits / 100)
        interval = f"{rate.rate:.1f} [{rate.low:.1f}, {rate.high:.1f}]" if rate else "not known"
        yield Line(what, f"{len(alarms)} of {commits}", interval, "none", not alarms)
    refuted = sum(row.state == Regression.State.REFUTED for row in suspicions)
    withdrawn = sum(row.withdrawn for row in suspicions)
    yield Line("refuted by pairs", str(refuted), f"{withdrawn} withdrawn")
