"""The states of a run: request, claim, advance, heartbeat, fail, cancel, requeue. See docs/flow.md."""

from dashboard.name_lengths import LONGEST_KEY
from dashboard.runs.backfill import fill_backlog
from dashboard.runs.backlog import send_backlogs
from dashboard.runs.commits import get_or_create_commits
from dashboard.runs.errors import Busy, WrongState
from dashboard.runs.machines import pool_named, record_heartbeat, record_machine
from dashboard.runs.planning import check_benchmark_names, choose_benchmarks_named, read_commit_manifests
from dashboard.runs.remeasuring import hasten_remeasuring, remeasure_disturbed
from dashboard.runs.requests import (
    get_or_create_configurations,
    has_waiting_experiment,
    repeat_run,
    request_run,
    request_runs,
    request_sentinel_run,
)
from dashboard.runs.resolving import resolve_trigger
from dashboard.runs.sweeping import (
    send_unjudged_runs,
    send_unresolved_triggers,
    sweep_runs,
    wake_for_waiting_runs,
)
from dashboard.runs.transitions import (
    advance_run,
    cancel_run,
    cancel_runs,
    claim_run,
    fail_run,
    finish_run,
    heartbeat_run,
    held_run,
    release_runs,
    requeue_held_runs,
    requeue_lost_runs,
)

__all__ = [
    "LONGEST_KEY",
    "Busy",
    "WrongState",
    "advance_run",
    "cancel_run",
    "cancel_runs",
    "check_benchmark_names",
    "choose_benchmarks_named",
    "claim_run",
    "fail_run",
    "fill_backlog",
    "finish_run",
    "get_or_create_commits",
    "get_or_create_configurations",
    "has_waiting_experiment",
    "hasten_remeasuring",
    "heartbeat_run",
    "held_run",
    "pool_named",
    "read_commit_manifests",
    "record_heartbeat",
    "record_machine",
    "release_runs",
    "remeasure_disturbed",
    "repeat_run",
    "request_run",
    "request_runs",
    "request_sentinel_run",
    "requeue_held_runs",
    "requeue_lost_runs",
    "resolve_trigger",
    "send_backlogs",
    "send_unjudged_runs",
    "send_unresolved_triggers",
    "sweep_runs",
    "wake_for_waiting_runs",
]
