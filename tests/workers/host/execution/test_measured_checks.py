"""The check of a real pull request that isn't slower, measured for real.

One that is slower is measured in tests/workers/test_site_commands.py.
Other tests run beside these. What a step does is wait: that takes as long on a busy machine, and leaves the
processor to them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from dashboard import pull_requests
from dashboard.models import Check, Project
from dashboard.pull_requests import preparing, sentences
from dashboard.pull_requests.report import read_report
from tests.workers import repositories
from tests.workers.conftest import Host
from tests.workers.scripts import UNDISTURBED

MANIFEST = """
[benchmarks.loop]
version = 1
script = "train.py"
warmup_steps = 2
steps = 10
counting_steps = 4
repetitions = 1
time_limit = 60
"""
# The return varies with the repetition, as that of a real training run does.
TRAIN = (
    UNDISTURBED
    + """
import os
import random
import time
import paceline

draw = random.Random(os.urandom(8))
for _ in paceline.steps(range(10**9)):
    with paceline.phase("act"):
        time.sleep(0.002)
    with paceline.phase("learn"):
        learn_batch = time.sleep(0.008)
paceline.quality("return", draw.gauss(10.0, 0.1))
"""
)
SLOWER = TRAIN.replace("time.sleep(0.008)", "[abs(n) for n in range(40)] and time.sleep(0.040)")
SAME = TRAIN.replace("learn_batch", "batch")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return repositories.create_repository(tmp_path / "source", {"paceline.toml": MANIFEST, "train.py": TRAIN})


@pytest.fixture
def short_control(monkeypatch: pytest.MonkeyPatch) -> None:
    """One pair of the merge base against itself, which tells nothing, where only the head's pairs matter."""
    monkeypatch.setattr(preparing, "CONTROL_PAIRS", 1)


def measure_check(host: Host, source: Path, train: str) -> Check:
    """The check of a branch with this script, to its end."""
    # What is told is 50 %, which few pairs tell.
    project = Project.objects.create(slug="demo", repository=str(source), check_floor=0.5)
    repositories.run_git(source, "checkout", "--quiet", "-b", "feature")
    repositories.commit_files(source, {"train.py": train})
    check = pull_requests.request_check(project, pull_requests.CheckRequest("feature", minutes=2))
    pull_requests.prepare_check(check.pk)
    while host.execute_next():
        pass
    pull_requests.sweep_checks()
    check.refresh_from_db()
    return check


@pytest.mark.usefixtures("short_control")
def test_what_costs_nothing_passes(host: Host, source: Path) -> None:
    check = measure_check(host, source, SAME)
    report = read_report(check)
    assert (check.answer, sentences.status_state(check)) == ("not worse", "success")
    assert sentences.answer_headline(report).startswith("Not slower")
    assert not report.differing
    # What is learned is weighed beside it, and what is counted.
    names = {row.bounded.metric.name for row in report.rows}
    assert names >= {"step_time", "quality.return", "function_calls"}
