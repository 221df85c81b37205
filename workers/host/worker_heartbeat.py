"""The heartbeat of a worker, also while it measures and while it has nothing to do."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Collection
from typing import Any

from celery.signals import worker_init, worker_process_init, worker_ready, worker_shutdown
from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection

from dashboard import dispatch, runs
from workers.host import machine, process_reaper

logger = logging.getLogger(__name__)

INTERVAL_SECONDS = 10.0
WORKER_PROCESS = "PACELINE_WORKER_PID"
stopping = threading.Event()


@worker_init.connect
def remember_worker_process(**_: Any) -> None:
    """In the worker's main process: the pool's children inherit who their parent is, dead or alive."""
    os.environ[WORKER_PROCESS] = str(os.getpid())


@worker_process_init.connect
def end_with_worker(**_: Any) -> None:
    """A child of the pool that outlived its worker would measure on with nobody to stop it."""
    worker = int(os.environ[WORKER_PROCESS])
    # A worker without a pool is its own only process.
    if os.getpid() != worker:
        process_reaper.die_with_parent(worker)


@worker_ready.connect
def start_heartbeat(**_: Any) -> None:
    """In the worker's main process: a child of the pool is busy for as long as a run takes."""
    stopping.clear()
    senders = heartbeat_senders(dispatch.app.amqp.queues.consume_from)
    threading.Thread(target=send_heartbeats, args=(senders,), name="heartbeat", daemon=True).start()


@worker_shutdown.connect
def stop_heartbeat(**_: Any) -> None:
    stopping.set()


def heartbeat_senders(queues: Collection[str]) -> list[Callable[[], None]]:
    """What a worker of these queues tells the site, each as a call."""
    pools = [
        queue.removeprefix(prefix) for queue in queues if queue.startswith(prefix := dispatch.pool_queue(""))
    ]
    senders: list[Callable[[], None]] = [machine_heartbeat(pool) for pool in pools[:1]]
    if dispatch.SERVICE in queues:
        senders.append(lambda: runs.part_seen("service worker"))
    return senders


def machine_heartbeat(pool: str) -> Callable[[], None]:
    """A machine belongs to one pool. Its fingerprint is taken once here, and anew for every run."""
    fingerprint = machine.take_fingerprint().as_dict()
    return lambda: runs.machine_seen(settings.PACELINE_MACHINE, pool, fingerprint)


def send_heartbeats(senders: list[Callable[[], None]]) -> None:
    """Until the worker ends. The database may be away for a while."""
    while True:
        try:
            for send in senders:
                send()
        except (DatabaseError, InterfaceError) as error:
            logger.warning("The database can't be told that this worker lives: %s", error)
            connection.close()
        if stopping.wait(INTERVAL_SECONDS):
            connection.close()
            return
