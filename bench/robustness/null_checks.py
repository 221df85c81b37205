"""Checks of identical code: how often one is refused, which none may be, and what the others answer."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from bench.lines import Line, format_part
from bench.robustness.running_site import running_site, wait_for
from tests.workers.repositories import commit_files, create_repository, run_git

if TYPE_CHECKING:
    from dashboard.models import Check

# The return varies with the repetition, as that of a real training run does.
SCRIPT = """
import os
import random
import paceline

draw = random.Random(os.urandom(8))
for _ in paceline.steps(range(10**9)):
    with paceline.phase("act"):
        sum(range(20_000))
    with paceline.phase("learn"):
        sum(range(160_000))
paceline.quality("return", draw.gauss(10.0, 0.3))
"""
MANIFEST = """
[benchmarks.loop]
version = 1
script = "train.py"
warmup_steps = 2
steps = 30
counting_steps = 4
repetitions = 1
time_limit = 60
"""
# A whole core, in the middle of whatever is measured.
NEIGHBOUR = "while True: sum(range(1_000_000))"
NEIGHBOUR_SHARE = 0.5


def measure_null_checks(checks: int, minutes: float, seed: int) -> str:
    """So many, one after the other, of `minutes` each at most; beside half of them another process works."""
    dice = random.Random(seed)
    with running_site() as site:
        from dashboard.projects.registration import NewProject, add_project

        repository = create_repository(
            site.home / "repository", {"train.py": SCRIPT, "paceline.toml": MANIFEST}
        )
        add_project(NewProject("same", str(repository)))
        quiet, beside = [], []
        started = time.monotonic()
        for number in range(checks):
            branch = commit_comment(repository, number)
            if dice.random() < NEIGHBOUR_SHARE:
                with busy_neighbour():
                    beside.append(answer_check(branch, minutes))
            else:
                quiet.append(answer_check(branch, minutes))
        return describe_checks(quiet, beside, time.monotonic() - started)


def commit_comment(repository: Path, number: int) -> str:
    """A branch whose only commit changes a comment."""
    branch = f"same-{number}"
    run_git(repository, "checkout", "--quiet", "-b", branch, "main")
    commit_files(repository, {"train.py": f"# {number}\n{SCRIPT}"})
    return branch


def answer_check(branch: str, minutes: float) -> Check:
    from dashboard import pull_requests
    from dashboard.models import Check, Project

    asked = pull_requests.request_check(
        Project.objects.get(), pull_requests.CheckRequest(branch, minutes=minutes)
    )
    pull_requests.prepare_check(asked.pk)
    wait_for(lambda: has_ended(asked), 600 + 120 * minutes)
    return Check.objects.get(pk=asked.pk)


def has_ended(check: Check) -> bool:
    check.refresh_from_db(fields=["state"])
    return check.state not in check.ACTIVE


@contextmanager
def busy_neighbour() -> Iterator[None]:
    process = subprocess.Popen([sys.executable, "-c", NEIGHBOUR])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def describe_checks(quiet: list[Check], beside: list[Check], took: float) -> str:
    lines = [
        line
        for what, checks in (("alone", quiet), ("beside another process", beside))
        for line in describe_answers(what, checks)
    ]
    return format_part(
        f"{len(quiet) + len(beside)} checks of identical code, {took / 60:.0f} min",
        ["answer", "checks", "beside"],
        lines,
    )


def describe_answers(what: str, checks: list[Check]) -> Iterator[Line]:
    from dashboard.models import Check

    counts = Counter(check.answer if check.state == Check.State.DONE else check.state for check in checks)
    refused = counts.pop(Check.Answer.WORSE, 0)
    yield Line(f"{what}: worse", str(refused), f"of {len(checks)}", "none", refused == 0)
    visible = [
        effect
        for check in checks
        if check.answer == Check.Answer.NOT_KNOWN and (effect := check.reason.get("visible"))
    ]
    for answer, count in counts.most_common():
        seen = f"{median(visible):.1%} would have been seen" if answer == "not known" and visible else ""
        yield Line(f"{what}: {answer}", str(count), seen)
