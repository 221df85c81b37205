"""How a regression stands, and what a channel that was notified of it gets now. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dashboard.models import Delivery, Regression

Event, ReportedState = Delivery.Event, Delivery.ReportedState

# How a regression that has ended stands, and the messages that close what an earlier one opened.
ENDED = (ReportedState.RECOVERED, ReportedState.WITHDRAWN, ReportedState.CLOSED)
ENDING_EVENTS = (Event.RECOVERED, Event.WITHDRAWN, Event.CLOSED, Event.CLAIM_HOLDS)


@dataclass(frozen=True, slots=True)
class SentMessage:
    """A message about the regression that the channel has got, or will."""

    event: str
    reported_state: str
    round: int


@dataclass(frozen=True, slots=True)
class NextMessage:
    event: str
    reported_state: str
    round: int


def reported_state(regression: Regression) -> str:
    """One of ReportedState; NOTHING while nothing can be said for sure."""
    not_real = regression.triaged == Regression.Triaged.NOT_REAL
    if regression.withdrawn_at or not_real or regression.state == Regression.State.REFUTED:
        return ReportedState.WITHDRAWN
    if regression.recovered_by_id:
        return ReportedState.RECOVERED
    if regression.is_triaged_away:
        return ReportedState.CLOSED
    if regression.state == Regression.State.CONFIRMED:
        return ReportedState.NOTHING if regression.proving else ReportedState.CONFIRMED
    return (
        ReportedState.SUSPECTED if regression.state == Regression.State.SUSPECTED else ReportedState.NOTHING
    )


def next_message(
    sent: Sequence[SentMessage], reported: str, *, suspicions: bool, keeps_incidents: bool
) -> NextMessage | None:
    """What has changed since the newest of what a channel was sent; None where nothing worth a message has.

    `sent` in the order of its making; empty: it was sent nothing, and hears of it only when it opens.
    """
    if not sent or reported == ReportedState.NOTHING:
        return None
    before, newest_round = sent[-1].reported_state, max(message.round for message in sent)
    if reported == ReportedState.CLOSED and not keeps_incidents:
        return None
    if reported in ENDED:
        return None if before in ENDED else NextMessage(_ending_event(reported), reported, newest_round)
    if reported == ReportedState.SUSPECTED and not suspicions:
        return None
    if before in ENDED:
        return NextMessage(Event.REOPENED, reported, newest_round + 1)
    if (before, reported) == (ReportedState.SUSPECTED, ReportedState.CONFIRMED):
        return NextMessage(Event.CONFIRMED, reported, newest_round)
    return None


def _ending_event(reported: str) -> str:
    return {
        ReportedState.RECOVERED: Event.RECOVERED,
        ReportedState.WITHDRAWN: Event.WITHDRAWN,
        ReportedState.CLOSED: Event.CLOSED,
    }[ReportedState(reported)]


def is_still_true(event: str, reported: str) -> bool:
    """Whether a message that waits still says what is so; else it is dropped, and a newer one takes over."""
    if event in (Event.OPENED, Event.CONFIRMED, Event.REOPENED, Event.REMINDER):
        return reported not in (ReportedState.WITHDRAWN, ReportedState.CLOSED)
    return reported == {
        Event.RECOVERED: ReportedState.RECOVERED,
        Event.WITHDRAWN: ReportedState.WITHDRAWN,
        Event.CLOSED: ReportedState.CLOSED,
    }.get(Event(event), reported)
