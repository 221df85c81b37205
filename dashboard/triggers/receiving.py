"""A trigger as it comes in: checked without a look into the repository, stored, and sent to be resolved."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db import transaction

from dashboard import dispatch, repositories
from dashboard.access import Actor, AuditAction, Visitor, record_action
from dashboard.models import Project, Trigger
from dashboard.repositories import MOST_COMMITS, RepositoryError

MOST_BENCHMARKS = 100
LONGEST_NAME = 100
LONGEST_COUNT, LONGEST_SHOWN = 6, 20


class TriggerError(Exception):
    """What was asked for can't be measured; the message is one sentence for people, about `field` if any."""

    def __init__(self, sentence: str, field: str = "") -> None:
        super().__init__(sentence)
        self.field = field


@dataclass(frozen=True, slots=True)
class TriggerOrigin:
    """What asks for runs.

    `ref`: the branch or tag that was pushed, `delivery`: the identity of a hook's request, which is received
    once, `schedule`: that of the policy whose time has come.
    """

    source: Trigger.Source
    ref: str = ""
    delivery: str | None = None
    schedule: str = ""


def parse_revisions(
    commit: str | None = None, span: str | None = None, last: int | str | None = None
) -> dict[str, Any]:
    """What a trigger's row keeps, of one of: a commit, a range A..B, the last N. {} is the newest commit."""
    given = {"commit": commit, "range": span, "last": last}
    revisions = {name: value for name, value in given.items() if value not in (None, "")}
    if len(revisions) > 1:
        *others, surplus = revisions
        how_many = "both" if len(others) == 1 else "all"
        raise TriggerError(f"Ask for one of {', '.join(others)} and {surplus}, not for {how_many}.", surplus)
    try:
        if commit:
            repositories.check_revision(commit)
        if span:
            repositories.parse_range(span)
    except RepositoryError as error:
        raise TriggerError(str(error), next(iter(revisions))) from error
    if "last" in revisions:
        revisions["last"] = _parse_last(revisions["last"])
    return revisions


def _parse_last(value: int | str) -> int:
    text = str(value)
    # Python refuses to read a number of thousands of digits.
    count = int(text) if text.isascii() and text.isdigit() and len(text) <= LONGEST_COUNT else 0
    if not 1 <= count <= MOST_COMMITS:
        raise TriggerError(
            f"The last {text[:LONGEST_SHOWN]} commits can't be measured: ask for 1 to {MOST_COMMITS}.", "last"
        )
    return count


def receive_trigger(
    project: Project,
    origin: TriggerOrigin,
    revisions: dict[str, Any],
    benchmarks: Iterable[str] = (),
    actor: Actor | None = None,
) -> Trigger:
    """Store a trigger; a worker resolves it into runs, a command does that itself.

    `actor`: who asks, for the audit log; a hook and the schedule are in the list of triggers alone.

    Raises TriggerError, and IntegrityError for a delivery that was received before.
    """
    names = list(dict.fromkeys(benchmarks))
    if len(names) > MOST_BENCHMARKS or any(len(name) > LONGEST_NAME or "\x00" in name for name in names):
        raise TriggerError("That many or that long names of benchmarks can't be right.", "benchmarks")
    with transaction.atomic():
        trigger = Trigger.objects.create(
            project=project,
            source=origin.source,
            revisions=revisions,
            benchmarks=names,
            requested_by=actor.user if isinstance(actor, Visitor) else None,
            delivery=origin.delivery,
            ref=origin.ref,
            schedule=origin.schedule,
        )
        if actor is not None:
            about = {"revisions": revisions, "benchmarks": names}
            record_action(actor, AuditAction.RUNS_REQUESTED, project, trigger, **about)
        if origin.source != Trigger.Source.COMMAND:
            dispatch.send_task(dispatch.RESOLVE, trigger.pk)
    return trigger
