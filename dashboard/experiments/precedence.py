"""What goes first on a machine: experiments before runs, but never long before what somebody waits for.

Somebody waits for what people and scripts have asked for, and for the answer to a pull request. Everything
else the site asks for by itself: proofs, bisections, claims that the policy wants measured.
"""

from __future__ import annotations

from datetime import timedelta

from django.db.models import F, Q, QuerySet, Sum
from django.db.models.functions import Now

from dashboard.models import Experiment, Machine, Run
from dashboard.policy.quiet_projects import quiet_projects
from dashboard.querysets.experiment_order import order_waiting_experiments

# Until a machine has measured for so long, no share of its time says anything.
GRACE_PERIOD = timedelta(minutes=20)
LOOK_BACK = timedelta(hours=24)
# What is measured again waits behind experiments; after this it counts as any other run.
MOST_HELD_UP = timedelta(hours=1)


def order_claimable(machine: Machine) -> QuerySet[Experiment]:
    """The experiments that this machine may begin with now, the first one first."""
    # Experiments go before history, but take a part of the machine's time at most while runs wait.
    waiting = Experiment.objects.filter(
        state=Experiment.State.REQUESTED, head_configuration__pool=machine.pool_id
    )
    is_history = Q(not_before=None) | Q(not_before__lte=Now() - MOST_HELD_UP)
    if due_runs(machine).filter(is_history).exists():
        waiting = waiting.filter(project__experiment_share__gt=spent_share(machine))
    waiting = waiting.exclude(project__in=quiet_projects())
    if awaited_runs(machine).exists() and had_last_turn(machine):
        waiting = waiting.filter(Experiment.IS_AWAITED)
    return order_waiting_experiments(waiting, claimable=waiting)


def must_yield(experiment: Experiment) -> bool:
    """Whether it goes on later, with the pairs that it has: the site asked for it, and somebody waits."""
    machine = experiment.machine
    if machine is None or experiment.is_awaited:
        return False
    waiting = Experiment.objects.filter(
        Experiment.IS_AWAITED, state=Experiment.State.REQUESTED, head_configuration__pool=machine.pool_id
    )
    return awaited_runs(machine).exists() or waiting.exclude(project__in=quiet_projects()).exists()


def awaited_runs(machine: Machine) -> QuerySet[Run]:
    """Requested runs that somebody waits for, and that this machine may measure now."""
    return due_runs(machine).filter(Run.IS_AWAITED)


def due_runs(machine: Machine) -> QuerySet[Run]:
    """Requested runs of the machine's pool whose time has come; for a sentinel nobody waits."""
    due = Q(not_before=None) | Q(not_before__lte=Now())
    waiting = Run.objects.filter(due, state=Run.State.REQUESTED, configuration__pool=machine.pool_id)
    if quiet := quiet_projects():
        waiting = waiting.exclude(configuration__case__project__in=quiet)
    return waiting.exclude(origin=Run.Origin.SENTINEL)


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
