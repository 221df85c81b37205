"""The Celery app with every task registered: `celery -A workers.site.app worker -Q pool.default`."""

from __future__ import annotations

import os
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
# Django's checks import every page. A worker serves none, and each new child of the pool would wait for them.
os.environ.setdefault("CELERY_SKIP_CHECKS", "1")

from celery.signals import task_postrun

from dashboard.dispatch import JUDGE, app

__all__ = ["app"]

app.conf.imports = ("workers.site.tasks", "workers.site.site_heartbeat")
# Celery sets Django up before it imports them. A child of the pool is a fresh interpreter and comes here too.
app.loader.import_default_modules()


@task_postrun.connect
def freeze_after_judgement(sender: Any = None, **_: Any) -> None:
    """By then everything is imported that judging needs."""
    if getattr(sender, "name", "") == JUDGE:
        from dashboard.garbage_collection import freeze_once

        freeze_once()
