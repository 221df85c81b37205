"""Once the site is back, hosts that measured on get time to say so before anything is requeued."""

from __future__ import annotations

import logging
import threading
from datetime import timedelta

from django.db import DatabaseError, InterfaceError, connection
from django.db.models.functions import Now

from dashboard import leases, runs
from dashboard.models import Experiment, Heartbeat, Run

logger = logging.getLogger(__name__)

WEB, SWEEP = "web", "sweep"
HEARTBEAT_SECONDS = 10.0
# Three times as long as either beats: a shorter silence is none.
OUTAGE_SILENCE = timedelta(seconds=30)


def grant_grace() -> bool:
    """Renew all leases where hosts couldn't; True where the site was, or still is, away. For each sweep.

    Without the web server no host gets a heartbeat through; without the sweep, which beats here, neither it
    nor the database may have been there.
    """
    silent = Heartbeat.objects.filter(name__in=(WEB, SWEEP), seen_at__lt=Now() - OUTAGE_SILENCE)
    parts = sorted(silent.values_list("name", flat=True))
    if parts:
        logger.warning("Silent for too long: %s. Hosts get time to renew what they hold", " and ".join(parts))
        for model in (Run, Experiment):
            leases.renew_all(model)
    runs.record_heartbeat(SWEEP)
    return bool(parts)


def start_web_heartbeat() -> None:
    """In each process of the web server: a thread that says that it lives."""
    threading.Thread(target=keep_web_heartbeat, name="heartbeat", daemon=True).start()


def keep_web_heartbeat() -> None:
    pause = threading.Event()
    while True:
        try:
            runs.record_heartbeat(WEB)
        except (DatabaseError, InterfaceError) as error:
            logger.warning("The database can't record that the web server is alive: %s", error)
        finally:
            connection.close()
        pause.wait(HEARTBEAT_SECONDS)
