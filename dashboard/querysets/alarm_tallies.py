"""What became of suspicions that were measured again, and of the alarms of a series."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db.models import Count, DateTimeField, Exists, F, OuterRef, Q, QuerySet, Subquery, Sum, Value
from django.db.models.functions import JSONObject
from django.utils import timezone

from dashboard.models import (
    Delivery,
    Experiment,
    ExperimentPair,
    Project,
    Regression,
    RegressionExperiment,
    Series,
)
from dashboard.postgresql.compiled_queries import CompiledQuery, Parameter

# The tally of verdicts and their cost covers so many days.
TALLY_DAYS = 30


@dataclass(frozen=True, slots=True)
class ProofTally:
    """What became of suspicions that were measured again lately, and how much machine time it took."""

    days: int
    confirmed: int
    refuted: int
    undecided: int
    pairs: int
    seconds: float

    @property
    def suspicions(self) -> int:
        return self.confirmed + self.refuted + self.undecided


def tally_proofs(projects: QuerySet[Project], days: int = TALLY_DAYS) -> ProofTally:
    """Of these projects in the last `days` days.

    A suspicion is of one series, and has its newest verdict.
    """
    values = {"since": timezone.now() - timedelta(days=days), "projects": projects.values("pk")}
    counts: Counter[str] = Counter(dict(_VERDICTS.read_rows(**values)))
    pairs, seconds = next(iter(_COST_OF_PAIRS.read_rows(**values)), (0, 0.0))
    confirmed, refuted = counts[Experiment.Verdict.CONFIRMED], counts[Experiment.Verdict.REFUTED]
    return ProofTally(
        days=days,
        confirmed=confirmed,
        refuted=refuted,
        undecided=counts.total() - confirmed - refuted,
        pairs=pairs,
        seconds=seconds or 0.0,
    )


_SINCE = Parameter("since", DateTimeField())
_OF_PROJECTS = {"regression__project__in_array": Parameter("projects")}
# What an archive brought was measured, and is counted, where the archive came from.
_BROUGHT_BY_ARCHIVE = Q(experiment__finished_at__lt=F("regression__project__imported_at"))


def _build_verdicts() -> QuerySet[Any]:
    """(verdict, of how many suspicions it is the newest)."""
    proofs = RegressionExperiment.objects.filter(
        experiment__purpose=Experiment.Purpose.PROOF, experiment__state=Experiment.State.DONE
    )
    done = proofs.filter(experiment__finished_at__gte=_SINCE, **_OF_PROJECTS).exclude(_BROUGHT_BY_ARCHIVE)
    newer = proofs.filter(
        regression=OuterRef("regression"),
        series=OuterRef("series"),
        experiment__gt=OuterRef("experiment"),
    )
    newest = done.filter(~Exists(newer)).order_by().values_list("experiment__verdict")
    return newest.annotate(number=Count("pk"))


def _build_cost_of_pairs() -> QuerySet[Any]:
    """One row of (pairs, seconds); seconds are None where there are no pairs."""
    links = RegressionExperiment.objects.filter(**_OF_PROJECTS).exclude(_BROUGHT_BY_ARCHIVE)
    pairs = ExperimentPair.objects.filter(measured_at__gte=_SINCE, experiment__in=links.values("experiment"))
    summed: Any = pairs.order_by().values(all=Value(1)).annotate(pairs=Count("pk"), spent=Sum("seconds"))
    rows: QuerySet[Any] = summed.values_list("pairs", "spent")
    return rows


_VERDICTS = CompiledQuery(_build_verdicts)
_COST_OF_PAIRS = CompiledQuery(_build_cost_of_pairs)


@dataclass(frozen=True, slots=True)
class AlarmPrecision:
    """Of the alarms of a series: how many people called not real, and how many they took for real."""

    alarms: int
    not_real: int
    real: int


def with_alarm_counts(rows: QuerySet[Series]) -> QuerySet[Series]:
    """Each with what `alarm_precision` reads."""
    announced = Exists(Delivery.objects.filter(regression=OuterRef("pk")))
    alarms = Regression.objects.filter(announced | Q(state=Regression.State.CONFIRMED), series=OuterRef("pk"))
    not_real = Q(triaged=Regression.Triaged.NOT_REAL)
    counts = (
        alarms.order_by()
        .values("series")
        .annotate(
            counts=JSONObject(
                alarms=Count("pk"),
                not_real=Count("pk", filter=not_real),
                real=Count("pk", filter=~not_real & ~Q(triaged=Regression.Triaged.OPEN)),
            )
        )
    )
    return rows.annotate(alarm_counts=Subquery(counts.values("counts")))


def alarm_precision(series: Series) -> AlarmPrecision:
    """An alarm is a regression that was announced or confirmed; an untriaged one counts for neither side."""
    counts: dict[str, int] | None = series.__dict__["alarm_counts"]
    return AlarmPrecision(**(counts or {"alarms": 0, "not_real": 0, "real": 0}))
