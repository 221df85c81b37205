"""A project in memory: detection without noise, pairs that know the truth, and the decisions on both.

Only `decide` is the product's. Around it stands as little as it takes to carry decisions out: rows are facts
in dictionaries, facts are answered from the planted truth.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from dashboard.experiments.verdicts import place_step
from dashboard.measured_kinds import is_exact_counter
from dashboard.models import Experiment, ExperimentPair
from dashboard.models import Metric as MetricRow
from dashboard.regressions.decision.cause_class import Confounders, TouchedFiles
from dashboard.regressions.decision.decide import decide
from dashboard.regressions.decision.facts import Change, ExperimentVerdict, Regression, Series, Snapshot
from dashboard.regressions.decision.gradual_changes import Step, is_gradual_counter, steps_weighed_together
from dashboard.regressions.decision.outcomes import Decision, Outcome
from dashboard.regressions.decision.ranges import Range
from dashboard.regressions.decision.requested_facts import (
    AskedProof,
    CauseOnOtherBranch,
    CommitRow,
    CommitRuns,
    CommitsBetween,
    DifferencesAtStep,
    Explanation,
    GatheredFacts,
    PhaseLeftOver,
    PointsAround,
    PointsAroundRequest,
    PointsJudgedSince,
    ProofsOfSeries,
    RefutedForAnother,
    RegressionsBetween,
    Request,
    ReusedProof,
    RunsAtCommits,
    StepExplanation,
    StepInPairs,
    TimesAnswered,
)
from dashboard.regressions.decision.series_kinds import BETTER, WORSE
from dashboard.regressions.decision.wanted_measurements import ResidualCause, WantedExperiment
from dashboard.regressions.gathering import MOST_REUSED
from tests.dashboard.regressions.decision.builders import make_commit

MOST_EXPERIMENTS = 200
# Of the step that is suspected.
LEAST_CONFIRMED = 0.1


def place_in_pairs(verdict: ExperimentVerdict, before: float, after: float) -> str:
    """How much of a step five pairs show that all say the same."""
    measured = verdict.series.metric
    metric = MetricRow(name=measured.name, kind=measured.kind, better=measured.better)
    pairs = [ExperimentPair(index=index, base=1.0, head=verdict.ratio) for index in range(5)]
    return place_step(Experiment(metric=metric, error=verdict.error), pairs, before, after)


@dataclass(frozen=True)
class Planted:
    """By which factor a commit multiplies the level of a series."""

    series: Series
    position: int
    factor: float


@dataclass(frozen=True)
class Asked:
    """An experiment that a regression waits for."""

    key: int
    regression: int
    wanted: WantedExperiment


@dataclass
class SimulatedProject:
    """Commits 0 to `count` - 1 of one branch, of which more and more are measured."""

    count: int
    planted: Sequence[Planted]
    measured: set[int] = field(default_factory=set)
    changes: dict[tuple[int, int], Change] = field(default_factory=dict)
    regressions: dict[int, Regression] = field(default_factory=dict)
    verdicts: list[ExperimentVerdict] = field(default_factory=list)
    asked: dict[int, Asked] = field(default_factory=dict)
    proofs: list[tuple[int, WantedExperiment]] = field(default_factory=list)
    reused: list[tuple[int, ReusedProof]] = field(default_factory=list)
    # Of verdicts by reused pairs, the experiments that measured them.
    pairs_of: dict[int, int] = field(default_factory=dict)
    keys: int = 0

    @property
    def series(self) -> list[Series]:
        return list(dict.fromkeys(planted.series for planted in self.planted))

    def new_key(self) -> int:
        self.keys += 1
        return self.keys

    def level(self, series: Series, position: int) -> float:
        factors = (
            planted.factor
            for planted in self.planted
            if planted.series == series and planted.position <= position
        )
        return math.prod(factors)

    # What happens

    def measure(self, position: int) -> None:
        """A run of a commit is stored and judged."""
        self.measured.add(position)
        altered = self.detect()
        self.decide(altered=altered)

    def answer_experiment(self, key: int) -> None:
        """An experiment ends, and says what is true."""
        asked = self.asked.pop(key)
        wanted = asked.wanted
        base, head = (self.level(wanted.series, end.position) for end in (wanted.base, wanted.head))
        share = math.log(head / base) / math.log(wanted.after / wanted.before)
        if wanted.purpose == "proof":
            verdict = "confirmed" if share > LEAST_CONFIRMED else "refuted"
        else:
            verdict = "whole" if share >= 0.75 else "part" if share > 0.25 else "none"
        self.keep_verdict(key, asked.regression, wanted.purpose, wanted, verdict, head / base)
        self.decide(focus=[asked.regression])

    def keep_verdict(
        self,
        key: int,
        regression: int,
        purpose: str,
        step: WantedExperiment | ReusedProof,
        verdict: str,
        ratio: float | None,
    ) -> None:
        self.verdicts.append(
            ExperimentVerdict(
                experiment=key,
                regression_id=regression,
                purpose=purpose,
                series=step.series,
                base=step.base,
                head=step.head,
                verdict=verdict,
                before=step.before,
                after=step.after,
                ratio=ratio,
                order=len(self.verdicts),
            )
        )

    def answer_all(self) -> None:
        for _ in range(MOST_EXPERIMENTS):
            if not self.asked:
                return
            self.answer_experiment(min(self.asked))
        raise AssertionError("it asks for ever more experiments")

    def ratio_of(self, proof: ReusedProof) -> float | None:
        return next(row.ratio for row in self.verdicts if row.experiment == proof.experiment)

    # Detection, without noise

    def detect(self) -> set[int]:
        """The steps between neighbors that were measured; the keys of those that are new or moved."""
        found = {
            (series.pk, change.first_bad.position): change
            for series in self.series
            for change in self.steps_of_series(series)
        }
        gone = {place: change for place, change in self.changes.items() if place not in found}
        altered: set[int] = set()
        for place, change in found.items():
            known = self.changes.get(place) or self.moved_change(change, gone)
            if known is None:
                found[place] = replace(change, pk=self.new_key())
            else:
                found[place] = replace(change, pk=known.pk, regression_id=known.regression_id)
            if found[place] != known:
                altered.add(found[place].pk or 0)
        self.changes = found
        return altered | self.weighed_together(altered)

    def weighed_together(self, altered: set[int]) -> set[int]:
        """The keys of small steps that a judgement knows beside those that are altered."""
        keys: set[int] = set()
        for series in filter(is_exact_counter, self.series):
            steps = [
                Step(change.pk or 0, change.first_bad.position, change.before, change.after)
                for change in self.changes.values()
                if change.series == series and change.direction == WORSE
            ]
            keys |= steps_weighed_together(series, sorted(steps, key=lambda step: step.bad), altered)
        return keys

    def steps_of_series(self, series: Series) -> Iterator[Change]:
        line = sorted(self.measured)
        for index, (good, bad) in enumerate(pairwise(line)):
            before, after = self.level(series, good), self.level(series, bad)
            if math.isclose(before, after):
                continue
            yield Change(
                pk=None,
                series=series,
                last_good=make_commit(good),
                first_bad=make_commit(bad),
                before=before,
                after=after,
                ratio=after / before,
                direction=WORSE if after > before else BETTER,
                reach=Range(line[max(0, index - 1)], line[min(len(line) - 1, index + 2)]),
            )

    def moved_change(self, change: Change, gone: dict[tuple[int, int], Change]) -> Change | None:
        """The row of a step whose range a new commit has cut: it stays the change that it was."""
        for place, row in gone.items():
            if row.series == change.series and row.range.overlap(change.range):
                return gone.pop(place)
        return None

    # Decisions

    def decide(self, altered: Iterable[int] = (), focus: Iterable[int] = ()) -> None:
        snapshot = Snapshot(
            branch="main",
            changes=tuple(sorted(self.changes.values(), key=lambda change: change.pk or 0)),
            regressions=tuple(self.with_active(self.regressions[key]) for key in sorted(self.regressions)),
            verdicts=tuple(self.verdicts),
            focus=frozenset(focus),
            altered=frozenset(altered),
        )
        self.apply(decide(snapshot, self.make_facts()))

    def make_facts(self) -> GatheredFacts:
        return TrueFacts(self)

    def with_active(self, regression: Regression) -> Regression:
        active = tuple(key for key, asked in self.asked.items() if asked.regression == regression.pk)
        return replace(regression, active=active)

    def apply(self, decision: Decision) -> None:
        assert not decision.missing
        owners = {change.pk: place for place, change in self.changes.items()}
        for key in decision.released:
            self.give_change(owners[key], None)
        for outcome in decision.outcomes:
            self.apply_outcome(outcome, owners)
        for residual in decision.residuals:
            self.open_residual(residual)
        standing = [row for row in self.regressions.values() if not row.withdrawn]
        # What came gradually ends at a commit at which another cause may lie as well.
        live = [(row.first_bad.position, is_gradual_counter(row)) for row in standing]
        assert len(live) == len(set(live)), "two regressions stand at one commit"
        reused, self.reused = self.reused, []
        for key, proof in reused:
            experiment = self.new_key()
            self.pairs_of[experiment] = proof.experiment
            self.keep_verdict(experiment, key, "proof", proof, proof.verdict, self.ratio_of(proof))
        if reused:
            self.decide(focus=[key for key, _ in reused])

    def apply_outcome(self, outcome: Outcome, owners: Mapping[int | None, tuple[int, int]]) -> None:
        key, decided = outcome.key or self.new_key(), outcome.decided
        for absorbed in outcome.absorbed:
            self.withdraw(absorbed)
            self.proofs = [(key if asker == absorbed else asker, asked) for asker, asked in self.proofs]
            self.verdicts = [
                replace(verdict, regression_id=key) if verdict.regression_id == absorbed else verdict
                for verdict in self.verdicts
            ]
        self.verdicts = [
            replace(verdict, regression_id=key) if verdict.experiment in outcome.experiments else verdict
            for verdict in self.verdicts
        ]
        if outcome.stop or decided is None:
            self.cancel(key)
        if decided is None:
            self.withdraw(key)
            return
        was_residual = key in self.regressions and self.regressions[key].residual
        self.regressions[key] = Regression(
            pk=key,
            first_bad=decided.first_bad,
            last_good=decided.last_good,
            series=decided.series,
            before=decided.size.before,
            after=decided.size.after,
            ratio=decided.size.ratio,
            state=decided.state,
            proving=decided.proving,
            residual=was_residual and decided.state == "suspected" and not outcome.changes,
            recovered_by=decided.recovered_by,
            bisection=decided.bisection,
            cause=decided.cause.cause,
            decided_for=decided.decided_for,
            explained_for=decided.explained_for,
        )
        for change in outcome.changes:
            self.give_change(owners[change], key)
        for wanted in outcome.next_step.experiments:
            self.ask(key, wanted)
        if outcome.next_step.proof:
            self.reused.append((key, outcome.next_step.proof))

    def open_residual(self, residual: ResidualCause) -> None:
        key = self.new_key()
        self.regressions[key] = Regression(
            pk=key,
            first_bad=residual.bad,
            last_good=residual.good,
            series=residual.series,
            before=residual.before,
            after=residual.after,
            proving=True,
            residual=True,
        )
        self.ask(
            key,
            WantedExperiment(
                "proof", residual.good, residual.bad, residual.series, residual.before, residual.after
            ),
        )

    def ask(self, regression: int, wanted: WantedExperiment) -> None:
        key = self.new_key()
        self.asked[key] = Asked(key, regression, wanted)
        if wanted.purpose == "proof":
            self.proofs.append((regression, wanted))

    def cancel(self, regression: int) -> None:
        self.asked = {key: asked for key, asked in self.asked.items() if asked.regression != regression}

    def withdraw(self, key: int) -> None:
        self.cancel(key)
        if key in self.regressions:
            self.regressions[key] = replace(self.regressions[key], withdrawn=True, proving=False)
        for place, change in self.changes.items():
            if change.regression_id == key:
                self.give_change(place, None)

    def give_change(self, place: tuple[int, int], regression: int | None) -> None:
        self.changes[place] = replace(self.changes[place], regression_id=regression)


class TrueFacts(GatheredFacts):
    """Answers every request from the planted truth."""

    def __init__(self, project: SimulatedProject) -> None:
        super().__init__()
        self.project = project

    def answer_to(self, request: Request[Any]) -> Any:
        project = self.project
        match request:
            case CommitsBetween(good, bad):
                return tuple(make_commit(at).hash for at in range(good.position + 1, bad.position))
            case CommitRow(sha):
                return make_commit(int(sha, 16))
            case RunsAtCommits(series, hashes):
                return self.runs_at(series, hashes)
            case PointsAroundRequest(series, good, bad, reach):
                return self.points_around(series, good.position, bad.position, reach)
            case PointsJudgedSince():
                return 0
            case StepInPairs(key, before, after):
                verdict = next(row for row in project.verdicts if row.experiment == key)
                return place_in_pairs(verdict, before, after)
            case ProofsOfSeries(series):
                return tuple(
                    AskedProof(key, wanted.base, wanted.head)
                    for key, wanted in project.proofs
                    if wanted.series.pk == series
                )
            case TimesAnswered(series, purpose, base, head):
                asked = (series, purpose, base, head)
                return sum(
                    (row.series.pk, row.purpose, row.base.pk, row.head.pk) == asked
                    for row in project.verdicts
                    if row.experiment not in project.pairs_of
                )
            case RefutedForAnother():
                return self.refuted_for_another(request)
            case RegressionsBetween(good, bad):
                between = Range(good.position, bad.position)
                return tuple(
                    row
                    for _, row in sorted(project.regressions.items())
                    if between.good < row.first_bad.position <= between.bad
                )
            case Explanation():
                return StepExplanation()
            case DifferencesAtStep():
                return Confounders(), TouchedFiles()
            case PhaseLeftOver() | CauseOnOtherBranch():
                return None
        raise AssertionError(request)

    def refuted_for_another(self, request: RefutedForAnother) -> ReusedProof | None:
        """Pairs without noise tell of a step of any size."""
        asked = ("proof", request.series.pk, request.base.pk, request.head.pk)
        rows = [
            row
            for row in self.project.verdicts
            if (row.purpose, row.series.pk, row.base.pk, row.head.pk) == asked
            and row.regression_id != request.regression
        ]
        if not rows or rows[-1].verdict != "refuted":
            return None
        row, levels = rows[-1], (request.before, request.after)
        measured = self.project.pairs_of.get(row.experiment, row.experiment)
        if list(self.project.pairs_of.values()).count(measured) >= MOST_REUSED:
            return None
        share = math.log(row.ratio or 1.0) / math.log(request.after / request.before)
        if share > LEAST_CONFIRMED:
            return None
        ends = (request.base, request.head)
        return ReusedProof(measured, request.series, *ends, "refuted", *levels, row.error)

    def runs_at(self, series: Series, hashes: Sequence[str]) -> dict[str, CommitRuns]:
        """Every commit counts as measured in full already: what is measured shows in `measured` alone."""
        return {
            sha: CommitRuns(2, last_done=True, value=self.project.level(series, int(sha, 16)))
            for sha in hashes
        }

    def points_around(self, series: Series, good: int, bad: int, reach: int) -> PointsAround:
        line = sorted(self.project.measured)
        earlier, later = [at for at in line if at < good][-reach:], [at for at in line if at > bad][:reach]
        return PointsAround(
            good_value=self.project.level(series, good) if good in line else None,
            bad_value=self.project.level(series, bad) if bad in line else None,
            earlier=make_commit(earlier[0]) if earlier else None,
            later=make_commit(later[-1]) if later else None,
        )
