"""The Celery app of a host, free of Django: the agent starts `celery -A workers.host.app worker`."""

from __future__ import annotations

import logging
import os
import threading
import time
from pathlib import Path
from typing import Any

from celery import Celery
from celery.signals import setup_logging, worker_init, worker_process_init, worker_ready

from dashboard.heartbeat_file import keep_heartbeat_file
from dashboard.host_protocol import queues
from workers.host import next_job
from workers.host.configuration import configure_logging, load_configuration
from workers.host.processes import reaper
from workers.host.site_api.client import SiteClient

HOME_VARIABLE = "PACELINE_HOST_HOME"
SLOT_VARIABLE = "PACELINE_HOST_SLOT"
AGENT_VARIABLE = "PACELINE_AGENT_PID"
WORKER_VARIABLE = "PACELINE_WORKER_PID"
# Where no broker can be reached, messages come from this process itself.
OWN_BROKER = "memory://"
ASKING_SECONDS = 2.0
STARTING_SECONDS = 60.0

configuration = load_configuration(Path(os.environ[HOME_VARIABLE]), os.environ.get(SLOT_VARIABLE, ""))
client = SiteClient.of_identity(configuration.identity)
broker = configuration.registration.broker or OWN_BROKER
queue = queues.pool_queue(configuration.registration.pool)

# A message is only a bell; what comes of it `next_job` says.
for name in ("celery.worker.strategy", "celery.app.trace", "celery.pool"):
    logging.getLogger(name).setLevel(logging.WARNING)

app = Celery("paceline-host", broker=broker, set_as_current=False)
app.conf.update(
    {
        **queues.CONFIGURATION,
        "task_default_queue": queue,
        # Its account on the broker has none of the keys that these would take.
        "worker_enable_remote_control": False,
        # A broker that came back has forgotten the account: this worker ends, and its agent registers anew.
        "broker_connection_max_retries": 5,
        "broker_transport_options": queues.host_transport_options(configuration.identity.machine)
        if broker != OWN_BROKER
        else {},
    }
)
app.set_default()


keep_heartbeat_file(app, os.environ.get("PACELINE_HEARTBEAT_FILE", ""))


@setup_logging.connect
def configure_logs(**_: Any) -> None:
    """As the agent's own lines; connected, so that Celery leaves them alone."""
    configure_logging(os.environ)


@app.task(name=queues.MEASURE)
def measure_next(_pool: str) -> None:
    """Execute what waits, one after the other, until nothing does."""
    while next_job.execute_next(configuration, client):
        pass


@worker_init.connect
def end_with_agent(**_: Any) -> None:
    """In the worker's main process: without its agent nobody would say that this host lives."""
    if agent := os.environ.get(AGENT_VARIABLE):
        reaper.die_with_parent(int(agent))
    os.environ[WORKER_VARIABLE] = str(os.getpid())


@worker_process_init.connect
def end_with_worker(**_: Any) -> None:
    """A child of the pool that outlived its worker would measure on with nobody to stop it."""
    worker = int(os.environ[WORKER_VARIABLE])
    # A worker without a pool is its own only process.
    if os.getpid() != worker:
        reaper.die_with_parent(worker)


@worker_ready.connect
def begin_working(**_: Any) -> None:
    """What waited while nobody was here has no message."""
    asking = threading.Thread(target=ask_for_work, name="asking", daemon=True)
    asking.start()


def ask_for_work() -> None:
    """Once where a broker wakes this host, else again and again."""
    while True:
        # One that waits behind a measurement is worth nothing once that is over: it asks by itself.
        expires = ASKING_SECONDS if broker == OWN_BROKER else STARTING_SECONDS
        measure_next.apply_async((configuration.registration.pool,), queue=queue, expires=expires)
        if broker != OWN_BROKER:
            return
        time.sleep(ASKING_SECONDS)
