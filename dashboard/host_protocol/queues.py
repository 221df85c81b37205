"""The queues of pools and machines, whose messages wake hosts, and the settings of each Celery app."""

from __future__ import annotations

from typing import Any

MEASURE = "workers.measure"

CONFIGURATION: dict[str, Any] = {
    "accept_content": ["json"],
    "task_serializer": "json",
    "result_backend": None,
    "task_ignore_result": True,
    "task_acks_late": False,
    "worker_prefetch_multiplier": 1,
    # A worker takes a message only when it can start it: its neighbour may be idle.
    "worker_disable_prefetch": True,
    # A forked child hangs where its parent has run a torch operation.
    "worker_pool_start_method": "spawn",
    "worker_hijack_root_logger": False,
    "broker_connection_retry_on_startup": True,
    "broker_connection_timeout": 2,
}
REDIS_OPTIONS: dict[str, Any] = {
    # Of no consequence for correctness: a message delivered twice finds nothing to claim.
    "visibility_timeout": 3600,
    # Kombu's own values let a restarted worker wait up to 100 s for what the dead one had taken.
    "unacked_restore_interval": 1,
    "unacked_restore_throttle": 1,
    "socket_connect_timeout": 2,
    "socket_timeout": 5,
    "socket_keepalive": True,
}


def pool_queue(pool: str) -> str:
    return f"pool.{pool}"


def machine_queue(machine: str) -> str:
    return f"machine.{machine}"


# Where kombu keeps which queues an exchange leads to.
BINDINGS = ("_kombu.binding", "_kombu.binding_permanent")


def unacknowledged_keys(machine: str) -> dict[str, str]:
    """Where a host's Redis transport keeps the messages that it has taken, apart from everybody else's."""
    return {
        "unacked_key": f"unacked.{machine}",
        "unacked_index_key": f"unacked_index.{machine}",
        "unacked_mutex_key": f"unacked_mutex.{machine}",
    }


def host_transport_options(machine: str) -> dict[str, Any]:
    return {**REDIS_OPTIONS, **unacknowledged_keys(machine)}


def host_keys(pool: str, machine: str) -> list[str]:
    """All keys of Redis that a host's transport reads or writes, as patterns of an access control list."""
    own = [pool_queue(pool), machine_queue(machine)]
    bindings = [f"{name}.{queue}" for name in BINDINGS for queue in own]
    literal = [*own, *bindings, *unacknowledged_keys(machine).values()]
    # After these two characters stands the priority.
    return [*map(_escape_pattern, literal), *(f"{_escape_pattern(queue)}\x06\x16*" for queue in own)]


def _escape_pattern(text: str) -> str:
    return "".join(f"\\{character}" if character in "*?[]^-\\" else character for character in text)
