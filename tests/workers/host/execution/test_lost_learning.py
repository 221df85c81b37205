"""A commit that breaks learning, measured for real: by runs, by pairs over seeds, to what is told."""

from __future__ import annotations

from pathlib import Path

from dashboard import runs
from dashboard.models import Channel, Experiment, Regression, Run
from dashboard.regressions import advance_proof, judge_run
from dashboard.sentences.regressions.regressions import regression_title
from tests.workers import repositories
from tests.workers.conftest import Host, Requested
from tests.workers.scripts import UNDISTURBED

MANIFEST = """
[benchmarks.tiny]
version = 1
script = "train.py"
params = { size = 10 }
warmup_steps = 2
steps = 38
counting_steps = 2
countings = 1
repetitions = 1
learning_seeds = [1, 2]
guard = { score = { minimum = 3.0 } }
time_limit = 60
"""
# Learns a slope by gradient steps from noisy samples: the score is how near it came, 10 at best. It never
# begins near it, whatever the seed.
TRAIN = (
    UNDISTURBED
    + """
import os
import random
import paceline

random.seed(int(os.environ["PACELINE_SEED"]))
learning_rate, weight = {rate}, random.uniform(-1, 0)
for _ in paceline.steps(range(10**9)):
    with paceline.phase("learn"):
        x = random.uniform(-1, 1)
        error = weight * x - (2 * x + random.gauss(0, 0.1))
        weight -= learning_rate * error * x
paceline.quality("score", 10 - 5 * abs(weight - 2))
"""
)


def test_a_commit_without_learning_is_proved_and_told(host: Host, requested: Requested) -> None:
    run = requested({"train.py": TRAIN.format(rate=0.5), "paceline.toml": MANIFEST})
    project = run.commit.project
    Channel.objects.create(project=project, kind="email", address="a@example.org")
    broken = repositories.commit_files(Path(project.repository), {"train.py": TRAIN.format(rate=0.0)})
    head = project.commits.create(
        hash=broken, branch="main", position=2, committed_at=run.commit.committed_at, subject="Tune it"
    )
    second = runs.repeat_run(run, head)
    # What other work disturbs is measured again.
    while host.execute_next():
        for measured in Run.objects.filter(state="done", judged_at=None):
            judge_run(measured.pk)
    run.refresh_from_db()
    second.refresh_from_db()
    assert "quality_below_guard" in set(second.warning_codes) - set(run.warning_codes)
    experiment = Experiment.objects.get()
    assert (experiment.verdict, experiment.metric.name) == ("confirmed", "quality.score")
    seeds = set(experiment.pairs.values_list("seed", flat=True))
    assert len(seeds) == experiment.pairs.count() == experiment.learning["seeds"]
    assert not seeds & {0, 1, 2}
    assert all("--seed=" in command for command in experiment.commands)
    regression = Regression.objects.get()
    advance_proof(regression.pk)
    regression.refresh_from_db()
    assert (regression.state, regression.kind, regression.first_bad) == ("confirmed", "quality", head)
    assert regression.before > 9 > 3 > regression.after
    assert regression_title(regression).startswith(f"training no longer learns since {head.short}")
