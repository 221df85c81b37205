"""The regressions of a project over time: when each was found, proved and repaired, and what that took."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Count, Min, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce

from dashboard.models import Change, Experiment, Project, Regression, RegressionExperiment
from dashboard.querysets.deferred_joins import compose_details
from dashboard.querysets.regressions import listed_regressions

# So many of the newest are listed of a period, however many there are.
MOST_LISTED = 200


def regressions_of_period(project: Project, began: Q, *, proven: bool) -> QuerySet[Regression]:
    """Newest first, without what was refuted or withdrawn."""
    rows = Regression.objects.filter(began, project=project, withdrawn_at=None)
    rows = rows.exclude(state=Regression.State.REFUTED)
    if proven:
        rows = rows.filter(state=Regression.State.CONFIRMED)
    return rows.order_by("-first_bad__committed_at", "-pk")


def regressions_with_proofs() -> QuerySet[Regression]:
    """As lists show them, each with `proved_at`, `proof_seconds` and `case_count`."""
    links = RegressionExperiment.objects.filter(regression=OuterRef("pk")).order_by()
    proofs = links.filter(
        experiment__purpose=Experiment.Purpose.PROOF, experiment__verdict=Experiment.Verdict.CONFIRMED
    )
    first = proofs.values("regression").annotate(at=Min("experiment__finished_at")).values("at")
    spent = links.values("regression").annotate(total=Sum("experiment__seconds")).values("total")
    changes = Change.objects.filter(regression=OuterRef("pk")).order_by().values("regression")
    cases = changes.annotate(number=Count("series__configuration__case", distinct=True)).values("number")
    return listed_regressions().annotate(
        proved_at=Subquery(first),
        proof_seconds=Coalesce(Subquery(spent), 0.0),
        case_count=Coalesce(Subquery(cases), 1),
    )


PROVED_OF_KEYS = compose_details(regressions_with_proofs)


def hours_between(start: datetime | None, end: datetime | None) -> float | None:
    """None where either isn't known; what came in another order took no time."""
    if start is None or end is None:
        return None
    return max(0.0, (end - start).total_seconds() / 3600)
