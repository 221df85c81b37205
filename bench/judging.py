"""What it costs to judge one stored run, beside a long history and many open regressions."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from bench.lines import Line, format_part
from bench.scratch_site import scratch_site

POINTS = 2000
FEW, MANY = 5, 500
TARGET_SECONDS = 0.150
STEP = 1.4
# Slow commits that are stored before the one whose judgement opens the regression.
SLOW_BEFORE = 2
NOISE = 0.01

# The series of a training loop of ours by metric; a step moves the times, and what follows from them.
TIMES = {"step_time": 0.010, "throughput": 100.0}
OTHERS = {"peak_memory": 2e9, "function_calls": 600.0, "tensor_operations": 240.0, "synchronisations": 4.0}
PHASES = ("act", "env_step", "push", "sample", "targets", "forward", "backward", "optimizer")
OTHER_CASES = 10


@dataclass(frozen=True)
class JudgingTimes:
    """Seconds of judging a run, and how many queries it makes."""

    seconds: Sequence[float]
    queries: int


def measure_judging(rounds: int) -> str:
    """The table: runs that change nothing, runs that open a regression, beside few and many open ones."""
    lines = []
    with scratch_site():
        site = _Site()
        for count in (FEW, MANY):
            site.open_regressions(count)
            for name, factor in (("changes nothing", 1.0), ("opens a regression", STEP)):
                times = site.time_judging(factor, rounds)
                middle = median(times.seconds)
                lines.append(
                    Line(
                        f"{name}, {count} open",
                        f"{1000 * middle:.0f} ms",
                        f"{times.queries} queries, slowest {1000 * max(times.seconds):.0f} ms",
                        f"median below {1000 * TARGET_SECONDS:.0f} ms",
                        middle < TARGET_SECONDS,
                    )
                )
    title = f"Judging a run, {POINTS:,} points in each series"
    return format_part(title, ["a run that", "median", "beside"], lines)


class _Site:
    """A project with a long history of one case, and commits at which regressions of other cases are open."""

    def __init__(self) -> None:
        from dashboard.models import Point, Run
        from tests.dashboard import factories

        self.factories = factories
        self.random = random.Random(1)
        self.project = factories.create_project(repository="")
        self.line = factories.create_commits(self.project, POINTS)
        self.case = factories.create_case(self.project)
        first = factories.store_measured_run(
            self.line[0], self.case, self._values(1.0), phases=self._phases(1.0)
        )
        pattern = Run.objects.get(pk=first.pk)
        runs = Run.objects.bulk_create(
            Run(
                commit=commit,
                configuration=pattern.configuration,
                machine=pattern.machine,
                environment=pattern.environment,
                state=pattern.state,
                repetitions=pattern.repetitions,
                time_limit=pattern.time_limit,
            )
            for commit in self.line[1:]
        )
        series = {point.series_id: point for point in first.points.select_related("series__metric")}
        Point.objects.bulk_create(
            (
                self._point_like(series[key], run, commit.position)
                for run, commit in zip(runs, self.line[1:], strict=True)
                for key in series
            ),
            batch_size=5000,
        )
        self._finish_history()

    def _finish_history(self) -> None:
        """As after years: everything judged, and the planner knows the tables."""
        from django.db import connection
        from django.utils import timezone

        from dashboard.models import Run

        Run.objects.update(judged_at=timezone.now(), finished_at=timezone.now())
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")

    def _values(self, factor: float) -> dict[str, float]:
        noise = factor * self.random.gauss(1.0, NOISE)
        return {"step_time": TIMES["step_time"] * noise, "throughput": TIMES["throughput"] / noise, **OTHERS}

    def _phases(self, factor: float) -> dict[str, dict[str, float]]:
        share = TIMES["step_time"] / len(PHASES)
        return {
            "phase_self_time": {
                name: share
                * (1 + (factor - 1) * len(PHASES) * (name == "sample"))
                * self.random.gauss(1.0, NOISE)
                for name in PHASES
            }
        }

    def _point_like(self, pattern: Any, run: Any, position: int) -> Any:
        from dashboard.models import Point

        noise = 1.0 if pattern.series.exact else self.random.gauss(1.0, NOISE)
        return Point(
            series_id=pattern.series_id,
            position=position,
            run=run,
            value=pattern.value * noise,
            samples=[sample * noise for sample in pattern.samples],
        )

    def open_regressions(self, count: int) -> None:
        """So many in all, spread over the history, each with its change in a series of another case."""
        from dashboard.models import Change, Regression

        Regression.objects.all().delete()
        Change.objects.all().delete()
        distance = (POINTS - 20) // count
        cases = [
            self.project.cases.get_or_create(benchmark="other", key=f"n={number}")[0]
            for number in range(min(OTHER_CASES, count))
        ]
        runs = [self.factories.create_run(self.line[0], case) for case in cases]
        series = [self.factories.get_series(run, "step_time") for run in runs]
        levels = {"before": 1.0, "after": STEP, "ratio": STEP, "low": STEP - 0.1, "high": STEP + 0.1}
        opened = Regression.objects.bulk_create(
            Regression(
                project=self.project,
                first_bad=self.line[10 + number * distance],
                last_good=self.line[9 + number * distance],
                series=series[number % len(series)],
                state=Regression.State.CONFIRMED,
                **levels,
            )
            for number in range(count)
        )
        Change.objects.bulk_create(
            Change(
                series=regression.series,
                first_bad=regression.first_bad,
                last_good=regression.last_good,
                position=regression.first_bad.position,
                reach_good=regression.last_good.position - 1,
                reach_bad=regression.first_bad.position + 1,
                direction=Change.Direction.REGRESSION,
                confidence=0.99,
                regression=regression,
                **levels,
            )
            for regression in opened
        )
        self._finish_history()

    def time_judging(self, factor: float, rounds: int) -> JudgingTimes:
        seconds = [self._judge_newest(factor, count_queries=False)[0] for _ in range(rounds)]
        return JudgingTimes(seconds, self._judge_newest(factor, count_queries=True)[1])

    def _judge_newest(self, factor: float, *, count_queries: bool) -> tuple[float, int]:
        """(seconds, queries) of judging the run of a new commit; nothing of it stays."""
        from contextlib import nullcontext

        from django.db import connection, transaction
        from django.test.utils import CaptureQueriesContext

        from dashboard.models import Regression
        from dashboard.regressions import judge_run

        slow = 0 if factor == 1.0 else SLOW_BEFORE
        before = Regression.objects.count()
        with transaction.atomic():
            for commit in self.factories.create_commits(self.project, slow + 1, first=POINTS):
                run = self.factories.store_measured_run(
                    commit, self.case, self._values(factor), phases=self._phases(factor)
                )
            with CaptureQueriesContext(connection) if count_queries else nullcontext([]) as queries:
                begun = time.perf_counter()
                judge_run(run.pk)
                seconds = time.perf_counter() - begun
            opened = Regression.objects.count() - before
            if opened != (factor != 1.0):
                raise RuntimeError(f"Judging a run at {factor} times the level opened {opened} regressions.")
            transaction.set_rollback(True)
        return seconds, len(queries)
