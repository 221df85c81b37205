"""Claims what the machine measures next, and has it executed."""

from __future__ import annotations

import logging

from dashboard import structured_logs
from dashboard.host_protocol import Assignment, MessageError, RunAssignment
from dashboard.host_protocol.free_disk import LEAST_FREE_BYTES
from workers.host import machine
from workers.host.configuration import HostConfiguration
from workers.host.disk_budget import enforce_disk_budget
from workers.host.errors import SiteAway, TokenRefused
from workers.host.execution.executor import Executor
from workers.host.execution.run_executor import RunExecutor, document_spool
from workers.host.site_api.client import SiteClient

logger = logging.getLogger(__name__)


def execute_next(configuration: HostConfiguration, client: SiteClient) -> bool:
    """Claim a run or an experiment, and execute it under the machine's lock. False: there was none."""
    with machine.lock_machine(configuration.home, configuration.identity.machine) as lock:
        if lock is None:
            return False
        try:
            document_spool(configuration).hand_in(client)
            if is_disk_full(configuration):
                return False
            assignment = client.claim(machine.take_fingerprint().as_dict())
        except (SiteAway, TokenRefused, MessageError) as error:
            logger.warning("No work could be asked for: %s", error)
            return False
        if assignment is None:
            return False
        kind = "run" if isinstance(assignment, RunAssignment) else "experiment"
        with structured_logs.log_context(**{kind: assignment.lease.key}):
            logger.info("%s is claimed, attempt %s", assignment.name, assignment.attempt)
            make_executor(assignment, lock, configuration, client).execute()
            free_disk(configuration)
        return True


def is_disk_full(configuration: HostConfiguration) -> bool:
    free = machine.free_disk_bytes(configuration.home)
    if free < LEAST_FREE_BYTES:
        sizes = free // 2**20, LEAST_FREE_BYTES // 2**20
        logger.warning(
            "No work is asked for: the disk of %s has %d MiB left of the %d that are needed",
            configuration.home,
            *sizes,
        )
    return free < LEAST_FREE_BYTES


def free_disk(configuration: HostConfiguration) -> None:
    """Remove what is longest unused, where the owner has set a limit. The machine is still ours."""
    budget = configuration.owner.disk_bytes
    if budget is None:
        return
    try:
        enforce_disk_budget(configuration.home, budget, configuration.identity.machine)
    except OSError as error:
        logger.warning("What this host keeps on disk can't be listed: %s", error)


def make_executor(
    assignment: Assignment, lock: int, configuration: HostConfiguration, client: SiteClient
) -> Executor:
    if isinstance(assignment, RunAssignment):
        return RunExecutor(assignment, lock, configuration, client)
    # Not above: what only experiments need would make every other run wait for its import.
    from workers.host.execution.experiment_executor import ExperimentExecutor

    return ExperimentExecutor(assignment, lock, configuration, client)
