"""Cases whose newest runs are mostly kept out of judgement, so that nothing is watched there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, F, QuerySet, Window
from django.db.models.functions import RowNumber

from dashboard.models import Configuration, Project, Run
from dashboard.postgresql.compiled_queries import NOW, CompiledQuery, Parameter

# Of so many newest runs of a configuration at least so many are tainted.
NEWEST_RUNS, FEWEST_TAINTED = 5, 3
# What nobody measures any more needs nobody now.
MEASURED_WITHIN = timedelta(days=7)
MOST_CASES = 6


@dataclass(frozen=True, slots=True)
class TaintedCase:
    """A configuration of which `tainted` of the newest `measured` runs are kept out of judgement.

    `codes`: of the warnings that taint the newest of these, `run`.
    """

    configuration: Configuration
    measured: int
    tainted: int
    run: int
    codes: tuple[str, ...]


def mostly_tainted_cases(now: datetime, projects: QuerySet[Project]) -> list[TaintedCase]:
    """Of these projects, by the runs of the last days alone; MOST_CASES at most."""
    by_configuration: dict[int, list[tuple[int, bool]]] = {}
    for key, run, tainted in _NEWEST_RUNS.read_rows(now=now, projects=projects.values("pk")):
        by_configuration.setdefault(key, []).append((run, tainted))
    mostly = {
        key: rows
        for key, rows in by_configuration.items()
        if sum(tainted for _, tainted in rows) >= FEWEST_TAINTED
    }
    return _describe_cases(dict(list(mostly.items())[:MOST_CASES]))


def _build_newest_runs() -> QuerySet[Any]:
    """(configuration, run, whether it is tainted), newest first, of those that may be mostly tainted."""
    recent = Run.objects.filter(
        requested_at__gt=NOW - MEASURED_WITHIN,
        state=Run.State.DONE,
        origin=Run.Origin.MEASURED,
        configuration__case__project__in_array=Parameter("projects"),
    )
    suspicious = recent.filter(tainted=True).values("configuration").annotate(number=Count("pk"))
    keys = suspicious.filter(number__gte=FEWEST_TAINTED).values("configuration")
    rank = Window(RowNumber(), partition_by=[F("configuration")], order_by=F("pk").desc())
    newest = recent.filter(configuration__in=keys).annotate(rank=rank).filter(rank__lte=NEWEST_RUNS)
    return newest.order_by("-pk").values_list("configuration", "pk", "tainted")


_NEWEST_RUNS = CompiledQuery(_build_newest_runs)


def _describe_cases(mostly: dict[int, list[tuple[int, bool]]]) -> list[TaintedCase]:
    if not mostly:
        return []
    last_tainted = {key: next(run for run, tainted in rows if tainted) for key, rows in mostly.items()}
    related = ("configuration__case__project", "configuration__pool")
    rows: Any = Run.objects.filter(pk__in=last_tainted.values()).select_related(*related)
    found = {run.configuration_id: run for run in rows.annotate(warnings=F("document__body__warnings"))}
    return [
        TaintedCase(
            configuration=found[key].configuration,
            measured=len(newest),
            tainted=sum(tainted for _, tainted in newest),
            run=last_tainted[key],
            codes=tainting_codes(found[key].warnings or ()),
        )
        for key, newest in mostly.items()
    ]


def tainting_codes(warnings: Iterable[dict[str, Any]]) -> tuple[str, ...]:
    """Of a document's warnings, in their order."""
    return tuple(dict.fromkeys(str(row["code"]) for row in warnings if row.get("taints")))
