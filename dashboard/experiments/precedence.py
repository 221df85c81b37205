"""What goes first on a machine: experiments before runs, but never long before what somebody waits for.

Somebody waits for what people and scripts have asked for, and for the answer to a pull request. Everything
else the site asks for by itself: proofs, bisections, claims that the policy wants measured.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, NamedTuple

from django.db.models import Exists, F, OuterRef, Q, QuerySet, Sum
from django.db.models.functions import Now

from dashboard.models import Experiment, Machine, Pool, Run
from dashboard.policy.quiet_projects import quiet_projects
from dashboard.postgresql.compiled_queries import CompiledQuery, Parameter
from dashboard.querysets.experiment_order import order_waiting_experiments

# Until a machine has measured for so long, no share of its time says anything.
GRACE_PERIOD = timedelta(minutes=20)
LOOK_BACK = timedelta(hours=24)
# What is measured again waits behind experiments; after this it counts as any other run.
MOST_HELD_UP = timedelta(hours=1)


def order_claimable(machine: Machine) -> QuerySet[Experiment]:
    """The experiments that this machine may begin with now, the first one first."""
    quiet = quiet_projects()
    work = startable_work(machine, quiet)
    waiting = requested_experiments(machine.pool_id).exclude(project__in=quiet)
    # Experiments go before history, but take a part of the machine's time at most while runs wait.
    if work.runs:
        waiting = waiting.filter(project__experiment_share__gt=spent_share(machine))
    if work.awaited_runs and had_last_turn(machine):
        waiting = waiting.filter(Experiment.IS_AWAITED)
    return order_waiting_experiments(waiting, claimable=waiting)


def must_yield(experiment: Experiment) -> bool:
    """Whether it goes on later, with the pairs that it has: the site asked for it, and somebody waits."""
    machine = experiment.machine
    if machine is None or experiment.is_awaited:
        return False
    work = startable_work(machine, quiet_projects())
    return work.awaited_runs or work.awaited_experiments


class StartableWork(NamedTuple):
    """Whether a pool's machines may begin with runs now, with what somebody waits for among them, and with
    experiments that somebody waits for. What is measured again, or for a sentinel, is none of these runs.
    """

    runs: bool
    awaited_runs: bool
    awaited_experiments: bool


def _build_startable_work() -> QuerySet[Any, Any]:
    pool = OuterRef("pk")
    due = Q(not_before=None) | Q(not_before__lte=Now())
    runs = Run.objects.filter(due, state=Run.State.REQUESTED, configuration__pool=pool)
    runs = runs.exclude(origin=Run.Origin.SENTINEL)
    runs = runs.exclude(configuration__case__project__in_array=Parameter("quiet"))
    is_history = Q(not_before=None) | Q(not_before__lte=Now() - MOST_HELD_UP)
    awaited = requested_experiments(pool).filter(Experiment.IS_AWAITED)
    return Pool.objects.filter(pk=Parameter("pool")).values_list(
        Exists(runs.filter(is_history)),
        Exists(runs.filter(Run.IS_AWAITED)),
        Exists(awaited.exclude(project__in_array=Parameter("quiet"))),
    )


_STARTABLE_WORK: CompiledQuery[Any] = CompiledQuery(_build_startable_work)


def startable_work(machine: Machine, quiet: list[int]) -> StartableWork:
    """What the machine may begin with now; nothing of projects that are `quiet`."""
    (work,) = _STARTABLE_WORK.read_values(StartableWork._make, pool=machine.pool_id, quiet=quiet)
    return work


def requested_experiments(pool: Any) -> QuerySet[Experiment]:
    return Experiment.objects.filter(state=Experiment.State.REQUESTED, head_configuration__pool=pool)


def had_last_turn(machine: Machine) -> bool:
    """Whether what the machine began last was an experiment: then it is the runs' turn."""
    last = Experiment.objects.filter(machine=machine, measuring_at__isnull=False).order_by("-measuring_at")
    began = last.values_list("measuring_at", flat=True).first()
    if began is None:
        return False
    return not Run.objects.filter(machine=machine, claimed_at__gt=began).exists()


def spent_share(machine: Machine) -> float:
    """The part of the machine's time that experiments took lately."""
    since = Now() - LOOK_BACK
    ended = Run.objects.filter(machine=machine, finished_at__gt=since, claimed_at__isnull=False)
    runs = ended.aggregate(took=Sum(F("finished_at") - F("claimed_at")))["took"] or timedelta()
    held = Experiment.objects.filter(machine=machine, measuring_at__gt=since)
    seconds = float(held.aggregate(took=Sum("seconds"))["took"] or 0.0)
    whole = runs.total_seconds() + seconds
    return 0.0 if whole < GRACE_PERIOD.total_seconds() else seconds / whole
