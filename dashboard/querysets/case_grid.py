"""Every case of a project by its latest states: read from the small table, never from points."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Case as Choose
from django.db.models import Count, Exists, OuterRef, QuerySet, Subquery, When

from dashboard.models import Case, Project, SeriesLatest
from dashboard.models.series import find_tainted
from dashboard.postgresql.compiled_queries import CompiledQuery, Parameter

# A project of more cases is shown by its first ones: words make the list shorter.
MOST_CASES = 2000
# By these a case is shown that doesn't have the grid's metric, else by any other that it has.
PREFERRED_METRICS = ("throughput", "step_time", "peak_memory")


@dataclass(frozen=True, slots=True)
class CaseState:
    """A case as measured in one pool, by the latest state of one headline metric.

    `recent` are its newest values, each on one of `recent_machines`: None where it isn't judged, or no
    machine is known. `machine` is that of its newest run. `seconds` that this run took from claim to end;
    None where no run tells.
    """

    series: int
    configuration: int
    case: Case
    version: int
    pool: str
    quick: bool
    better: str
    unit: str
    value: float
    current: float | None
    base: float | None
    recent: Sequence[float]
    recent_machines: Sequence[int | None]
    updated_at: datetime
    machine: int | None
    seconds: float | None

    @property
    def measured(self) -> int:
        return len(self.recent)

    @property
    def tainted(self) -> list[bool]:
        """Which of `recent` are kept out of judgement."""
        return find_tainted(self.recent_machines, self.current)


def read_case_states(project: Project, metric: str) -> list[CaseState]:
    """Of the newest version of each case in each pool, by name."""
    states: dict[tuple[int, str, bool], CaseState] = {}
    for row in _CASE_STATES.read_rows(project=project.pk, metric=metric):
        state = _make_state(row)
        states.setdefault((state.case.pk, state.pool, state.quick), state)
    return list(states.values())


def _build_case_states() -> QuerySet[Any]:
    configuration = "series__configuration"
    names = (
        *(
            "series_id",
            f"{configuration}_id",
            f"{configuration}__case_id",
            f"{configuration}__case__benchmark",
        ),
        *(f"{configuration}__case__key", f"{configuration}__version", f"{configuration}__pool__name"),
        *(f"{configuration}__quick", "series__metric__better", "series__metric__unit"),
        *("value", "current_value", "base_value", "recent", "recent_machines", "updated_at"),
        *("run__machine_id", "run__claimed_at", "run__finished_at"),
    )
    rows = SeriesLatest.objects.filter(
        series__configuration__case__project=Parameter("project"),
        series__metric__name=Parameter("metric"),
        series__phase="",
    ).order_by(
        f"{configuration}__case__benchmark", f"{configuration}__case__key", f"-{configuration}__version"
    )
    return rows.values_list(*names)[:MOST_CASES]


_CASE_STATES: CompiledQuery[Any] = CompiledQuery(_build_case_states)


def _make_state(row: tuple[Any, ...]) -> CaseState:
    series, configuration, case, benchmark, key, *rest = row
    version, pool, quick, better, unit, value, current, base, *newest = rest
    recent, machines, updated_at, machine, claimed, finished = newest
    return CaseState(
        series=series,
        configuration=configuration,
        case=Case(pk=case, benchmark=benchmark, key=key),
        version=version,
        pool=pool,
        quick=quick,
        better=better,
        unit=unit,
        value=value,
        current=current,
        base=base,
        recent=recent,
        recent_machines=machines,
        updated_at=updated_at,
        machine=machine,
        seconds=(finished - claimed).total_seconds() if claimed and finished else None,
    )


def count_cases_by_metric(project: Project) -> dict[str, int]:
    """How many of the project's cases have each headline metric of whole steps."""
    rows = SeriesLatest.objects.filter(
        series__configuration__case__project=project, series__headline=True, series__phase=""
    )
    cases = Count("series__configuration__case", distinct=True)
    return dict(rows.values_list("series__metric__name").annotate(cases=cases))


def _build_lacking_cases() -> QuerySet[Any]:
    headlines = SeriesLatest.objects.filter(
        series__configuration__case=OuterRef("pk"), series__headline=True, series__phase=""
    )
    lacks = ~Exists(headlines.filter(series__metric__name=Parameter("metric")))
    rows = Case.objects.filter(Exists(headlines), lacks, project=Parameter("project"))
    preferred = [When(series__metric__name=name, then=order) for order, name in enumerate(PREFERRED_METRICS)]
    ordered = headlines.order_by(Choose(*preferred, default=len(PREFERRED_METRICS)), "series__metric__name")
    shown_by = ordered.values("series__metric__name")[:1]
    return rows.order_by("pk").values_list("pk", Subquery(shown_by))[:MOST_CASES]


# Of a project's cases that have headline metrics, and not this one: (key, one that it has).
LACKING_CASES: CompiledQuery[Any] = CompiledQuery(lambda *_: _build_lacking_cases())


def headlines_of(configurations: Iterable[int]) -> dict[int, list[SeriesLatest]]:
    """By configuration the latest state of each of its headline series."""
    found: dict[int, list[SeriesLatest]] = {}
    for latest in _HEADLINES.read_rows(configurations=list(configurations)):
        found.setdefault(latest.series.configuration_id, []).append(latest)
    return found


def _build_headlines() -> QuerySet[SeriesLatest]:
    rows = SeriesLatest.objects.filter(
        series__headline=True, series__configuration__in_array=Parameter("configurations")
    )
    return rows.select_related("series__metric").order_by("series__metric__name", "series__phase")


_HEADLINES = CompiledQuery(_build_headlines)
