"""A bell is heard: take what waits for this machine's pool, if there is something and the machine is free."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Protocol, TypeVar

from django.conf import settings

from dashboard import runs
from workers import machine

logger = logging.getLogger(__name__)


class Job(Protocol):
    """What was claimed, as logs name it."""

    @property
    def name(self) -> str: ...

    @property
    def attempt(self) -> int: ...


JobType = TypeVar("JobType", bound=Job)


def answer(
    pool: str, claim: Callable[[str, str], JobType | None], carry: Callable[[JobType, int], None]
) -> bool:
    """Claim a job and carry it out under the machine's lock, whose descriptor `carry` gets. False: none."""
    name = settings.PACELINE_MACHINE
    with machine.exclusive(settings.PACELINE_HOME, name) as lock:
        if lock is None:
            return False
        # The job keeps the machine as it is now.
        runs.machine_seen(name, pool, machine.fingerprint().as_dict())
        job = claim(pool, name)
        if job is None:
            return False
        logger.info("%s is claimed, attempt %s", job.name, job.attempt)
        carry(job, lock)
        return True
