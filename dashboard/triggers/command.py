"""A trigger of the command line: resolved at once, while whoever typed it waits."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from dashboard import runs
from dashboard.access import command_account
from dashboard.models import Project, Trigger
from dashboard.triggers.receiving import TriggerError, TriggerOrigin, receive_trigger

BUSY_TIMEOUT = 120.0


def create_command_trigger(
    project: Project, revisions: dict[str, Any], benchmarks: Iterable[str] = (), *, quick: bool = False
) -> tuple[Trigger, list[int]]:
    """A trigger of the command line and the ids of its runs, which whoever typed it waits for.

    `revisions` come from `parse_revisions`. TriggerError says why it was refused. Call it with `quick` inside
    a transaction: a trigger that the sweep can see becomes standard runs there.
    """
    origin = TriggerOrigin(Trigger.Source.COMMAND)
    trigger = receive_trigger(project, origin, revisions, benchmarks, command_account())
    ids = resolve_or_refuse(trigger, quick)
    trigger.refresh_from_db()
    if trigger.state == Trigger.State.REFUSED:
        raise TriggerError(trigger.detail)
    return trigger, ids


def resolve_or_refuse(trigger: Trigger, quick: bool) -> list[int]:
    """The ids of the runs; TriggerError once the project has been busy for BUSY_TIMEOUT seconds."""
    deadline = time.monotonic() + BUSY_TIMEOUT
    while True:
        try:
            return runs.resolve_trigger(trigger.pk, quick=quick)
        except runs.Busy as error:
            if time.monotonic() > deadline:
                Trigger.objects.filter(pk=trigger.pk, state=Trigger.State.RECEIVED).update(
                    state=Trigger.State.REFUSED, detail=str(error)
                )
                raise TriggerError(f"{error} Try again later.") from error
            time.sleep(0.5)
