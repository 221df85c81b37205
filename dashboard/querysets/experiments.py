"""Experiments as pages read them."""

from __future__ import annotations

from typing import Any

from django.db.models import Case as Choose
from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Subquery, When
from django.db.models.functions import Coalesce, Now

from dashboard.models import Case, Claim, Document, Experiment, ExperimentPair, Machine, Project, Run, Series
from dashboard.postgresql.compiled_queries import CompiledQuery, Parameter
from dashboard.querysets.deferred_joins import MACHINE_DETAILS, PROJECT_DETAILS, compose_details, is_among
from dashboard.querysets.experiment_order import order_waiting_experiments
from dashboard.querysets.runs import ALIVE_WITHIN

# The tabs of the list, in the order shown.
STATES: dict[str, Q] = {
    "all": Q(),
    "active": Q(state__in=Experiment.ACTIVE),
    "done": Q(state=Experiment.State.DONE),
    "cancelled": Q(state=Experiment.State.CANCELLED),
}
MOST_METRICS = 60
LISTED_CASES = 100


def experiments_with_related() -> QuerySet[Experiment]:
    """With all that a line about an experiment names, and its numbers of pairs; newest first."""
    rows = Experiment.objects.select_related(
        *("project", "base_commit", "head_commit", "metric", "machine", "requested_by"),
        *("base_configuration__case", "head_configuration__case"),
        *("base_configuration__pool", "head_configuration__pool"),
        *("regression_link", "checked_case"),
    ).defer(
        *("project__hook_secret", "profiles", "commands"),
        *(f"project__{name}" for name in PROJECT_DETAILS),
        *(f"machine__{name}" for name in MACHINE_DETAILS),
    )
    pairs = ExperimentPair.objects.filter(experiment=OuterRef("pk"))
    return rows.annotate(
        measured=_count_subquery(pairs), disturbed=_count_subquery(pairs.filter(disturbed=True))
    ).order_by("-requested_at", "-pk")


EXPERIMENTS_OF_KEYS = compose_details(experiments_with_related)


def _count_subquery(pairs: QuerySet[ExperimentPair]) -> Coalesce:
    """Counted for the rows that are shown, not for all that there are."""
    counts = pairs.order_by().values("experiment").annotate(number=Count("pk")).values("number")
    return Coalesce(Subquery(counts), 0)


def project_experiments(project: Project, state: str = "all", purpose: str = "") -> QuerySet[Experiment]:
    """Newest first; `state` is a key of STATES, `purpose` one of Experiment.Purpose or empty."""
    rows = Experiment.objects.filter(STATES[state], project=project).order_by("-requested_at", "-pk")
    return rows.filter(purpose=purpose) if purpose else rows


def count_by_state(project: Project, purpose: str = "") -> dict[str, int]:
    """How many each of STATES would list."""
    rows = Experiment.objects.filter(project=project)
    rows = rows.filter(purpose=purpose) if purpose else rows
    return rows.aggregate(
        **{name: Count("pk", filter=rule) if rule else Count("pk") for name, rule in STATES.items()}
    )


def active_experiments(projects: QuerySet[Project]) -> QuerySet[Experiment]:
    """Those that are being measured, then those that wait, in the order in which they are claimed."""
    rows = experiments_with_related().filter(state__in=Experiment.ACTIVE, project__in=projects)
    # What gave way has been measured before.
    began = When(state=Experiment.State.MEASURING, then=F("measuring_at"))
    return order_waiting_experiments(rows, Choose(began).desc(nulls_last=True))


def find_with_pairs(pk: int) -> Experiment | None:
    """With all that its own page names, its pairs, whether a machine of its pool lives, and stored runs."""
    return next(iter(_WITH_PAIRS.read_rows(pk=pk)), None)


def _build_with_pairs() -> QuerySet[Experiment]:
    rows = Experiment.objects.filter(pk=Parameter("pk")).select_related(
        *("project", "base_commit", "head_commit", "metric", "machine", "requested_by"),
        *("base_configuration__case", "base_configuration__pool"),
        *("head_configuration__case", "head_configuration__pool"),
        *("regression_link", "checked_case"),
    )
    annotations = {"pool_lives": pool_lives(), "has_stored_runs": _has_stored_runs()}
    return rows.annotate(**annotations).prefetch_related("pairs")


def _has_stored_runs() -> Exists:
    """Whether both sides have runs that may be compared, as `dashboard.comparisons.pairing` pairs them."""
    ended = Run.objects.filter(state=Run.State.DONE).exclude(origin=Run.Origin.SENTINEL)
    same_code = Q(configuration__version=OuterRef("configuration__version")) | ~Q(
        configuration__case__benchmark=OuterRef("configuration__case__benchmark")
    )
    of_head = ended.filter(
        same_code,
        commit=OuterRef(OuterRef("head_commit")),
        configuration__case=OuterRef(OuterRef("head_configuration__case")),
        configuration__pool=OuterRef("configuration__pool"),
        configuration__quick=OuterRef("configuration__quick"),
    )
    return Exists(
        ended.filter(
            Exists(of_head),
            commit=OuterRef("base_commit"),
            configuration__case=OuterRef("base_configuration__case"),
        )
    )


_WITH_PAIRS = CompiledQuery(_build_with_pairs)


def claim_of_experiment(experiment: Experiment) -> Claim | None:
    """The first claim that the experiment measures, where claims asked for it."""
    if experiment.purpose != Experiment.Purpose.CLAIM:
        return None
    return Claim.objects.filter(measurements__experiment=experiment).order_by("pk").first()


def pool_lives() -> Exists:
    """Whether a machine of the pool that is to measure was seen lately and takes work."""
    return Exists(
        Machine.objects.filter(
            pool=OuterRef("head_configuration__pool"),
            seen_at__gte=Now() - ALIVE_WITHIN,
            state=Machine.State.ACTIVE,
        )
    )


def experiment_under_way() -> QuerySet[Experiment]:
    """With what is said of one while it is measured; `profiled`: its functions are counted."""
    rows = experiments_with_related().annotate(pool_lives=pool_lives(), profiled=~Q(profiles={}))
    return rows.order_by()


def profiles_of_runs(experiment: Experiment) -> dict[str, dict[str, Any]]:
    """By side the functions that the newest run of its very commit and configuration counted.

    With the run's id; a side without such a run is left out.
    """
    side_of = {
        (experiment.base_commit_id, experiment.base_configuration_id): "base",
        (experiment.head_commit_id, experiment.head_configuration_id): "head",
    }
    runs = Run.objects.filter(
        commit__in={commit for commit, _ in side_of},
        configuration__in={configuration for _, configuration in side_of},
        state=Run.State.DONE,
    )
    # First the runs: to look into a document takes long.
    rows = Document.objects.filter(is_among(runs), body__profile__functions__isnull=False)
    keys = ("run__commit_id", "run__configuration_id")
    newest = rows.order_by(*keys, "run__tainted", "-run").distinct(*keys)
    found = newest.values_list(*keys, "run_id", "body__profile__functions")
    return {
        side_of[commit, configuration]: {"functions": functions, "run": run}
        for commit, configuration, run, functions in found
        if (commit, configuration) in side_of
    }


def measured_cases(project: Project) -> list[Case]:
    """The cases that were measured here: those that only a toggle made, or an import, aren't in the
    manifest."""
    runs = Run.objects.filter(configuration__case=OuterRef("pk")).exclude(origin=Run.Origin.IMPORTED)
    return list(
        Case.objects.filter(Exists(runs), project=project).order_by("benchmark", "key")[:LISTED_CASES]
    )


def offered_metrics(project: Project) -> list[tuple[str, str]]:
    """(metric, phase) of the headline series that the project has, and of the times of its phases."""
    offered = Q(headline=True) | (Q(metric__name="phase_time") & ~Q(phase=""))
    rows = Series.objects.filter(offered, configuration__case__project=project)
    names = rows.order_by("metric__name", "phase").values_list("metric__name", "phase").distinct()
    return list(names[:MOST_METRICS])
