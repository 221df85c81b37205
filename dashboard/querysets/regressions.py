"""Regressions as the inbox and the other pages read them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Sum
from django.utils import timezone

from dashboard.models import (
    Change,
    Confirmation,
    Delivery,
    Document,
    Pair,
    Point,
    Project,
    Regression,
    Series,
    Triage,
)

# What proving cost is told of so many days.
LATELY = 30

# What stands, whatever people made of it; and what a person still has to decide on.
STANDING = Q(recovered_by=None, withdrawn_at=None) & ~Q(state=Regression.State.REFUTED)
OPEN = STANDING & ~Q(triaged__in=Regression.AWAY)
# The words of the inbox's filter, in the order shown.
FILTERS: dict[str, Q] = {
    "open": OPEN,
    "suspected": OPEN & Q(state=Regression.State.SUSPECTED),
    "confirmed": OPEN & Q(state=Regression.State.CONFIRMED),
    "undecided": OPEN & Q(state=Regression.State.UNDECIDED),
    "acknowledged": OPEN & Q(triaged=Regression.Triaged.ACKNOWLEDGED),
    "intended": Q(triaged=Regression.Triaged.INTENDED),
    "not real": Q(triaged=Regression.Triaged.NOT_REAL),
    "won't fix": Q(triaged=Regression.Triaged.WONT_FIX),
    "refuted": Q(state=Regression.State.REFUTED),
    "recovered": Q(recovered_by__isnull=False),
    "withdrawn": Q(withdrawn_at__isnull=False),
    "all": Q(),
}

# Of the other cause classes no commit is the culprit.
NAMED = ("", Regression.Cause.CODE)

# Which values by phase add up to a metric of each kind; of a counter, its own.
TIMES, MEMORY = "phases", "phase_memory"
PARTS = {"time": TIMES, "rate": TIMES, "utilization": TIMES, "quality": TIMES, "memory": MEMORY}


def readable() -> QuerySet[Regression]:
    """With all that a line about a regression names."""
    return Regression.objects.select_related(
        "project",
        "first_bad",
        "culprit",
        "last_good",
        "recovered_by",
        "triaged_by",
        "series__metric",
        "series__case",
        "series__pool",
    )


def open_ones() -> QuerySet[Regression]:
    return readable().filter(OPEN)


def inbox(wanted: str, project: str = "") -> QuerySet[Regression]:
    """`wanted` is a key of FILTERS; `project` a slug, or empty for all of them."""
    found = readable().filter(FILTERS[wanted])
    return found.filter(project__slug=project) if project else found


def blamed(commits: Iterable[int]) -> dict[int, Regression]:
    """The open regression that each of these commits is to blame for, where there is one."""
    found = Regression.objects.filter(OPEN, first_bad__in=list(commits), cause__in=NAMED)
    return {regression.first_bad_id: regression for regression in found}


def open_changes(project: Project, series: Iterable[int]) -> dict[int, Change]:
    """The newest change of each of these series that an open regression holds."""
    open_here = Regression.objects.filter(OPEN, project=project)
    changes = Change.objects.filter(series__in=list(series), regression__in=open_here)
    return {
        change.series_id: change for change in changes.select_related("series__metric").order_by("position")
    }


def evidence(regression: Regression) -> QuerySet[Change]:
    """The changes that it groups; those of headline series first."""
    return regression.changes.select_related("series__metric", "series__case", "series__pool").order_by(
        "-series__headline", "series__metric__name", "series__phase"
    )


def confirmations(regression: Regression) -> QuerySet[Confirmation]:
    """What was measured again for it, in order, with the pairs."""
    names = ("good", "bad", "machine", "series__metric", "series__case")
    return regression.confirmations.select_related(*names).prefetch_related("pairs")


def triages(regression: Regression) -> QuerySet[Triage]:
    """What people said about it, newest first."""
    return regression.triages.select_related("person").order_by("-at", "-pk")


def deliveries(regression: Regression | None = None) -> QuerySet[Delivery]:
    found = Delivery.objects.select_related("channel__project", "regression__series__metric")
    return found.filter(regression=regression) if regression else found


@dataclass(frozen=True, slots=True)
class Tally:
    """What became of suspicions that were measured again lately, and what that took of the machines."""

    days: int
    confirmed: int
    refuted: int
    undecided: int
    pairs: int
    seconds: float

    @property
    def suspicions(self) -> int:
        return self.confirmed + self.refuted + self.undecided


def tally(project: str = "", days: int = LATELY) -> Tally:
    """Of the last `days` days; of the project of that slug, or of all.

    A suspicion is of one series, and has its newest verdict.
    """
    since = timezone.now() - timedelta(days=days)
    own = {"regression__project__slug": project} if project else {}
    done = Confirmation.objects.filter(
        purpose=Confirmation.Purpose.CONFIRM, state=Confirmation.State.DONE, finished_at__gte=since, **own
    )
    newer = Confirmation.objects.filter(
        regression=OuterRef("regression"),
        series=OuterRef("series"),
        purpose=Confirmation.Purpose.CONFIRM,
        state=Confirmation.State.DONE,
        pk__gt=OuterRef("pk"),
    )
    newest = done.filter(~Exists(newer)).order_by().values_list("verdict").annotate(found=Count("pk"))
    counts: Counter[str] = Counter(dict(newest))
    took = Pair.objects.filter(
        measured_at__gte=since, **{f"confirmation__{name}": value for name, value in own.items()}
    ).aggregate(pairs=Count("pk"), seconds=Sum("seconds"))
    confirmed, refuted = counts[Confirmation.Verdict.CONFIRMED], counts[Confirmation.Verdict.REFUTED]
    return Tally(
        days=days,
        confirmed=confirmed,
        refuted=refuted,
        undecided=counts.total() - confirmed - refuted,
        pairs=took["pairs"],
        seconds=took["seconds"] or 0.0,
    )


@dataclass(frozen=True, slots=True)
class Precision:
    """Of the alarms that a series spoke for: how many people called not real, how many they took for real."""

    alarms: int
    not_real: int
    real: int


def precision(series: Series) -> Precision:
    """An alarm was told to somebody, or stands confirmed; what nobody has triaged counts for neither side."""
    told = Exists(Delivery.objects.filter(regression=OuterRef("pk")))
    alarms = Regression.objects.filter(told | Q(state=Regression.State.CONFIRMED), series=series)
    not_real = Q(triaged=Regression.Triaged.NOT_REAL)
    counted = alarms.aggregate(
        alarms=Count("pk"),
        not_real=Count("pk", filter=not_real),
        real=Count("pk", filter=~not_real & ~Q(triaged=Regression.Triaged.OPEN)),
    )
    return Precision(**counted)


def counts(project: str = "") -> dict[str, int]:
    """How many each of FILTERS would list."""
    found = Regression.objects.filter(project__slug=project) if project else Regression.objects.all()
    named = {f"n{place}": Count("pk", filter=rule) for place, rule in enumerate(FILTERS.values()) if rule}
    counted = found.aggregate(whole=Count("pk"), **named)
    return {name: counted.get(f"n{place}", counted["whole"]) for place, name in enumerate(FILTERS)}


def runs_around(regression: Regression) -> list[int]:
    """The runs of the last good and of the first bad commit that its series has points of, in that order."""
    newest = newest_runs(regression)
    return [newest[one] for one in (regression.last_good_id, regression.first_bad_id) if one in newest]


def newest_runs(regression: Regression) -> dict[int, int]:
    """By commit: an untainted run, if there is one."""
    points = Point.objects.filter(
        series=regression.series_id, run__commit__in=[regression.last_good_id, regression.first_bad_id]
    ).order_by("tainted", "-run_id")
    newest: dict[int, int] = {}
    for commit, run in points.values_list("run__commit_id", "run_id"):
        newest.setdefault(commit, run)
    return newest


def phases_around(regression: Regression) -> tuple[dict[str, float], dict[str, float]]:
    """By phase, before and after the step: what the regression's metric is made of, in the series that
    speaks for it. Memory is told in bytes that a phase grew by, a counter in counts, all else in seconds
    per step in the phase itself. Empty where that commit has no point.
    """
    newest = newest_runs(regression)
    name = PARTS.get(regression.series.metric.kind, regression.series.metric.name)
    part = "body__phases" if name == TIMES else "body__metrics"
    stored = dict(Document.objects.filter(run__in=newest.values()).values_list("run_id", part))
    before, after = (
        _by_phase(stored.get(newest.get(commit, 0)) or [], name)
        for commit in (regression.last_good_id, regression.first_bad_id)
    )
    return before, after


def _by_phase(rows: list[dict[str, Any]], name: str) -> dict[str, float]:
    if name == TIMES:
        return {row["path"]: row["self"] for row in rows}
    return {row["phase"]: row["value"] for row in rows if row["name"] == name and row["phase"]}
