"""One confirmation carried out on real commits, with a real repository, database and harness."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from dashboard.regressions.confirmations import turns
from paceline import manifest, metrics

from dashboard import regressions
from dashboard.models import Case, Commit, Confirmation, Machine, Metric, Project, Regression, Run, Series
from dashboard.regressions import paired
from tests.workers import repositories
from tests.workers.conftest import MANIFEST, Requested
from workers import confirming, tasks

LOOP = """
import paceline

for _ in paceline.steps(range(10**9)):
    with paceline.phase("learn"):
        sum(range({size}))
"""


# What the phase `learn` does in a step grows with the steps before it.
GROWING = """
import sys
import paceline

n = int(sys.argv[sys.argv.index("--n") + 1])
for at in paceline.steps(range(n)):
    with paceline.phase("act"):
        sum(range(3_000))
    with paceline.phase("learn"):
        sum(range({each} * at))
"""
SWEPT = (
    MANIFEST.replace("size = 10", "n = 1000000")
    + """
[benchmarks.tiny.scaling]
parameter = "n"
values = [200, 400, 800]
repetitions = 1
"""
)


@pytest.fixture
def suspected(home: Path, requested: Requested) -> Confirmation:
    """The second commit takes three times as long as the first."""
    run = requested({"train.py": LOOP.format(size=20_000)})
    return suspicion(run, {"train.py": LOOP.format(size=60_000)}, "step_time", (0.0002, 0.0006))


def suspicion(run: Run, files: dict[str, str], name: str, levels: tuple[float, float]) -> Confirmation:
    """That the commit with these files is worse than the run's."""
    source = Path(run.commit.project.repository)
    bad = commit(run, repositories.commit_files(source, files))
    Run.objects.update(state="done")
    known = metrics.METRICS[name]
    metric = Metric.objects.create(name=known.name, unit=known.unit, better=known.better, kind=known.kind)
    series = Series.objects.create(case=run.case, version=1, pool=run.pool, metric=metric, headline=True)
    sides: dict[str, Any] = {"series": series, "before": levels[0], "after": levels[1]}
    found = Regression.objects.create(
        project=run.commit.project, first_bad=bad, last_good=run.commit, proving=True, **sides
    )
    return Confirmation.objects.create(
        regression=found, purpose="confirm", good=run.commit, bad=bad, pool=run.pool, **sides
    )


def commit(run: Run, sha: str) -> Commit:
    row = run.commit
    return row.project.commits.create(
        hash=sha, branch="main", position=row.position + 1, committed_at=row.committed_at
    )


def test_interleaved_repetitions_decide(suspected: Confirmation, monkeypatch: pytest.MonkeyPatch) -> None:
    # Other tests may run beside this one: three times the work shows through any of that.
    monkeypatch.setattr(confirming, "is_disturbed", lambda *_: False)
    assert confirming.confirm_next("default")
    suspected.refresh_from_db()
    assert (suspected.state, suspected.verdict) == ("done", "confirmed")
    assert (suspected.ratio or 0) > 1.5
    assert list(suspected.pairs.values_list("good_first", flat=True)[:4]) == [True, False, True, False]
    phases = paired.phases_of(suspected.regression)
    assert phases
    assert 0 < 1.5 * phases.before["learn"] < phases.after["learn"] < 0.1
    assert suspected.commands[0].startswith(f"git checkout {suspected.good.short} && python -m paceline run")


def test_interleaved_sweeps_decide_on_an_exponent(
    home: Path, requested: Requested, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both are the same while a window of 20 steps is measured: only whole loops of many steps tell."""
    run = requested({"train.py": GROWING.format(each=0), "paceline.toml": SWEPT})
    row = suspicion(run, {"train.py": GROWING.format(each=40)}, "scaling_exponent", (1.0, 1.6))
    monkeypatch.setattr(confirming, "is_disturbed", lambda *_: False)
    assert confirming.confirm_next("default")
    row.refresh_from_db()
    assert (row.state, row.verdict, row.in_turns) == ("done", "confirmed", False)
    # A part of the loop became quadratic: its exponent grows by less than 1, and the ratio is e ** that.
    assert 0.4 < math.log(row.ratio or 1) < 1.1
    assert row.commands[1].endswith("--repetitions=1 --no-counting")
    phases = paired.phases_of(row.regression)
    assert phases
    assert (phases.at, max(phases.deltas, key=lambda path: phases.deltas[path])) == (
        "the whole loop with n 800",
        "learn",
    )
    assert phases.after["learn"] > 10 * phases.before["learn"]


@pytest.mark.parametrize(("swept", "disturbed"), [(True, True), (False, False)])
def test_a_sweep_beside_other_work_disturbs_what_is_read_off_it(swept: bool, disturbed: bool) -> None:
    doubt = SimpleNamespace(code="scaling_contention", taints=False)
    found: Any = SimpleNamespace(warnings=(doubt,), scaling=swept or None)
    assert confirming.is_disturbed(found, in_turns=False) is disturbed


def test_steps_in_turn_decide(suspected: Confirmation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confirming, "is_disturbed", lambda *_: False)
    monkeypatch.setattr(turns, "possible", lambda _: True)
    assert confirming.confirm_next("default")
    suspected.refresh_from_db()
    assert (suspected.state, suspected.verdict, suspected.in_turns) == ("done", "confirmed", True)
    assert 1.5 < (suspected.ratio or 0) < 4
    first, second = suspected.commands
    assert first.startswith(
        f"git worktree add --detach ../turns/good {suspected.good.short} && (cd ../turns/good"
    )
    assert first.endswith("--turns=../first) &")
    assert second.endswith("--turns=../second)")


@pytest.mark.parametrize("in_turns", [False, True])
@pytest.mark.parametrize("kept", [False, True])
def test_a_printed_command_measures_the_commit(
    suspected: Confirmation,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kept: bool,
    in_turns: bool,
) -> None:
    """By hand, in a clone: the words of a parameter that a shell would part reach the script as they are."""
    Project.objects.update(manifest=MANIFEST if kept else "")
    Case.objects.update(params={"size": 10, "who": "two words", "fast": True, "digits": "7"})
    (tmp_path / "paceline.toml").write_text(MANIFEST)
    clone = tmp_path / "clone"
    repositories.run_git(tmp_path, "clone", "--quiet", suspected.bad.project.repository, str(clone))
    Machine.objects.get_or_create(name="gpu-1", pool=suspected.pool)
    monkeypatch.setattr(turns, "possible", lambda _: in_turns)
    held = regressions.claim_confirmation("default", "gpu-1")
    assert held
    confirmer = confirming.Confirmer(held, lock=-1)
    benchmark = manifest.parse_manifest(MANIFEST, "test").benchmarks["tiny"]
    codes: Any = [SimpleNamespace(commit=one, benchmark=benchmark) for one in (held.good, held.bad)]
    printed = [
        confirmer.command(name, confirming.Side(code, Path(sys.executable)))
        for name, code in zip(confirming.SIDES, codes, strict=True)
    ]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    asked: dict[str, Any] = {"cwd": clone, "env": {**os.environ, "PATH": path}}
    done = subprocess.run(
        ["sh", "-c", "\n".join([*printed, "wait"])], capture_output=True, text=True, timeout=100, **asked
    )
    assert done.stdout.count("step_time ") == 2, done.stderr
    assert (done.returncode, repositories.head_commit(tmp_path / "turns" / "bad" if in_turns else clone)) == (
        0,
        held.bad,
    )
    assert all("--set=fast=true" in line for line in printed)


def test_a_bell_carries_a_confirmation_before_history(
    suspected: Confirmation, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[str] = []

    def confirm_next(pool: str) -> bool:
        called.append(pool)
        return True

    monkeypatch.setattr(confirming, "confirm_next", confirm_next)
    tasks.measure("default")
    assert called == ["default"]


@pytest.mark.parametrize("in_turns", [False, True])
def test_a_commit_that_does_not_run_is_named(
    suspected: Confirmation, monkeypatch: pytest.MonkeyPatch, in_turns: bool
) -> None:
    monkeypatch.setattr(turns, "possible", lambda _: in_turns)
    source = Path(suspected.bad.project.repository)
    broken = repositories.commit_files(source, {"train.py": "raise RuntimeError('no such snake')"})
    Commit.objects.filter(pk=suspected.bad_id).update(hash=broken)
    assert confirming.confirm_next("default")
    suspected.refresh_from_db()
    assert (suspected.verdict, suspected.state) == ("untestable", "done")
    assert suspected.reason.startswith(f"{broken[:10]}: train.py crashed with exit status 1")


def test_a_bell_without_a_confirmation_does_nothing(home: Path, transactional_db: None) -> None:
    assert not confirming.confirm_next("default")
