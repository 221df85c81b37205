"""A file that a worker or the scheduler touches while it works: the cheapest probe of a process.

A probe looks at its age. Asking a worker over the queue (`celery inspect`) would import the site for seconds
each time. Without Django, for hosts too.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from celery import Celery, bootsteps
from celery.signals import after_task_publish, beat_init

logger = logging.getLogger(__name__)

INTERVAL_SECONDS = 10.0


def keep_heartbeat_file(app: Celery, path: str, interval: float = INTERVAL_SECONDS) -> None:
    """Have the app's worker, or its scheduler, touch the file; nothing where `path` is empty."""
    if not path:
        return
    app.conf.heartbeat_file, app.conf.heartbeat_interval = path, interval
    app.steps["worker"].add(WorkerHeartbeatFile)

    # Held by nobody else.
    @beat_init.connect(weak=False)
    def watch_scheduler(**_: Any) -> None:
        # Sending is all that it does, so a message that got through is the sign.
        after_task_publish.connect(lambda **_: touch_file(Path(path)), weak=False)


class WorkerHeartbeatFile(bootsteps.StartStopStep):
    """Touches the file again and again, from the loop that takes messages: if that hangs, it ages."""

    requires = ("celery.worker.components:Timer",)

    def __init__(self, worker: Any, **options: Any) -> None:
        super().__init__(worker, **options)
        self.path = Path(worker.app.conf.heartbeat_file)
        self.interval: float = worker.app.conf.heartbeat_interval
        self.entry: Any = None

    def start(self, worker: Any) -> None:
        touch_file(self.path)
        self.entry = worker.timer.call_repeatedly(self.interval, touch_file, (self.path,))

    def stop(self, _worker: Any) -> None:
        if self.entry is not None:
            self.entry.cancel()


def touch_file(path: Path) -> None:
    """Make the file's time the present. A probe finds out where that fails; the work goes on."""
    try:
        path.touch()
    except OSError as error:
        logger.warning("%s can't be touched: %s", path, error.strerror)
