"""What the policy wants measured and nothing has begun follows the branch: the newest commit is what counts.

Else each commit would wait behind those before it, and where claims get less time than commits ask for no
verdict would ever be about the present code.
"""

from __future__ import annotations

from django.db.models import Q
from django.utils import timezone

from dashboard import experiments
from dashboard.models import ClaimMeasurement, Commit, Experiment

State, Requester = ClaimMeasurement.State, ClaimMeasurement.Requester
NEWER_COMMIT = {"code": "newer commit"}


def follow_to_commit(benchmark: str, commit: Commit) -> dict[int, ClaimMeasurement]:
    """By claim the measurement of an older commit that is to be of this one, with its place in the line.

    Of a benchmark's claims, called within a transaction; what it returns has no experiment and isn't saved.
    What a person or a script has asked for stays, and so does what has a pair or is being measured.
    """
    waiting = ClaimMeasurement.objects.filter(
        claim__project=commit.project_id,
        claim__benchmark=benchmark,
        state=State.REQUESTED,
        requester=Requester.POLICY,
        commit__branch=commit.branch,
        commit__position__lt=commit.position,
    )
    held = waiting.filter(experiment__isnull=False).values("experiment")
    not_started = Experiment.objects.filter(pk__in=held, state=Experiment.State.REQUESTED, pairs=None)
    keys = set(not_started.select_for_update(of=("self",)).values_list("pk", flat=True))
    others = ~Q(requester=Requester.POLICY) | Q(commit__position__gte=commit.position)
    shared = ClaimMeasurement.objects.filter(others, state=State.REQUESTED, experiment__in=keys)
    keys -= set(shared.values_list("experiment", flat=True))
    kept: dict[int, ClaimMeasurement] = {}
    older = waiting.filter(Q(experiment=None) | Q(experiment__in=keys)).select_for_update(of=("self",))
    for measurement in older.order_by("requested_at", "pk"):
        measurement.experiment = None
        if measurement.claim_id not in kept:
            kept[measurement.claim_id] = measurement
        else:
            cancel_superseded(measurement)
    experiments.cancel_experiments(Experiment.objects.filter(pk__in=keys), NEWER_COMMIT)
    return kept


def cancel_superseded(measurement: ClaimMeasurement) -> None:
    measurement.state, measurement.reason = State.CANCELLED, dict(NEWER_COMMIT)
    measurement.measured_at, measurement.experiment = timezone.now(), None
    measurement.save(update_fields=["state", "reason", "measured_at", "experiment"])
