"""A worker says that it lives, also while it measures and while it has nothing to do."""

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
from workers import keeper, machine

logger = logging.getLogger(__name__)

SECONDS = 10.0
PARENT = "PACELINE_WORKER_PID"
over = threading.Event()


@worker_init.connect
def name_the_worker(**_: Any) -> None:
    """In the worker's main process: the pool's children inherit who their parent is, dead or alive."""
    os.environ[PARENT] = str(os.getpid())


@worker_process_init.connect
def end_with_the_worker(**_: Any) -> None:
    """A child of the pool that outlived its worker would measure on with nobody to stop it."""
    keeper.die_with_parent(int(os.environ[PARENT]))


@worker_ready.connect
def begin(**_: Any) -> None:
    """In the worker's main process: a child of the pool is busy for as long as a run takes."""
    over.clear()
    parts = signs_of_life(dispatch.app.amqp.queues.consume_from)
    threading.Thread(target=beat, args=(parts,), name="presence", daemon=True).start()


@worker_shutdown.connect
def end(**_: Any) -> None:
    over.set()


def signs_of_life(queues: Collection[str]) -> list[Callable[[], None]]:
    """What a worker that hears these queues has to say."""
    pools = [
        queue.removeprefix(prefix) for queue in queues if queue.startswith(prefix := dispatch.pool_queue(""))
    ]
    said: list[Callable[[], None]] = [measures_for(pool) for pool in pools[:1]]
    if dispatch.SERVICE in queues:
        said.append(lambda: runs.part_seen("service worker"))
    return said


def measures_for(pool: str) -> Callable[[], None]:
    """A machine belongs to one pool. Its fingerprint is taken once here, and anew for every run."""
    fingerprint = machine.fingerprint().as_dict()
    return lambda: runs.machine_seen(settings.PACELINE_MACHINE, pool, fingerprint)


def beat(signs: list[Callable[[], None]]) -> None:
    """Until the worker ends. The database may be away for a while."""
    while True:
        try:
            for sign in signs:
                sign()
        except (DatabaseError, InterfaceError) as error:
            logger.warning("The database can't be told that this worker lives: %s", error)
            connection.close()
        if over.wait(SECONDS):
            connection.close()
            return
