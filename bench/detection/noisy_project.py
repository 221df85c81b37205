"""A project in memory with noise: points, the steps that detection sees in them, and pairs with verdicts.

The tests' project without noise carries the decisions out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from bench.detection.planted_causes import QUIET, Causes, Noise
from dashboard import detection
from dashboard.experiments.verdicts import Interval, evaluate_experiment, place_step
from dashboard.models import Experiment, ExperimentPair
from dashboard.models import Metric as MetricRow
from dashboard.regressions.apply import BISECTION_PAIRS_PER_PROOF_PAIR, FEWEST_BISECTION_PAIRS
from dashboard.regressions.changes import STABLE_WITHIN
from dashboard.regressions.decision.facts import Change, Series
from dashboard.regressions.decision.ranges import Range
from dashboard.regressions.decision.requested_facts import (
    PointsAround,
    PointsJudgedSince,
    RefutedForAnother,
    Request,
    ReusedProof,
    StepInPairs,
)
from dashboard.regressions.gathering import MOST_REUSED
from tests.dashboard.regressions.decision.builders import make_commit, make_series
from tests.dashboard.regressions.decision.simulated_project import Planted, SimulatedProject, TrueFacts

SAMPLES = 5
# Of the variance of a run's median, what all its repetitions have in common.
SHARED = 0.8
PAIR_SECONDS, MOST_SECONDS, MOST_PAIRS = 5.0, 1200.0, 400
TIME = make_series("step_time")
METRIC = MetricRow(name=TIME.metric.name, kind=TIME.metric.kind, better=TIME.metric.better)


@dataclass
class NoisyProject(SimulatedProject):
    noise: Noise = field(kw_only=True)
    rng: np.random.Generator = field(default_factory=np.random.default_rng)
    points: list[detection.Point] = field(default_factory=list)
    pairs: dict[int, list[ExperimentPair]] = field(default_factory=dict)
    # How many commits were measured when an experiment was asked for, and had ended.
    asked_at: dict[int, int] = field(default_factory=dict)
    ended_at: dict[int, int] = field(default_factory=dict)

    @classmethod
    def of_history(
        cls, causes: Causes, noise: Noise, seed: int, count: int, first: int = QUIET
    ) -> NoisyProject:
        """`count` commits, none of which is measured yet; the causes begin at commit `first`."""
        rng = np.random.default_rng(seed)
        planted = [
            Planted(TIME, first + index, 1 + step / 100) for index, step in enumerate(causes.steps) if step
        ]
        project = cls(count, planted, noise=noise, rng=rng)
        for position in range(count):
            slower = 1 + causes.machine / 100 * (position >= first + causes.machine_at)
            level = math.log(project.level(TIME, position) * slower)
            level += rng.normal(0, noise.run * math.sqrt(SHARED))
            samples = np.exp(level + rng.normal(0, noise.run, SAMPLES))
            project.points.append(detection.Point(float(np.median(samples)), tuple(samples.tolist())))
        return project

    @property
    def pairs_measured(self) -> int:
        return sum(map(len, self.pairs.values()))

    def confirmed_ranges(self) -> list[tuple[int, int]]:
        return [
            (row.last_good.position, row.first_bad.position)
            for row in self.regressions.values()
            if row.state == "confirmed" and not row.withdrawn
        ]

    def make_facts(self) -> TrueFacts:
        return NoisyFacts(self)

    def ask(self, regression: int, wanted: Any) -> None:
        super().ask(regression, wanted)
        self.asked_at[max(self.asked)] = len(self.measured)

    def answer_due(self) -> None:
        for _ in range(200):
            due = [key for key in self.asked if len(self.measured) - self.asked_at[key] >= self.noise.late]
            if not due:
                return
            self.answer_experiment(min(due))
        raise AssertionError("it asks for ever more experiments")

    def answer_experiment(self, key: int) -> None:
        """Pairs are measured until they tell."""
        asked = self.asked.pop(key)
        wanted = asked.wanted
        test = wanted.purpose == "proof"
        experiment = Experiment(
            question="test" if test else "place",
            metric=METRIC,
            before=wanted.before,
            after=wanted.after,
            error=0.01,
            most_pairs=MOST_PAIRS if test else self.most_bisection_pairs(asked.regression),
            most_seconds=MOST_SECONDS,
            in_turns=False,
        )
        base, head = (self.level(wanted.series, end.position) for end in (wanted.base, wanted.head))
        measured: list[ExperimentPair] = []
        while True:
            ends = np.exp(self.rng.normal(0, self.noise.pair / math.sqrt(2), 2))
            measured.append(
                ExperimentPair(index=len(measured), base=base * ends[0], head=head * ends[1], disturbed=False)
            )
            evaluated = evaluate_experiment(experiment, measured, PAIR_SECONDS * len(measured))
            if evaluated.verdict:
                break
        self.pairs[key] = measured
        self.ended_at[key] = len(self.measured)
        ratio = evaluated.ratio or Interval()
        self.keep_verdict(key, asked.regression, wanted.purpose, wanted, str(evaluated.verdict), ratio.value)
        self.verdicts[-1] = replace(self.verdicts[-1], low=ratio.low, high=ratio.high)
        self.decide(focus=[asked.regression])

    def most_bisection_pairs(self, regression: int) -> int:
        proofs = [
            row.experiment
            for row in self.verdicts
            if row.regression_id == regression and row.purpose == "proof" and row.verdict == "confirmed"
        ]
        proved = len(self.pairs[self.pairs_of.get(proofs[-1], proofs[-1])]) if proofs else 0
        return min(MOST_PAIRS, max(FEWEST_BISECTION_PAIRS, BISECTION_PAIRS_PER_PROOF_PAIR * proved))

    def detect(self) -> set[int]:
        line = sorted(self.measured)
        places = {position: index for index, position in enumerate(line)}
        known = [places[position] for _, position in self.changes if position in places]
        series = detection.Series([self.points[at] for at in line], "lower", "time")
        found = [
            Change(
                pk=None,
                series=TIME,
                last_good=make_commit(line[step.index - 1]),
                first_bad=make_commit(line[step.index]),
                before=step.before,
                after=step.after,
                ratio=step.ratio,
                low=step.low,
                high=step.high,
                direction=step.direction,
                reach=Range(line[max(0, step.index - 2)], line[min(len(line) - 1, step.index + 1)]),
            )
            for step in detection.judge_series(series, known)
        ]
        return self.keep_found(found, places)

    def keep_found(self, found: Sequence[Change], places: dict[int, int]) -> set[int]:
        """As rows are kept: each the nearest one that is the same step, in order."""
        altered: set[int] = set()
        remaining = sorted(self.changes.values(), key=lambda row: row.first_bad.position)
        kept: dict[tuple[int, int], Change] = {}
        unmoved = {row.first_bad.position for row in remaining}
        for index, change in enumerate(found):
            later = {other.first_bad.position for other in found[index + 1 :]} & unmoved
            near = [
                row
                for row in remaining
                if row.direction == change.direction
                and abs(places[row.first_bad.position] - places[change.first_bad.position]) <= STABLE_WITHIN
                and row.first_bad.position not in later
            ]
            row = min(
                near, key=lambda row: abs(row.first_bad.position - change.first_bad.position), default=None
            )
            if row is None:
                change = replace(change, pk=self.new_key())
            else:
                remaining = remaining[remaining.index(row) + 1 :]
                change = replace(change, pk=row.pk, regression_id=row.regression_id)
            if row is None or change != row:
                altered.add(change.pk or 0)
            kept[(change.series.pk, change.first_bad.position)] = change
        self.changes = kept
        return altered


class NoisyFacts(TrueFacts):
    project: NoisyProject

    def answer_to(self, request: Request[Any]) -> Any:
        project = self.project
        match request:
            case StepInPairs(key, before, after):
                measured = project.pairs[project.pairs_of.get(key, key)]
                return place_step(
                    Experiment(metric=METRIC, error=0.01, in_turns=False), measured, before, after
                )
            case PointsJudgedSince(_, bad, key, most):
                since = project.ended_at[project.pairs_of.get(key, key)]
                line = sorted(project.measured)[since:]
                return min(most, sum(position > bad.position for position in line))
        return super().answer_to(request)

    def points_around(self, series: Series, good: int, bad: int, reach: int) -> PointsAround:
        true = super().points_around(series, good, bad, reach)
        points, measured = self.project.points, self.project.measured
        return replace(
            true,
            good_value=points[good].value if good in measured else None,
            bad_value=points[bad].value if bad in measured else None,
        )

    def refuted_for_another(self, request: RefutedForAnother) -> ReusedProof | None:
        project, asked = self.project, ("proof", request.series.pk, request.base.pk, request.head.pk)
        rows = [
            row
            for row in project.verdicts
            if (row.purpose, row.series.pk, row.base.pk, row.head.pk) == asked
            and row.regression_id != request.regression
        ]
        if not rows or rows[-1].verdict != "refuted":
            return None
        measured = project.pairs_of.get(rows[-1].experiment, rows[-1].experiment)
        if list(project.pairs_of.values()).count(measured) >= MOST_REUSED:
            return None
        levels = (request.before, request.after)
        test = Experiment(
            question="test",
            metric=METRIC,
            before=levels[0],
            after=levels[1],
            error=0.01,
            most_pairs=10_000,
            most_seconds=1e9,
            in_turns=False,
        )
        if evaluate_experiment(test, project.pairs[measured], 0.0).verdict != "refuted":
            return None
        return ReusedProof(measured, request.series, request.base, request.head, "refuted", *levels, 0.01)
