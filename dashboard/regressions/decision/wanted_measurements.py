"""What a proof wants measured, and what it has found out beside that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from dashboard.measured_kinds import is_exact_counter
from dashboard.models import Experiment
from dashboard.regressions.decision.facts import Change, Commit, Evidence, ExperimentVerdict, Series
from dashboard.regressions.decision.primary_change import PrimaryChange
from dashboard.regressions.decision.ranges import Range
from dashboard.regressions.decision.requested_facts import GatheredFacts, ReusedProof, RunsAtCommits
from dashboard.regressions.decision.series_kinds import is_quality

Purpose = Experiment.Purpose

# The code of a bisection that has ended since the pairs that it needs have answered often already.
ANSWERED_OFTEN = "answered"


@dataclass(frozen=True, slots=True)
class WantedExperiment:
    """An experiment that a regression asks for; `before` and `after` are the levels of the suspected step.

    `phases_with_step`: those that alone show it.
    """

    purpose: str
    base: Commit
    head: Commit
    series: Series
    before: float
    after: float
    phases_with_step: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WantedRun:
    """A run of a series' configuration at a commit, measured as its newest run was."""

    series: Series
    commit: Commit


@dataclass(frozen=True, slots=True)
class ResidualCause:
    """The rest of a step between two commits, from one level to the other, to be proved by itself."""

    good: Commit
    bad: Commit
    series: Series
    before: float
    after: float

    @property
    def range(self) -> Range:
        return Range(self.good.position, self.bad.position)


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a bisection has ended: the commit of a merged branch that did it, and what there is to say beside
    it.
    """

    culprit: Commit | None = None
    bisection: Evidence | None = None


@dataclass(frozen=True, slots=True)
class NextStep:
    """What a proof asks for next. Nothing asked and nothing under way: it has ended.

    `placement` is where the bisection has ended, once it has. `proof` is reused, as if it had been asked for
    and had ended.
    """

    experiments: tuple[WantedExperiment, ...] = ()
    runs: tuple[WantedRun, ...] = ()
    waiting: bool = False
    residual: ResidualCause | None = None
    placement: Placement | None = None
    proof: ReusedProof | None = None

    @property
    def ended(self) -> bool:
        return not (self.experiments or self.runs or self.waiting or self.proof)

    @property
    def ended_answered_often(self) -> bool:
        """The same pairs have answered so often that they aren't measured again."""
        return self.ended and self.placement is not None and says_answered_often(self.placement.bisection)


@dataclass(frozen=True, slots=True)
class ProofContext:
    """What the next step of a proof depends on: the range, the primary change, and what is known.

    `other_steps` are the positions at which its primary series steps beside that.
    `proved_again`: its last proof couldn't be measured, or refuted what still stands, and another is due.
    `nearby`: all verdicts that are known here, those of other regressions too.
    """

    key: int | None
    good: Commit
    bad: Commit
    primary: PrimaryChange
    changes: Sequence[Change]
    verdicts: Sequence[ExperimentVerdict]
    other_steps: Sequence[int] = ()
    proved_again: bool = False
    nearby: Sequence[ExperimentVerdict] = ()
    facts: GatheredFacts = field(default_factory=GatheredFacts)

    @property
    def range(self) -> Range:
        return Range(self.good.position, self.bad.position)

    def experiment(
        self,
        purpose: str,
        base: Commit,
        head: Commit,
        change: Change | None = None,
        whole: ExperimentVerdict | None = None,
    ) -> WantedExperiment:
        """An experiment on two commits. A part of a step is weighed against `whole`, the proof of all of it.

        What detection saw is of other hours: beside that, a commit with the whole step may seem to have a
        part.
        """
        weighed = change or self.primary.change
        series = weighed.series
        ratio = whole.ratio if whole and whole.series.pk == series.pk else None
        after = weighed.after if ratio is None else series.metric.level(weighed.before, ratio)
        if whole and whole.difference is not None and whole.series.pk == series.pk:
            after = weighed.before + whole.difference
        return WantedExperiment(purpose, base, head, series, weighed.before, after, weighed.phases_with_step)

    def counters(self) -> list[Change]:
        """The exact counters among its changes, which tell the place of the cause without an experiment; none
        of a quality, whose place they don't know.
        """
        if is_quality(self.primary.change.series):
            return []
        return [change for change in self.primary.members if is_exact_counter(change.series)]


def says_answered_often(bisection: Evidence | None) -> bool:
    """Whether a proof has ended since the pairs that it needs have answered often already."""
    return bisection is not None and bisection.code == ANSWERED_OFTEN


def measure_in_full(context: ProofContext, commits: Sequence[Commit]) -> NextStep:
    """Runs of what no run has measured yet of the regression's cases at these commits."""
    wanted, waiting = [], False
    hashes = tuple(commit.hash for commit in commits)
    for series in series_by_configuration(context):
        tried = context.facts.answer_to(RunsAtCommits(series, hashes, context.key))
        waiting |= any(run.under_way for run in tried.values())
        wanted += [WantedRun(series, commit) for commit in commits if commit.hash not in tried]
    return NextStep(runs=tuple(wanted), waiting=waiting)


def series_by_configuration(context: ProofContext) -> list[Series]:
    """One series of each configuration that the regression's changes are of."""
    by_configuration: dict[int, Series] = {}
    for change in sorted([context.primary.change, *context.changes], key=lambda change: change.series.pk):
        by_configuration.setdefault(change.series.configuration_id, change.series)
    return list(by_configuration.values())
