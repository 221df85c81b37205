"""Which pull requests of a forge are open, as last reported: a poll reads what no webhook reported."""

from __future__ import annotations

from dataclasses import replace

from django.db import transaction

from dashboard.forges.errors import ForgeRefused
from dashboard.forges.events import Action, PullRequestEvent
from dashboard.forges.forge_api import Forge
from dashboard.forges.signals import pull_request_received
from dashboard.models import ForgeConnection, Project

OPEN_ACTIONS = (Action.OPENED, Action.UPDATED)
ENDING_ACTIONS = (Action.CLOSED, Action.MERGED)
# Of those that are no longer open so many are asked for in one look, each by a request of its own.
MOST_ENDED = 20


def note_pull_request(connection: ForgeConnection, event: PullRequestEvent) -> None:
    """Remember what a webhook reported. Called within a transaction."""
    known = locked_state(connection)
    if event.action in ENDING_ACTIONS:
        known.pop(str(event.number), None)
    elif event.action in OPEN_ACTIONS:
        known[str(event.number)] = state_of(event)
    else:
        return
    keep_state(connection, known)


def send_changes(connection: ForgeConnection, forge: Forge) -> None:
    """Tell what has changed since the last look. Asks the forge before anything is locked."""
    listed = {str(event.number): event for event in forge.list_open_pull_requests()}
    known = dict(connection.open_pull_requests)
    ended = [read_ended(forge, number) for number in list(known.keys() - listed.keys())[:MOST_ENDED]]
    for event in listed.values():
        send_open(connection, event)
    for number, found in ended:
        send_ended(connection, number, found)


def read_ended(forge: Forge, number: str) -> tuple[str, PullRequestEvent | None]:
    """How a pull request ended; None where the forge doesn't know it any more."""
    try:
        return number, forge.read_pull_request(int(number))
    except ForgeRefused as error:
        if error.status != 404:
            raise
        return number, None


def send_open(connection: ForgeConnection, event: PullRequestEvent) -> None:
    with transaction.atomic():
        known = locked_state(connection)
        before = known.get(str(event.number))
        if before == state_of(event):
            return
        known[str(event.number)] = state_of(event)
        keep_state(connection, known)
        action = Action.UPDATED if before else Action.OPENED
        send_event(connection.project, replace(event, action=action))


def send_ended(connection: ForgeConnection, number: str, event: PullRequestEvent | None) -> None:
    with transaction.atomic():
        known = locked_state(connection)
        if number not in known or (event is not None and event.action not in ENDING_ACTIONS):
            return
        del known[number]
        keep_state(connection, known)
        if event is not None:
            send_event(connection.project, event)


def send_event(project: Project, event: PullRequestEvent) -> None:
    pull_request_received.send(Project, project=project, event=event)


def state_of(event: PullRequestEvent) -> list[object]:
    """What matters for its measurements."""
    return [event.head_commit, event.base_ref, event.is_draft]


def locked_state(connection: ForgeConnection) -> dict[str, list[object]]:
    row = ForgeConnection.objects.select_for_update().only("open_pull_requests").get(pk=connection.pk)
    return dict(row.open_pull_requests)


def keep_state(connection: ForgeConnection, known: dict[str, list[object]]) -> None:
    ForgeConnection.objects.filter(pk=connection.pk).update(open_pull_requests=known)
