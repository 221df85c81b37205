"""How far a project's alarms can be trusted: what became of those there were, from people's verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from statistics import quantiles

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from dashboard.detection.event_rate import EventRate, estimate_rate
from dashboard.models import Regression
from dashboard.pages.list_filters import FilterError, read_choice
from dashboard.pages.requested_project import requested_project
from dashboard.querysets.alarm_record import (
    Suspicion,
    count_measured_commits,
    find_false_alarms,
    read_suspicions,
)
from dashboard.querysets.regression_history import hours_between

PERIODS = {"30": "30 days", "90": "90 days", "365": "a year", "all": "all"}
DEFAULT_PERIOD = "90"
MOST_FALSE = 20


@dataclass(frozen=True, slots=True)
class AlarmRecord:
    """Of some alarms: how many there were, were false, were taken for real, and were looked at by nobody.

    `rate` is that of the false ones in 100 measured commits; None where none was measured.
    """

    name: str
    alarms: int
    false: int
    real: int
    rate: EventRate | None

    @property
    def open(self) -> int:
        return self.alarms - self.false - self.real


@dataclass(frozen=True, slots=True)
class WaitingTime:
    """Hours that something took, of so many: the median and what nine of ten stay below."""

    name: str
    count: int
    median: float
    most: float


@require_safe
def trust_page(request: HttpRequest, slug: str) -> HttpResponse:
    project = requested_project(request, slug)
    refused = ""
    try:
        period = read_choice(request, "days", tuple(PERIODS)) or DEFAULT_PERIOD
    except FilterError as error:
        period, refused = DEFAULT_PERIOD, str(error)
    since = None if period == "all" else timezone.now() - timedelta(days=int(period))
    suspicions = read_suspicions(project, since)
    commits = count_measured_commits(project, since)
    alarms = [row for row in suspicions if row.alarmed]
    context = {
        "project": project,
        "tab": "trust",
        "refused": refused,
        "period": period,
        "period_label": PERIODS[period],
        "periods": PERIODS.items(),
        "commits": commits,
        "budget": project.false_alerts_per_100_commits,
        "records": [
            summarize_alarms("Proven or reported", alarms, commits),
            summarize_alarms("Had every suspicion been reported", suspicions, commits),
        ],
        "refuted": sum(row.state == Regression.State.REFUTED for row in suspicions),
        "times": measure_times(suspicions),
        "false_alarms": find_false_alarms(suspicions, MOST_FALSE),
    }
    return render(request, "regressions/alarm_record.html", context, status=400 if refused else 200)


def summarize_alarms(name: str, alarms: Sequence[Suspicion], commits: int) -> AlarmRecord:
    false = sum(row.is_false for row in alarms)
    real = sum(row.is_real for row in alarms)
    return AlarmRecord(name, len(alarms), false, real, estimate_rate(false, commits / 100))


def measure_times(suspicions: Sequence[Suspicion]) -> list[WaitingTime]:
    """From the commit to the suspicion, to its proof, and between the two; what nothing tells is left out."""
    real = [row for row in suspicions if not row.is_false]
    parts = (
        ("From the commit to the suspicion", [(row.committed_at, row.opened_at) for row in real]),
        ("From the suspicion to its proof", [(row.opened_at, row.proved_at) for row in real]),
        ("From the commit to a proven alarm", [(row.committed_at, row.proved_at) for row in real]),
    )
    times = []
    for name, periods in parts:
        found = [hours_between(start, end) for start, end in periods]
        hours = sorted(value for value in found if value is not None)
        if hours:
            tenths = quantiles(hours, n=10, method="inclusive") if len(hours) > 1 else hours * 9
            times.append(WaitingTime(name, len(hours), tenths[4], tenths[8]))
    return times
