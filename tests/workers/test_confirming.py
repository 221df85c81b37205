"""One confirmation carried out on real commits, with a real repository, database and harness."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from paceline import metrics

from dashboard import regressions
from dashboard.models import Case, Commit, Confirmation, Machine, Metric, Project, Regression, Run, Series
from dashboard.regressions.confirmations import turns
from tests.workers import repositories
from tests.workers.conftest import MANIFEST, Requested
from workers import confirming, tasks

LOOP = """
import paceline

for _ in paceline.steps(range(10**9)):
    with paceline.phase("learn"):
        sum(range({size}))
"""


@pytest.fixture
def suspected(home: Path, requested: Requested) -> Confirmation:
    """The second commit takes three times as long as the first."""
    run = requested({"train.py": LOOP.format(size=20_000)})
    source = Path(run.commit.project.repository)
    bad = commit(run, repositories.commit(source, {"train.py": LOOP.format(size=60_000)}))
    Run.objects.update(state="done")
    known = metrics.METRICS["step_time"]
    metric = Metric.objects.create(name=known.name, unit=known.unit, better=known.better, kind=known.kind)
    series = Series.objects.create(case=run.case, version=1, pool=run.pool, metric=metric, headline=True)
    sides: dict[str, Any] = {"series": series, "before": 0.0002, "after": 0.0006}
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
    good, bad = suspected.pairs.get(index=0).phases["learn"]
    assert 0 < 1.5 * good < bad < 0.1
    assert suspected.commands[0].startswith(f"git checkout {suspected.good.short} && python -m paceline run")


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
    repositories.git(tmp_path, "clone", "--quiet", suspected.bad.project.repository, str(clone))
    Machine.objects.get_or_create(name="gpu-1", pool=suspected.pool)
    monkeypatch.setattr(turns, "possible", lambda _: in_turns)
    held = regressions.claim_confirmation("default", "gpu-1")
    assert held
    confirmer = confirming.Confirmer(held, lock=-1)
    printed = [
        confirmer.command(name, confirming.Side(SimpleNamespace(commit=commit), Path(sys.executable)))  # type: ignore[arg-type]
        for name, commit in (("good", held.good), ("bad", held.bad))
    ]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    asked: dict[str, Any] = {"cwd": clone, "env": {**os.environ, "PATH": path}}
    done = subprocess.run(
        ["sh", "-c", "\n".join([*printed, "wait"])], capture_output=True, text=True, timeout=100, **asked
    )
    assert done.stdout.count("step_time ") == 2, done.stderr
    assert (done.returncode, repositories.head(tmp_path / "turns" / "bad" if in_turns else clone)) == (
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
    broken = repositories.commit(source, {"train.py": "raise RuntimeError('no such snake')"})
    Commit.objects.filter(pk=suspected.bad_id).update(hash=broken)
    assert confirming.confirm_next("default")
    suspected.refresh_from_db()
    assert (suspected.verdict, suspected.state) == ("untestable", "done")
    assert suspected.reason.startswith(f"{broken[:10]}: train.py crashed with exit status 1")


def test_a_bell_without_a_confirmation_does_nothing(home: Path, transactional_db: None) -> None:
    assert not confirming.confirm_next("default")
