"""The Celery app with every task registered: `celery -A workers.site.app worker -Q pool.default`."""

from __future__ import annotations

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
# Django's checks import every page. A worker serves none, and each new child of the pool would wait for them.
os.environ.setdefault("CELERY_SKIP_CHECKS", "1")

from dashboard.dispatch import app

__all__ = ["app"]

app.conf.imports = ("workers.site.tasks", "workers.site.site_heartbeat", "workers.site.task_signals")
# Celery sets Django up before it imports them. A child of the pool is a fresh interpreter, and imports these
# alone.
app.loader.import_default_modules()
