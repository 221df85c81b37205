"""The site's side of its hosts: how one joins, registers, gets work, and is paused, drained or retired."""

from dashboard.hosts.claiming import claim_next
from dashboard.hosts.errors import HostRefused, JoinRefused
from dashboard.hosts.joining import create_join_code, join_machine, join_machines, local_join_code
from dashboard.hosts.registration import (
    record_free_disk,
    register_machine,
    release_held_work,
    requeue_held_work,
)
from dashboard.hosts.states import drain_machine, pause_machine, resume_machine, retire_machine
from dashboard.hosts.tokens import machine_with_token

__all__ = [
    "HostRefused",
    "JoinRefused",
    "claim_next",
    "create_join_code",
    "drain_machine",
    "join_machine",
    "join_machines",
    "local_join_code",
    "machine_with_token",
    "pause_machine",
    "record_free_disk",
    "register_machine",
    "release_held_work",
    "requeue_held_work",
    "resume_machine",
    "retire_machine",
]
