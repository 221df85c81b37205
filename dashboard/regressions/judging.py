"""From points to changes to regressions: when a run is stored, or when history is judged again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from statistics import median

from django.db import transaction
from django.utils import timezone

from dashboard import alerts
from dashboard.models import Change, Commit, Project, Regression, Run, Series, SeriesLatest
from dashboard.regressions import (
    blame,
    branches,
    changes,
    crossings,
    evidence,
    explaining,
    grouping,
    history,
    markers,
    promise,
    proving,
    sentinels,
    settling,
    speaking,
)
from dashboard.regressions.relevance import JUDGED, speaks
from dashboard.repositories.history import DETACHED

WORSE = Change.Direction.REGRESSION


@dataclass(slots=True)
class Outcome:
    """What a judgement did: changes found, moved, measured again, kept, withdrawn; regressions opened.

    `opened` holds those that came back too, `resized` those of another size with the earlier one, in percent.
    """

    counts: Counter[str] = field(default_factory=Counter)
    opened: list[Regression] = field(default_factory=list)
    resized: list[tuple[Regression, float | None]] = field(default_factory=list)
    # Those that a series joined which would speak for them, were it proved.
    louder: list[Regression] = field(default_factory=list)
    # Those of both, also where they are left out of what is proved and told.
    touched: list[int] = field(default_factory=list)


def judge_run(run_id: int) -> None:
    """Judge the series that a stored run touched; alerts go out for what this opens or enlarges.

    One transaction, under the project's lock: of two workers the second sees all that the first has done.
    Safe to repeat; a run that isn't done (any more) is left alone.
    """
    with transaction.atomic():
        run = Run.objects.select_related("commit", "case").filter(pk=run_id, state=Run.State.DONE).first()
        if run is None:
            return
        project = locked(run.commit.project_id)
        if run.origin == Run.Origin.SENTINEL:
            judge_sentinel(run)
            return
        touched = Series.objects.filter(JUDGED, points__run=run).select_related("metric", "case")
        outcome = judge_series(project, run.commit.branch, list(touched))
        proved = {one.pk for one in project.regressions.filter(proving=True)}
        drop_innocent(project, outcome)
        # Confirmed first, then told; and who was told of one that comes back isn't told twice.
        resized = [one for one, _ in outcome.resized]
        proving.begin(project, [*outcome.opened, *outcome.louder], resized)
        ended = project.regressions.filter(pk__in=proved, proving=False)
        evidence.decide_all([*outcome.touched, *ended.values_list("pk", flat=True)])
        promise.tell_suspicions(project, run)
        for crossing in crossings.find(project, run):
            alerts.announce_regression(crossing)
        for regression, earlier in outcome.resized:
            alerts.announce_growth(regression, earlier)
        Run.objects.filter(pk=run_id).update(judged_at=timezone.now())


def judge_sentinel(run: Run) -> None:
    """The same code as ever: it can open nothing, only say that its machine moved. The project is locked."""
    sentinels.judge(run)
    evidence.again_after(run)
    Run.objects.filter(pk=run.pk).update(judged_at=timezone.now())


def prove(regression_id: int) -> None:
    """Act on the verdicts of a regression's confirmations, and decide its cause class by them."""
    with transaction.atomic():
        proving.prove(regression_id)
        evidence.decide_all([regression_id])


def drop_innocent(project: Project, outcome: Outcome) -> None:
    """Leave out what no commit is blamed for: it is shown with its cause, neither proved nor told.

    One that a blamed change has joined since is proved like any other.
    """
    found = [*outcome.opened, *(one for one, _ in outcome.resized)]
    innocent = {one.pk for one in found if evidence.is_innocent(one)}
    outcome.touched = [one.pk for one in found]
    waiting = project.regressions.filter(
        proving=False,
        state=Regression.State.SUSPECTED,
        cause__in=evidence.AROUND,
        withdrawn_at=None,
        confirmations=None,
    ).exclude(pk__in=[one.pk for one in outcome.opened])
    joined = [one for one in waiting if not evidence.is_innocent(one)]
    outcome.opened = [one for one in outcome.opened if one.pk not in innocent] + joined
    outcome.resized = [(one, earlier) for one, earlier in outcome.resized if one.pk not in innocent]
    outcome.touched += [one.pk for one in joined]


def redetect(project: Project, show: Callable[[int, int], None] | None = None) -> Outcome:
    """Judge a project's whole history again, case by case; `show` gets (cases done, cases) after each.

    Nobody is alerted: what a better detection sees in old commits isn't news.
    """
    total = Outcome()
    groups = judged_together(project)
    for done, (branch, series) in enumerate(groups, start=1):
        with transaction.atomic():
            outcome = judge_series(locked(project.pk), branch, series, anew=True)
            evidence.decide_all(one.pk for one in [*outcome.opened, *(one for one, _ in outcome.resized)])
        total.counts.update(outcome.counts)
        total.opened.extend(outcome.opened)
        if show:
            show(done, len(groups))
    return total


def locked(project_id: int) -> Project:
    # Not FOR UPDATE: that waits for, and holds up, every row that is inserted with this project as its key.
    return Project.objects.select_for_update(no_key=True).get(pk=project_id)


def judged_together(project: Project) -> list[tuple[str, list[Series]]]:
    """The judged series of each case, version, pool and branch."""
    rows = Series.objects.filter(JUDGED, case__project=project).select_related("metric", "case")
    groups: dict[tuple[int, int, int, bool], list[Series]] = {}
    for one in rows.order_by("pk"):
        groups.setdefault((one.case_id, one.version, one.pool_id, one.quick), []).append(one)
    branches = Commit.objects.filter(project=project, runs__state=Run.State.DONE)
    names = branches.order_by("branch").values_list("branch", flat=True).distinct()
    return [(branch, series) for series in groups.values() for branch in names]


def judge_series(project: Project, branch: str, series: Sequence[Series], *, anew: bool = False) -> Outcome:
    """Bring the changes and regressions of these series in line with their points. The project is locked.

    `anew`: also those whose changes are as they were, and what explains them, since the rules may be others
    now.
    """
    outcome = Outcome()
    if branch == DETACHED:
        return outcome  # Commits of no branch have no order among them.
    standing = live(project)
    line = branches.of(project, branch)
    histories = {one.pk: history.load(one, line) for one in series}
    environments = markers.Environments()
    synced: list[changes.Synced] = []
    for past in histories.values():
        found = changes.find(past, environments)
        synced.append(changes.sync(past, branch, found))
        outcome.counts.update(synced[-1].counts)
        if branch == project.branch:
            keep_level(past, found)
    speaking = to_group(project, branch, histories, synced)
    known = grouping.group(project, branch, speaking, histories, opening=False)
    touched = known.touched.union(*(one.left for one in synced))
    altered = anew or any(one.altered for one in synced)
    affected = to_settle(series, touched, altered)
    settled = settling.settle_all(project, affected)
    homeless = [change for change in speaking if change.regression_id is None]
    grouped = grouping.group(project, branch, homeless, histories, opening=True)
    settled += settling.settle_all(project, Regression.objects.filter(pk__in=grouped.touched).order_by("pk"))
    if anew:
        settled += explaining.heads_of(affected)
    newest = {regression.pk: (regression, head) for regression, head in settled}
    for regression, head in newest.values():
        blame.attribute(project, regression, head, histories)
    tell_apart(project, standing, outcome)
    outcome.louder = with_louder(project, known.touched | grouped.touched)
    return outcome


def with_louder(project: Project, touched: Iterable[int]) -> list[Regression]:
    """Of regressions that changes have joined, those in which one is louder than what was proved."""
    rows = project.regressions.filter(pk__in=touched, state=Regression.State.CONFIRMED, withdrawn_at=None)
    rows = rows.exclude(triaged__in=Regression.AWAY)
    rows = rows.select_related("series__metric", "last_good", "first_bad")
    return [one for one in rows.order_by("pk") if (found := speaking.of(one)) and found.louder]


def live(project: Project) -> dict[int, float | None]:
    """The ratios of a project's regressions that aren't withdrawn."""
    return dict(Regression.objects.filter(project=project, withdrawn_at=None).values_list("pk", "ratio"))


def tell_apart(project: Project, standing: dict[int, float | None], outcome: Outcome) -> None:
    """Note what opened and what has another size, by what stood before, whichever way it came about.

    The project is locked: nobody else opens, withdraws or settles meanwhile.
    """
    moved = [key for key, ratio in live(project).items() if key not in standing or standing[key] != ratio]
    for regression in Regression.objects.filter(pk__in=moved).order_by("pk"):
        if regression.pk in standing:
            earlier = Regression(ratio=standing[regression.pk]).change_percent
            outcome.resized.append((regression, earlier))
        else:
            outcome.opened.append(regression)


def keep_level(past: history.History, found: Sequence[changes.Found]) -> None:
    """The level since the last change, for the overviews."""
    start = found[-1].change.index if found else 0
    values = [one.value for one in past.untainted(start, len(past.measured))]
    SeriesLatest.objects.filter(pk=past.series.pk).update(level=median(values) if values else None)


def to_group(
    project: Project, branch: str, histories: dict[int, history.History], synced: Sequence[changes.Synced]
) -> list[Change]:
    """The changes that need a place: those that are new or moved, and those that have none yet.

    Marks those that are no commit's doing. What is too old to be judged again keeps the place that it has:
    what changed around it isn't known any more.
    """
    surroundings = {key: found for one in synced for key, found in one.surroundings.items()}
    altered = [change.pk for one in synced for change in one.altered]
    rows = Change.objects.filter(series__in=list(histories), first_bad__branch=branch, direction=WORSE)
    rows = (rows.filter(pk__in=altered) | rows.filter(regression=None)).select_related(*grouping.RELATED)
    speaking = [row for row in rows if row.position > histories[row.series_id].frozen_until and speaks(row)]
    for row in speaking:
        around = surroundings.get(row.pk)
        innocent = around is not None and not blame.is_commits(project, row, around)
        if innocent != row.innocent:
            row.innocent = innocent
            row.save(update_fields=["innocent"])
    return speaking


def to_settle(series: Sequence[Series], touched: Iterable[int], altered: bool) -> list[Regression]:
    """The regressions whose changes are others now; with new levels also those that may have recovered."""
    rows = Regression.objects.filter(pk__in=touched)
    if altered:
        held = Change.objects.filter(series__in=series).exclude(regression=None)
        live = Regression.objects.filter(pk__in=held.values("regression"), withdrawn_at=None)
        rows = rows | live
    return list(rows.select_related("first_bad", "last_good").order_by("pk"))
