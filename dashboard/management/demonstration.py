"""What `manage.py demo` builds and reports: a repository with planted changes, and what was found in it."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.conf import settings

from dashboard.measured_kinds import is_time
from dashboard.models import Change, Document, Point, Project, Regression, Run
from dashboard.querysets.regressions import learning_lost_at
from dashboard.regressions.decision.series_kinds import log_size
from dashboard.sentences.formatting.change_sizes import format_levels
from dashboard.sentences.regressions.regressions import regression_title

# Sentences that the builder says on its way, for the progress bar: a few more or fewer do no harm.
SENTENCES = 12


class DemonstrationError(Exception):
    """The repository can't be built; the message is one sentence for people."""


@dataclass(frozen=True)
class BuiltHistory:
    """A repository of real training code, and what was planted in it: printed, and read by nothing else."""

    seed: int
    repository: Path
    commits: Sequence[str]
    measured: Sequence[str]
    planted: Sequence[dict[str, Any]]
    # Which benchmarks measure a commit; all of its manifest where it isn't there.
    benchmarks: Mapping[str, Sequence[str]] = field(default_factory=dict)


def free_slug(seed: int) -> str:
    """A name for a project that no other has."""
    slug = wanted = f"demo-{seed}"
    number = 1
    while Project.objects.filter(slug=slug).exists() or repository_folder(slug).exists():
        number += 1
        slug = f"{wanted}-{number}"
    return slug


def repository_folder(slug: str) -> Path:
    """Where a demonstration's repository lies."""
    home: Path = settings.PACELINE_HOME
    return home / "demonstrations" / slug


def build_history(
    repository: Path, seed: int, show: Callable[[float, str], None], options: Sequence[str] = ()
) -> BuiltHistory:
    """Have the repository built, which measures for a minute; `show` gets fraction and sentence."""
    command = [sys.executable, "-m", "trainers.planted", "--json", f"--seed={seed}", *options]
    # Its answer goes into a file: two pipes that are read one after the other can block each other.
    with (
        tempfile.TemporaryFile() as answer,
        subprocess.Popen(
            [*command, f"--repository={repository}"],
            cwd=settings.CHECKOUT,
            stdout=answer,
            stderr=subprocess.PIPE,
            text=True,
        ) as builder,
    ):
        last_line = ""
        for number, line in enumerate(builder.stderr or ()):
            last_line = line.strip() or last_line
            show(min(number / SENTENCES, 0.95), last_line)
        if builder.wait():
            raise DemonstrationError(
                f"The repository can't be built: {last_line.removeprefix('planted: ') or builder.returncode}"
            )
        answer.seek(0)
        result = json.load(answer)
    return BuiltHistory(
        seed,
        Path(result["repository"]),
        result["commits"],
        result["measured"],
        result["planted"],
        result.get("benchmarks", {}),
    )


def report_findings(project: Project, built: BuiltHistory) -> dict[str, Any]:
    """All that the site found, beside what was planted, as plain data."""
    regressions = list(
        Regression.objects.filter(project=project)
        .select_related(
            *("first_bad", "last_good", "culprit", "recovered_by"),
            *("series__metric", "series__configuration__case"),
        )
        .order_by("first_bad__position")
    )
    live = [regression for regression in regressions if regression.withdrawn_at is None]
    refuted = [regression for regression in live if regression.state == Regression.State.REFUTED]
    withdrawn = [regression for regression in regressions if regression.withdrawn_at is not None]
    return {
        "seed": built.seed,
        "project": project.slug,
        "address": f"{settings.PACELINE_URL}{project.get_absolute_url()}",
        "repository": str(built.repository),
        "commits": list(built.commits),
        "runs": describe_runs(project),
        "planted": list(built.planted),
        "regressions": [describe_regression(regression) for regression in live if regression not in refuted],
        "refuted": [describe_regression(regression) for regression in refuted],
        "withdrawn": [describe_regression(regression) for regression in withdrawn],
        "improvements": describe_improvements(project),
    }


def describe_runs(project: Project) -> list[dict[str, Any]]:
    runs = (
        Run.objects.filter(commit__project=project)
        .select_related("commit", "configuration__case")
        .order_by("commit__position", "pk")
    )
    tainted = Document.objects.filter(run__commit__project=project, run__tainted=True)
    warnings = dict(tainted.values_list("run_id", "body__warnings"))
    return [describe_run(run, warnings.get(run.pk) or []) for run in runs]


def describe_run(run: Run, warnings: Iterable[dict[str, Any]]) -> dict[str, Any]:
    return {
        "id": run.pk,
        "commit": run.commit.hash,
        "case": str(run.case),
        "state": run.state,
        "reason": run.reason,
        "tainted": run.tainted,
        "doubts": [warning["message"] for warning in warnings if warning.get("taints")],
        "seconds": seconds_taken(run),
    }


def seconds_taken(run: Run) -> float | None:
    """Seconds from the claim to the end; None where one is missing."""
    if run.finished_at is None or run.claimed_at is None:
        return None
    return (run.finished_at - run.claimed_at).total_seconds()


def describe_regression(regression: Regression) -> dict[str, Any]:
    return {
        "first_bad": regression.first_bad.hash,
        "last_good": regression.last_good.hash,
        "case": str(regression.series.case),
        "metric": regression.series.metric.name,
        "phase": regression.phase,
        "change_percent": round_percent(regression.change_percent),
        "levels": format_levels(regression),
        "state": regression.state,
        "suspects": regression.suspects,
        "slow_processes": regression.slow_processes,
        "title": regression_title(regression),
        "culprit": regression.culprit and regression.culprit.hash,
        "recovered_by": regression.recovered_by and regression.recovered_by.hash,
        "cause": regression.cause,
        "address": f"{settings.PACELINE_URL}{regression.get_absolute_url()}",
    }


def describe_improvements(project: Project) -> list[dict[str, Any]]:
    """One for each commit that made headline series better: that of the step's time, or the largest.

    None for a commit since which training learns less.
    """
    changes = (
        Change.objects.filter(
            series__configuration__case__project=project,
            series__headline=True,
            direction=Change.Direction.IMPROVEMENT,
        )
        .select_related("first_bad", "last_good", "series__metric", "series__configuration__case")
        .order_by("position", "pk")
    )
    best: dict[int, Change] = {}
    lost = learning_lost_at(changes)
    for change in changes:
        if change.first_bad_id in lost:
            continue
        known = best.get(change.first_bad_id)
        if known is None or preference_key(change) > preference_key(known):
            best[change.first_bad_id] = change
    return [
        {
            "commit": change.first_bad.hash,
            "before": change.last_good.hash,
            "case": str(change.series.case),
            "metric": change.series.metric.name,
            "phase": lightened_phase(change),
            "change_percent": round_percent(None if change.ratio is None else 100 * (change.ratio - 1)),
            "levels": format_levels(change),
        }
        for change in best.values()
    ]


def lightened_phase(change: Change) -> str:
    """The phase whose own time fell most between the two commits; empty where no phase's did."""
    series = change.series
    points = Point.objects.filter(
        series__configuration=series.configuration_id,
        series__metric__name="phase_self_time",
        run__commit__in=[change.last_good_id, change.first_bad_id],
    ).order_by("run_id")
    saved: dict[str, dict[int, float]] = {}
    for phase, commit, value in points.values_list("series__phase", "run__commit_id", "value"):
        saved.setdefault(phase, {})[commit] = value
    drops = {
        phase: values[change.last_good_id] - values[change.first_bad_id]
        for phase, values in saved.items()
        if len(values) == 2
    }
    phase = max(drops, key=lambda phase: drops[phase], default="")
    return phase if drops.get(phase, 0) > 0 else ""


def preference_key(change: Change) -> tuple[bool, bool, float]:
    return change.series.metric.name == "step_time", is_time(change.series), log_size(change)


def round_percent(percent: float | None) -> float | None:
    return None if percent is None else round(percent, 1)
