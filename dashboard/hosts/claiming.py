"""What a machine measures next."""

from __future__ import annotations

import logging

from django.db import transaction

from dashboard import experiments, leases, runs
from dashboard.host_protocol import Assignment
from dashboard.models import Experiment, Machine, Run

logger = logging.getLogger(__name__)


def claim_next(machine: Machine) -> Assignment | None:
    """The machine's next experiment or run; None where nothing waits, it is paused, or it holds one."""
    with transaction.atomic():
        # Locked: whoever retires or pauses it meanwhile waits, and then finds what it holds.
        active = Machine.objects.select_for_update(of=("self",)).filter(
            pk=machine.pk, state=Machine.State.ACTIVE, token_hash=machine.token_hash
        )
        if not active.exists() or machine.is_outdated:
            return None
        # It measures one thing at a time: what it holds it has yet to hand in, or it was lost.
        if any(leases.holds_work(model, machine) for model in (Run, Experiment)):
            logger.info("%s gets nothing more before it has ended what it holds", machine)
            return None
        pool = machine.pool.name
        if runs.has_waiting_experiment(pool):
            assignment = experiments.claim_experiment(pool, machine.name)
            if assignment is not None:
                return assignment
        return runs.claim_run(pool, machine.name)
