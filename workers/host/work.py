"""Claims what the machine measures next, and has it executed."""

from __future__ import annotations

import logging

from dashboard.host_protocol import Assignment, MessageError, RunAssignment
from workers.host import machine
from workers.host.configuration import HostConfiguration
from workers.host.errors import SiteAway, TokenRefused
from workers.host.executor import Executor
from workers.host.run_executor import RunExecutor, document_spool
from workers.host.site_client import SiteClient

logger = logging.getLogger(__name__)


def execute_next(configuration: HostConfiguration, client: SiteClient) -> bool:
    """Claim a run or an experiment, and execute it under the machine's lock. False: there was none."""
    with machine.lock_machine(configuration.home, configuration.identity.machine) as lock:
        if lock is None:
            return False
        try:
            document_spool(configuration).hand_in(client)
            assignment = client.claim(machine.take_fingerprint().as_dict())
        except (SiteAway, TokenRefused, MessageError) as error:
            logger.warning("No work could be asked for: %s", error)
            return False
        if assignment is None:
            return False
        logger.info("%s is claimed, attempt %s", assignment.name, assignment.attempt)
        make_executor(assignment, lock, configuration, client).execute()
        return True


def make_executor(
    assignment: Assignment, lock: int, configuration: HostConfiguration, client: SiteClient
) -> Executor:
    if isinstance(assignment, RunAssignment):
        return RunExecutor(assignment, lock, configuration, client)
    # Not above: what only experiments need would make every other run wait for its import.
    from workers.host.experiment_executor import ExperimentExecutor

    return ExperimentExecutor(assignment, lock, configuration, client)
