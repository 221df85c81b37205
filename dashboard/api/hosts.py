"""What a host says to the site: docs/hosts.md lists the calls, dashboard.host_protocol their messages."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from paceline.document import SIZE_LIMIT

from dashboard import experiments, hosts, ingest, runs
from dashboard.api.host_requests import host_call, post_only, read_body, requesting_machine
from dashboard.host_protocol import (
    Lease,
    MessageError,
    MessageFields,
    assignment_message,
    read_counted,
    read_lease,
    read_message,
    read_pair,
)
from dashboard.host_protocol.message_fields import LARGEST_KEY, LARGEST_SMALL, LONGEST_WORD
from dashboard.hosts import broker_accounts, commit_service
from dashboard.leases import LeaseLost
from dashboard.models import Experiment, Machine, Run

LEASE_HEADER = "Paceline-Lease"
MOST_PARAGRAPH = 10_000
MOST_BOX_FIELDS = 30
MOST_COSTS = 10
MOST_FINGERPRINT = 64 * 1024
LARGEST_JOIN = 64 * 1024


@post_only
def join_host(request: HttpRequest) -> HttpResponse:
    """The one call without a token: a code yields it."""
    fields = read_message(read_body(request, LARGEST_JOIN))
    joined = hosts.join_machines(fields.text("code", most=200), fields.texts("machines", most=120))
    machine_tokens = [{"machine": machine.name, "token": token} for machine, token in joined]
    return JsonResponse({"machines": machine_tokens, "pool": joined[0][0].pool.name})


@host_call
def register_host(machine: Machine, fields: MessageFields) -> dict[str, Any]:
    """An agent starts: whatever it held before died with it, but for what it kept to hand in."""
    hosts.register_machine(
        machine,
        fields.integer("protocol", most=LARGEST_SMALL),
        fields.text("version", most=60),
        fields.small_mapping("fingerprint", most=MOST_FINGERPRINT),
        fields.flat_mapping("box", most=MOST_BOX_FIELDS),
        same_agent=bool(fields.values.get("same_agent")),
    )
    hosts.requeue_held_work(machine, kept_runs=fields.integers("kept_runs"))
    return {
        "machine": machine.name,
        "pool": machine.pool.name,
        "lease_seconds": settings.PACELINE_LEASE_SECONDS,
        "broker": broker_accounts.broker_address(machine),
    }


@host_call
def keep_heartbeat(machine: Machine, fields: MessageFields) -> dict[str, Any]:
    runs.record_machine(machine.name, machine.pool.name)
    # A host of an earlier release doesn't say it.
    hosts.record_free_disk(machine, fields.optional_integer("free_bytes", most=LARGEST_KEY))
    return {"state": machine.state}


@host_call
def release_work(machine: Machine, fields: MessageFields) -> dict[str, Any]:
    """Somebody ends the agent: what it held is requested again, and no attempt is lost."""
    kept = fields.integers("kept_runs") if "kept_runs" in fields.values else []
    hosts.release_held_work(machine, kept)
    return {}


@host_call
def claim_work(machine: Machine, fields: MessageFields) -> dict[str, Any]:
    # The job keeps the machine as it is now.
    runs.record_machine(
        machine.name, machine.pool.name, fields.small_mapping("fingerprint", most=MOST_FINGERPRINT)
    )
    assignment = hosts.claim_next(machine)
    return {
        "state": machine.state,
        "assignment": assignment_message(assignment) if assignment is not None else None,
    }


@host_call
def bring_commit(machine: Machine, fields: MessageFields) -> dict[str, Any]:
    """Have the commit in the site's mirror, from where the host fetches it."""
    commit_service.bring_commit(machine, fields.text("project", most=200), fields.text("commit", most=64))
    return {}


@host_call
def advance_run(machine: Machine, fields: MessageFields) -> dict[str, Any]:
    box = fields.flat_mapping("box", most=MOST_BOX_FIELDS)
    costs = fields.durations("costs", most=MOST_COSTS)
    runs.advance_run(_held_lease(Run, machine, fields), fields.text("state", most=20), box, costs)
    return {}


@host_call
def heartbeat_run(machine: Machine, fields: MessageFields) -> dict[str, Any]:
    held = runs.heartbeat_run(
        _held_lease(Run, machine, fields),
        fields.optional_number("progress"),
        fields.printed_text("text"),
        fields.text("log"),
    )
    return {"held": held}


@host_call
def fail_run(machine: Machine, fields: MessageFields) -> dict[str, Any]:
    kind = fields.text("failure", most=20)
    if kind not in Run.Failure.values:
        raise MessageError(f"failure must be one of {', '.join(Run.Failure.values)}.")
    lease = _held_lease(Run, machine, fields)
    runs.fail_run(lease, kind, fields.printed_text("reason", most=MOST_PARAGRAPH), fields.text("log"))
    return {}


@post_only
def store_document(request: HttpRequest) -> HttpResponse:
    """The body is the document as the harness wrote it; its run's lease stands in a header."""
    machine = requesting_machine(request)
    lease = _own_lease(Run, machine, _read_lease_header(request.headers.get(LEASE_HEADER, "")))
    # One more byte than is allowed: what is too large is refused in the words of the harness.
    ingest.store_document(lease, request.read(SIZE_LIMIT + 1))
    return JsonResponse({})


@host_call
def heartbeat_experiment(machine: Machine, fields: MessageFields) -> dict[str, Any]:
    lease = _held_lease(Experiment, machine, fields)
    return {"held": experiments.heartbeat_experiment(lease, fields.printed_text("text"))}


@host_call
def add_pair(machine: Machine, fields: MessageFields) -> dict[str, Any]:
    lease = _held_lease(Experiment, machine, fields)
    pair = read_pair(fields.inside("pair"))
    return {"verdict": experiments.add_pair(lease, pair, fields.texts("commands", most=MOST_PARAGRAPH))}


@host_call
def keep_profiles(machine: Machine, fields: MessageFields) -> dict[str, Any]:
    lease = _held_lease(Experiment, machine, fields)
    documents = fields.inside("documents")
    sides = {side: read_counted(documents.inside(side)) for side in ("base", "head")}
    # A host of an earlier release says nothing of the repetition.
    repetition = fields.text("repetition", most=LONGEST_WORD) if "repetition" in fields.values else ""
    answer = experiments.keep_profiles(lease, sides, fields.duration("seconds"), repetition)
    return {"in_turns": answer.in_turns, "again": answer.again}


@host_call
def conclude_experiment(machine: Machine, fields: MessageFields) -> dict[str, Any]:
    """A host itself ends an experiment only where it can't be measured."""
    lease = _held_lease(Experiment, machine, fields)
    reason = {"code": "side failed", "text": fields.printed_text("reason", most=MOST_PARAGRAPH)}
    experiments.conclude_experiment(lease, Experiment.Verdict.UNTESTABLE, reason, fields.duration("seconds"))
    return {}


def _held_lease(model: type[Run | Experiment], machine: Machine, fields: MessageFields) -> Lease:
    return _own_lease(model, machine, read_lease(fields.inside("lease")))


def _own_lease(model: type[Run | Experiment], machine: Machine, lease: Lease) -> Lease:
    """The lease, if it is the machine's; LeaseLost where it isn't or no longer is."""
    if not model._default_manager.filter(pk=lease.key, lease=lease.token, machine=machine).exists():
        raise LeaseLost(f"{model.__name__} {lease.key} is no longer this machine's.")
    return lease


def _read_lease_header(header: str) -> Lease:
    key, attempt, token = [*header.split(" "), "", "", ""][:3]
    if not (key.isdecimal() and attempt.isdecimal() and len(key) < 19 and len(attempt) < 6):
        raise MessageError(f"{LEASE_HEADER} must be the lease's key, attempt and token.")
    return read_lease(MessageFields({"key": int(key), "attempt": int(attempt), "token": token}, LEASE_HEADER))
