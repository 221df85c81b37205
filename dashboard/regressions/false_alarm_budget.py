"""The project's budget of false alerts per 100 commits, kept over all its series and all its commits.

An alert about a noisy metric is either proved by an experiment, whose error is then what the alert risks; or
it is reported unproved, to channels that ask for suspicions, and risks what its p-value says. Both spend what
the commits so far have earned: a hundredth of the budget each.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce

from dashboard import alerts
from dashboard.detection import FalseAlarmBudget, pairs, shift_p_value
from dashboard.detection.doubts import IN_PARTS
from dashboard.measured_kinds import is_exact_counter
from dashboard.models import (
    Change,
    Commit,
    Experiment,
    Metric,
    Project,
    Regression,
    RegressionExperiment,
    Run,
    SeriesLatest,
)
from dashboard.postgresql.compiled_queries import CompiledQuery, Parameter
from dashboard.querysets.noise import RowCount
from dashboard.regressions.changes import WHOLE, known_directions
from dashboard.regressions.series.history import History, MeasuredCommit

# Of what is left, one proof risks half at most: so the next ones can always be asked too.
PROOF_SHARE = 0.5
LEAST_ERROR = 1e-9
# A case that wasn't measured in so many commits isn't measured any more.
RECENT_COMMITS = 100
# The newest points whose level may be a new one: the level before them ends where they begin.
NEWEST_POINTS = 16


def error_of_next_proof(project: Project) -> float:
    """The chance of a false alarm that the next proof may take.

    Pairs that were measured for another proof are reused only where they refute: they risk no alarm.
    """
    commits: int
    spent: float
    ((commits, spent),) = _PROOF_BUDGET.read_rows(project=project.pk)
    earned = project.false_alerts_per_100_commits / 100 * commits
    return max(LEAST_ERROR, min(pairs.ERROR, PROOF_SHARE * (earned - spent)))


def _build_proof_budget() -> QuerySet[Any, Any]:
    """How many commits of a project are measured, and what its proofs have risked."""
    runs = Run.objects.filter(commit=OuterRef("pk"), state=Run.State.DONE)
    commits = Commit.objects.filter(Exists(runs), project=OuterRef("pk"))
    asked = Experiment.objects.filter(project=OuterRef("pk"), purpose=Experiment.Purpose.PROOF)
    asked = asked.exclude(state=Experiment.State.CANCELLED)
    asked = asked.exclude(pairs_of__purpose=Experiment.Purpose.PROOF)
    spent = asked.order_by().values("project").values_list(Sum("error"))
    return Project.objects.filter(pk=Parameter("project")).values_list(
        RowCount(commits.order_by().values("pk")), Coalesce(Subquery(spent), 0.0)
    )


_PROOF_BUDGET: CompiledQuery[Any] = CompiledQuery(_build_proof_budget)


def announce_suspicions(project: Project, run: Run, histories: Mapping[int, History]) -> None:
    """Tell the channels that ask for suspicions of those that the budget allows at this run.

    The project is locked. `histories` are those of the run's judged series, by key.
    """
    if not _ANNOUNCEABLE_SUSPICIONS.read_rows(project=project.pk):
        return
    suspicions = announceable_suspicions(project.pk)
    noisy = [
        past for past in histories.values() if past.series.headline and not is_exact_counter(past.series)
    ]
    known = known_directions(noisy)
    p_values = {
        str(past.series.pk): newest_p_value(past, run.commit, level_starts(known[past.series.pk]))
        for past in noisy
    }
    p_values |= phase_p_values(noisy)
    decision, budget = budget_of_project(project, cases=cases_of_run(run)).decide(p_values)
    keep_budget(project, budget)
    # Of a step that lies further back, such as one that is proved anew, the newest points say nothing.
    newest = {past.series.pk: first_of_newest(past, run.commit) for past in noisy}
    of_series = Change.objects.filter(
        series__in={int(key.partition(":")[0]) for key in decision.raised}, regression__in=suspicions
    )
    raised = {
        regression
        for series, position, regression in of_series.values_list("series", "position", "regression")
        if position >= newest[series]
    }
    exact = Change.objects.filter(series__exact=True, regression__in=suspicions, series__points__run=run)
    keys = raised.union(exact.values_list("regression", flat=True))
    for regression in Regression.objects.filter(pk__in=keys).order_by("pk"):
        alerts.announce_regression(regression)


def announceable_suspicions(project: Any) -> QuerySet[Regression]:
    """The regressions that are being proved, losses of quality apart.

    One unlucky seed is no news, and no later run tells it from a loss: pairs over seeds do.

    What pairs have confirmed is no suspicion, though another series of it may be one still. What the pairs of
    a check, or of another regression, have measured it is about to be decided by that.
    """
    decided = RegressionExperiment.objects.filter(
        regression=OuterRef("pk"), experiment__pairs_of__isnull=False, applied_at=None
    )
    confirmed = RegressionExperiment.objects.filter(
        regression=OuterRef("pk"),
        experiment__purpose=Experiment.Purpose.PROOF,
        experiment__verdict=Experiment.Verdict.CONFIRMED,
    )
    return Regression.objects.filter(
        ~Exists(decided),
        project=project,
        withdrawn_at=None,
        proving=True,
        state__in=alerts.ALERTED_STATES,
        project__channels__suspicions=True,
    ).exclude(
        Q(series__metric__kind=Metric.Kind.QUALITY) | Q(Exists(confirmed), state=Regression.State.CONFIRMED),
    )


_ANNOUNCEABLE_SUSPICIONS: CompiledQuery[Any] = CompiledQuery(
    lambda: announceable_suspicions(Parameter("project")).order_by().values_list("pk", flat=True)[:1]
)


def count_refuted_alert(project: Project) -> None:
    """An alert that was raised has been found false: p-values are trusted less for a while."""
    keep_budget(project, budget_of_project(project).after_refutation())


def newest_p_value(past: History, newest: Commit, starts: Collection[int]) -> float:
    """How likely the series' newest points are if nothing changed; 1 where too few are known.

    `starts` are the positions at which changes have been found.
    """
    known = points_until(past, newest)
    positions = [commit.position for commit in known]
    return shift_p_value([commit.value for commit in known], level_start(positions, starts))


def points_until(past: History, newest: Commit) -> list[MeasuredCommit]:
    return [commit for commit in past.untainted(0, len(past.measured)) if commit.position <= newest.position]


def first_of_newest(past: History, newest: Commit) -> int:
    """The position of the first of the newest points, whose level may be a new one; 0 where there is none."""
    return next((commit.position for commit in points_until(past, newest)[-NEWEST_POINTS:]), 0)


def phase_p_values(histories: Sequence[History]) -> dict[str, float]:
    """By series and place the p-values of new levels that phases show, where those are among the newest."""
    newest = {
        past.series.pk: past.positions[-NEWEST_POINTS:][0]
        for past in histories
        if past.series.metric.name == WHOLE and past.positions
    }
    rows = Change.objects.filter(series__in=newest, position__gte=min(newest.values(), default=0))
    found = rows.values_list("series", "position", "doubts")
    return {
        f"{series}:{position}": doubt["p_value"]
        for series, position, doubts in found
        for doubt in doubts
        if doubt["code"] == IN_PARTS and "p_value" in doubt and position >= newest[series]
    }


def level_starts(directions: Mapping[int, str]) -> list[int]:
    """The positions of known changes at which a level starts: where work only moved, it goes on."""
    return [at for at, direction in directions.items() if direction != Change.Direction.MOVED]


def level_start(positions: Sequence[int], starts: Collection[int]) -> int:
    """Where the level before the newest points starts: at the last change that isn't among them."""
    places = {position: index for index, position in enumerate(positions)}
    indices = [places[at] for at in starts if at in places]
    return max((index for index in indices if index < len(positions) - NEWEST_POINTS), default=0)


_NEWEST_POSITIONS: CompiledQuery[Any] = CompiledQuery(
    lambda: SeriesLatest.objects.filter(
        series__configuration__case__project=Parameter("project"),
        series__metric__name=WHOLE,
        series__phase="",
        series__headline=True,
    ).values_list("position", flat=True)
)


def risk_of_look(project: Project) -> float:
    """The chance of a false step that the phases of one case may take at one commit.

    What a commit may risk is divided among the cases that are measured: those whose newest commit is less
    than a hundred behind.
    """
    positions = _NEWEST_POSITIONS.read_rows(project=project.pk)
    cases = sum(position > max(positions) - RECENT_COMMITS for position in positions)
    return budget_of_project(project, cases=max(1, cases)).risk


def cases_of_run(run: Run) -> int:
    """Each case of a commit is a run of its own, and has its part of what the commit may risk."""
    same = Run.objects.filter(commit=run.commit_id, configuration__quick=run.configuration.quick)
    same = same.exclude(state=Run.State.CANCELLED)
    return max(1, same.values("configuration__case", "configuration__pool").distinct().count())


def budget_of_project(project: Project, cases: int = 1) -> FalseAlarmBudget:
    state: Mapping[str, float] = project.risk or {}
    return FalseAlarmBudget(
        per_100_commits=project.false_alerts_per_100_commits / cases,
        earned=state.get("earned", 0.0),
        trust=state.get("trust", 1.0),
    )


def keep_budget(project: Project, budget: FalseAlarmBudget) -> None:
    project.risk = {"earned": budget.earned, "trust": budget.trust}
    project.save(update_fields=["risk"])
