"""The heartbeats of the service worker and the fetch worker, also while they are busy."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import Any

from celery.signals import worker_ready, worker_shutdown
from django.db import DatabaseError, InterfaceError, connection

from dashboard import dispatch, runs

logger = logging.getLogger(__name__)

INTERVAL_SECONDS = 10.0
# Of each queue the part of the site that serves it.
PARTS = {dispatch.SERVICE: "service worker", dispatch.FETCHES: "fetch worker"}
stopping = threading.Event()


@worker_ready.connect
def start_heartbeat(**_: Any) -> None:
    """In the worker's main process: a child of the pool is busy for as long as a judgement takes."""
    stopping.clear()
    served = [part for queue, part in PARTS.items() if queue in dispatch.app.amqp.queues.consume_from]
    if served:
        threading.Thread(target=send_heartbeats, args=(served,), name="heartbeat", daemon=True).start()


@worker_shutdown.connect
def stop_heartbeat(**_: Any) -> None:
    stopping.set()


def send_heartbeats(parts: Sequence[str]) -> None:
    """Until the worker ends. The database may be away for a while."""
    while True:
        try:
            for part in parts:
                runs.record_heartbeat(part)
        except (DatabaseError, InterfaceError) as error:
            logger.warning("The database can't record that this worker is alive: %s", error)
            connection.close()
        if stopping.wait(INTERVAL_SECONDS):
            connection.close()
            return
