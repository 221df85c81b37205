"""The states of a run: request, claim, advance, heartbeat, fail, cancel, requeue. See docs/flow.md."""

from dashboard.runs.assignment import Assignment
from dashboard.runs.commits import known
from dashboard.runs.errors import Busy, LeaseLost, RunError, WrongState
from dashboard.runs.machines import machine_seen, part_seen
from dashboard.runs.requests import confirmation_waits, measure_sentinel, repeat, request, request_all
from dashboard.runs.resolving import resolve_trigger
from dashboard.runs.sweeping import release, requeue_lost, ring_waiting, send_unjudged, send_unresolved, sweep
from dashboard.runs.transitions import advance, cancel, claim, fail, finish, heartbeat, held

__all__ = [
    "Assignment",
    "Busy",
    "LeaseLost",
    "RunError",
    "WrongState",
    "advance",
    "cancel",
    "claim",
    "confirmation_waits",
    "fail",
    "finish",
    "heartbeat",
    "held",
    "known",
    "machine_seen",
    "measure_sentinel",
    "part_seen",
    "release",
    "repeat",
    "request",
    "request_all",
    "requeue_lost",
    "resolve_trigger",
    "ring_waiting",
    "send_unjudged",
    "send_unresolved",
    "sweep",
]
