"""What each process that runs tasks does before and after one: also a child of the pool.

A child is a fresh interpreter: it imports the modules of `app.conf.imports`, not that of the app. And Celery
looks after the connections of Django in the process that starts it, and nowhere else.
"""

from __future__ import annotations

from typing import Any

from celery.signals import task_postrun, task_prerun
from django.db import close_old_connections

from dashboard.dispatch import JUDGE


@task_prerun.connect
def replace_lost_connections(sender: Any = None, **_: Any) -> None:
    """A database that was away leaves a closed connection: with it every later task would fail."""
    if not sender.request.is_eager:
        close_old_connections()


@task_postrun.connect
def freeze_after_judgement(sender: Any = None, **_: Any) -> None:
    """By then everything is imported that judging needs."""
    if getattr(sender, "name", "") == JUDGE:
        from dashboard.garbage_collection import freeze_once

        freeze_once()
