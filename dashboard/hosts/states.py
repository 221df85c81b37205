"""What a person may do with a machine. Its host hears of it with its next heartbeat."""

from __future__ import annotations

from django.db import transaction

from dashboard import dispatch
from dashboard.hosts import broker_accounts
from dashboard.hosts.registration import requeue_held_work
from dashboard.models import Machine

State = Machine.State


def pause_machine(machine: Machine) -> None:
    """It ends what it measures, and gets nothing more until it is resumed."""
    _set_state(machine, State.PAUSED)


def drain_machine(machine: Machine) -> None:
    """As paused; besides, its agent ends once nothing is measured: before a reboot, say."""
    _set_state(machine, State.DRAINING)


def resume_machine(machine: Machine) -> None:
    _set_state(machine, State.ACTIVE)
    dispatch.wake_workers(machine.pool.name)


def retire_machine(machine: Machine) -> None:
    """Its token is good for nothing from now on, and what it held is requested again. Its history stays."""
    broker_accounts.remove_account(machine)
    with transaction.atomic():
        Machine.objects.select_for_update().get(pk=machine.pk)
        Machine.objects.filter(pk=machine.pk).update(state=State.RETIRED, token_hash="")
        requeue_held_work(machine)


def _set_state(machine: Machine, state: str) -> None:
    Machine.objects.filter(pk=machine.pk).exclude(state=State.RETIRED).update(state=state)
