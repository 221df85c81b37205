"""The service worker's heartbeat, also while its children are busy."""

from __future__ import annotations

import logging
import threading
from typing import Any

from celery.signals import worker_ready, worker_shutdown
from django.db import DatabaseError, InterfaceError, connection

from dashboard import dispatch, runs

logger = logging.getLogger(__name__)

INTERVAL_SECONDS = 10.0
stopping = threading.Event()


@worker_ready.connect
def start_heartbeat(**_: Any) -> None:
    """In the worker's main process: a child of the pool is busy for as long as a judgement takes."""
    stopping.clear()
    if dispatch.SERVICE in dispatch.app.amqp.queues.consume_from:
        threading.Thread(target=send_heartbeats, name="heartbeat", daemon=True).start()


@worker_shutdown.connect
def stop_heartbeat(**_: Any) -> None:
    stopping.set()


def send_heartbeats() -> None:
    """Until the worker ends. The database may be away for a while."""
    while True:
        try:
            runs.part_seen("service worker")
        except (DatabaseError, InterfaceError) as error:
            logger.warning("The database can't be told that this worker lives: %s", error)
            connection.close()
        if stopping.wait(INTERVAL_SECONDS):
            connection.close()
            return
