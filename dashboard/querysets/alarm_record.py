"""How far the alarms of a project could be trusted so far: what became of each suspicion of a period."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, Exists, Min, OuterRef, QuerySet, Subquery

from dashboard.models import Delivery, Experiment, Project, Regression, RegressionExperiment, Run
from dashboard.postgresql.compiled_queries import CompiledQuery, Parameter
from dashboard.querysets.regressions import IMPORTED, REGRESSION_DETAILS

# So many of the newest are looked at, however many there are.
MOST_SUSPICIONS = 2000


@dataclass(frozen=True, slots=True)
class Suspicion:
    """What became of one: `alarmed` says whether it was proven, or reported to somebody."""

    key: int
    state: str
    triaged: str
    withdrawn: bool
    alarmed: bool
    committed_at: datetime
    opened_at: datetime
    proved_at: datetime | None

    @property
    def is_false(self) -> bool:
        """A person called it not real, pairs refuted it, or a later judgement no longer found it."""
        not_real = self.triaged == Regression.Triaged.NOT_REAL
        return not_real or self.withdrawn or self.state == Regression.State.REFUTED

    @property
    def is_real(self) -> bool:
        """A person took it for real; what nobody has looked at is neither real nor false."""
        return not self.is_false and self.triaged != Regression.Triaged.OPEN


def read_suspicions(project: Project, since: datetime | None) -> list[Suspicion]:
    """Newest first, of those that opened since then; without rewritten history, and without what imported
    results alone show, of which nobody is told."""
    found = _SUSPICIONS.read_rows(since is not None, project=project.pk, since=since)
    return [make_suspicion(row) for row in found]


def _build_suspicions(of_late: bool) -> QuerySet[Regression]:
    links = RegressionExperiment.objects.filter(regression=OuterRef("pk")).order_by()
    proofs = links.filter(
        experiment__purpose=Experiment.Purpose.PROOF, experiment__verdict=Experiment.Verdict.CONFIRMED
    )
    first = proofs.values("regression").annotate(at=Min("experiment__finished_at")).values("at")
    rows: Any = Regression.objects.filter(project=Parameter("project"))
    rows = rows.exclude(withdrawal=Regression.Withdrawal.REWRITTEN).exclude(IMPORTED)
    if of_late:
        rows = rows.filter(opened_at__gte=Parameter("since"))
    announced = Exists(Delivery.objects.filter(regression=OuterRef("pk")))
    rows = rows.annotate(announced=announced, proved_at=Subquery(first)).order_by("-opened_at", "-pk")
    rows = rows.only("state", "triaged", "withdrawn_at", "opened_at", "first_bad__committed_at")
    newest: QuerySet[Regression] = rows.select_related("first_bad")[:MOST_SUSPICIONS]
    return newest


_SUSPICIONS = CompiledQuery(_build_suspicions)


def make_suspicion(row: Any) -> Suspicion:
    """`row` is a regression with `announced` and `proved_at`."""
    proven = row.state == Regression.State.CONFIRMED or row.proved_at is not None
    return Suspicion(
        key=row.pk,
        state=row.state,
        triaged=row.triaged,
        withdrawn=row.withdrawn_at is not None,
        alarmed=row.announced or proven,
        committed_at=row.first_bad.committed_at,
        opened_at=row.opened_at,
        proved_at=row.proved_at,
    )


def count_measured_commits(project: Project, since: datetime | None) -> int:
    """Commits with a stored run that ended since then, and wasn't imported."""
    found = _MEASURED_COMMITS.read_rows(since is not None, project=project.pk, since=since)
    return found[0] if found else 0


def _build_measured_commits(of_late: bool) -> QuerySet[Any]:
    runs = Run.objects.filter(commit__project=Parameter("project"), state=Run.State.DONE)
    runs = runs.exclude(origin=Run.Origin.IMPORTED)
    runs = runs.filter(finished_at__gte=Parameter("since")) if of_late else runs
    counted = runs.order_by().values("commit__project").annotate(commits=Count("commit", distinct=True))
    return counted.values_list("commits", flat=True)


_MEASURED_COMMITS: CompiledQuery[Any] = CompiledQuery(_build_measured_commits)


def find_false_alarms(suspicions: Sequence[Suspicion], most: int) -> list[Regression]:
    """The newest alarms that turned out to be false, as lists show them."""
    keys = [row.key for row in suspicions if row.alarmed and row.is_false][:most]
    found = {row.pk: row for row in _FALSE_ALARMS.read_rows(keys=keys)} if keys else {}
    return [found[key] for key in keys if key in found]


def _build_false_alarms() -> QuerySet[Regression]:
    related = ("first_bad", "series__metric", "series__configuration__case", "triaged_by")
    rows = Regression.objects.select_related(*related).defer(*REGRESSION_DETAILS)
    return rows.filter(pk__in_array=Parameter("keys"))


_FALSE_ALARMS = CompiledQuery(_build_false_alarms)
