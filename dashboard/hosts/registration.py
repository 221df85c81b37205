"""An agent that starts says what it is; one that is too old gets one sentence and no work."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from django.db.models.functions import Now

from dashboard import experiments, runs
from dashboard.host_protocol import OLDEST_PROTOCOL, PROTOCOL
from dashboard.host_protocol.free_disk import LEAST_FREE_BYTES
from dashboard.hosts.errors import HostRefused
from dashboard.models import Machine


def register_machine(
    machine: Machine,
    protocol: int,
    version: str,
    fingerprint: Mapping[str, Any],
    box: Mapping[str, Any] | None = None,
    *,
    same_agent: bool = False,
) -> None:
    """Keep what the host is. HostRefused where this site can't work with its agent.

    `same_agent`: only its worker begins anew.
    """
    Machine.objects.filter(pk=machine.pk).update(
        protocol=protocol,
        agent_version=version[:60],
        fingerprint=dict(fingerprint),
        box=box,
        seen_at=Now(),
    )
    if protocol < OLDEST_PROTOCOL:
        raise HostRefused(
            f"This host's agent ({version}) speaks protocol {protocol}; the site needs {OLDEST_PROTOCOL} or "
            "newer: update the host."
        )
    if protocol > PROTOCOL:
        raise HostRefused(
            f"This host's agent ({version}) speaks protocol {protocol}, the site only {PROTOCOL}: "
            "update the site first."
        )
    if not same_agent:
        # A drained one has ended and been started again: whoever drained it is through.
        drained = Machine.objects.filter(pk=machine.pk, state=Machine.State.DRAINING)
        drained.update(state=Machine.State.ACTIVE)


def record_free_disk(machine: Machine, free_bytes: int | None) -> None:
    """Keep how much its disk has left where that is too little; else that it is enough, or isn't known."""
    too_little = free_bytes if free_bytes is not None and free_bytes < LEAST_FREE_BYTES else None
    if too_little != machine.too_few_bytes:
        Machine.objects.filter(pk=machine.pk).update(too_few_bytes=too_little)


def requeue_held_work(machine: Machine, kept_runs: Collection[int] = ()) -> int:
    """Request again what the machine held, since it died with it: an attempt each, as a lost lease costs.

    But for the runs whose documents it has kept, and is about to hand in. How many.
    """
    return runs.requeue_held_runs(machine.name, kept_runs) + experiments.requeue_held_experiments(
        machine.name
    )


def release_held_work(machine: Machine, kept_runs: Collection[int] = ()) -> int:
    """As `requeue_held_work`, since somebody ended its agent: no attempt is lost. How many."""
    return runs.release_runs(machine.name, kept_runs) + experiments.release_experiments(machine.name)
