"""What a machine measures next."""

from __future__ import annotations

from dashboard import experiments, runs
from dashboard.host_protocol import Assignment
from dashboard.models import Machine


def claim_next(machine: Machine) -> Assignment | None:
    """The machine's next experiment or run; None where nothing waits, or it is paused."""
    if machine.state != Machine.State.ACTIVE or machine.is_outdated:
        return None
    pool = machine.pool.name
    if runs.experiment_waits(pool):
        assignment = experiments.claim_experiment(pool, machine.name)
        if assignment is not None:
            return assignment
    return runs.claim_run(pool, machine.name)
