"""The project's promise in false alerts per 100 commits, kept over all its series and all its commits.

An alert about a noisy metric is either confirmed by interleaved runs, whose error is then what the alert
risks; or it is told unproved, to channels that ask for suspicions, and risks what its p-value says. Both
spend what the commits so far have earned: a hundredth of the promise each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django.db.models import Exists, OuterRef, Sum

from dashboard import alerts
from dashboard.detection import FalseAlarmBudget, pairs, shift_p_value
from dashboard.models import Change, Commit, Confirmation, Project, Regression, Run, Series
from dashboard.regressions import branches, history
from dashboard.regressions.relevance import is_exact_counter

# Of what is left, one confirmation risks half at most: so the next ones can always be asked too.
PART = 0.5
LEAST = 1e-9
# The newest points whose level may be a new one: the level before them ends where they begin.
NEWEST = 16


def error(project: Project) -> float:
    """The chance of a false alarm that the next confirmation may take."""
    commits = Commit.objects.filter(project=project, runs__state=Run.State.DONE).distinct().count()
    earned = project.false_alerts_per_100_commits / 100 * commits
    asked = Confirmation.objects.filter(
        regression__project=project, purpose=Confirmation.Purpose.CONFIRM
    ).exclude(state=Confirmation.State.CANCELLED)
    spent = asked.aggregate(risked=Sum("error"))["risked"] or 0.0
    return max(LEAST, min(pairs.ERROR, PART * (earned - spent)))


def tell_suspicions(project: Project, run: Run) -> None:
    """Tell the channels that ask for suspicions of those that the promise allows at this run.

    Project locked.
    """
    # What pairs have confirmed is no suspicion, though a louder series of it may be one still.
    confirmed = Confirmation.objects.filter(
        regression=OuterRef("pk"),
        purpose=Confirmation.Purpose.CONFIRM,
        verdict=Confirmation.Verdict.CONFIRMED,
    )
    told = Regression.objects.filter(
        project=project,
        withdrawn_at=None,
        proving=True,
        state__in=alerts.ALERTED_STATES,
        project__channels__suspicions=True,
    ).exclude(Exists(confirmed), state=Regression.State.CONFIRMED)
    if not told.exists():
        return
    headlines = Series.objects.filter(headline=True, points__run=run).select_related("metric", "case")
    surprising = {
        str(one.pk): p_value(one, run.commit) for one in headlines.order_by("pk") if not is_exact_counter(one)
    }
    decision, budget = budget_of(project, cases=cases_at(run)).decide(surprising)
    keep(project, budget)
    raised = Change.objects.filter(series__in=[int(key) for key in decision.raised], regression__in=told)
    exact = Change.objects.filter(series__exact=True, regression__in=told, series__points__run=run)
    keys = {*raised.values_list("regression", flat=True), *exact.values_list("regression", flat=True)}
    for regression in Regression.objects.filter(pk__in=keys).order_by("pk"):
        alerts.announce_regression(regression)


def refuted(project: Project) -> None:
    """An alert that was raised has been found false: p-values are trusted less for a while."""
    keep(project, budget_of(project).after_refutation())


def p_value(series: Series, newest: Commit) -> float:
    """How likely the series' newest points are if nothing changed; 1 where too few are known."""
    past = history.load(series, branches.of(newest.project, newest.branch))
    values = [one.value for one in past.untainted(0, len(past.measured)) if one.position <= newest.position]
    positions = [one.position for one in past.untainted(0, len(past.measured))]
    return shift_p_value(values, level_start(past, positions, len(values)))


def level_start(past: history.History, positions: Sequence[int], known: int) -> int:
    """Where the level before the newest points starts: at the last change that isn't among them."""
    changes = Change.objects.filter(past.line.holds("first_bad"), series=past.series)
    starts = [positions.index(at) for at in changes.values_list("position", flat=True) if at in positions]
    return max((start for start in starts if start < known - NEWEST), default=0)


def cases_at(run: Run) -> int:
    """Each case of a commit is a run of its own, and has its part of what the commit may risk."""
    same = Run.objects.filter(commit=run.commit_id, quick=run.quick).exclude(state=Run.State.CANCELLED)
    return max(1, same.values("case", "pool").distinct().count())


def budget_of(project: Project, cases: int = 1) -> FalseAlarmBudget:
    state: Mapping[str, float] = project.risk or {}
    return FalseAlarmBudget(
        per_100_commits=project.false_alerts_per_100_commits / cases,
        earned=state.get("earned", 0.0),
        trust=state.get("trust", 1.0),
    )


def keep(project: Project, budget: FalseAlarmBudget) -> None:
    project.risk = {"earned": budget.earned, "trust": budget.trust}
    project.save(update_fields=["risk"])
