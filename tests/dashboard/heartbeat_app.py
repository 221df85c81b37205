"""A Celery app that has nothing but its heartbeat file, touched faster than a site's."""

from __future__ import annotations

import os

from celery import Celery

from dashboard.heartbeat_file import keep_heartbeat_file

app = Celery("heartbeat", broker=os.environ["BROKER_URL"], set_as_current=False)
app.conf.beat_schedule = {"tick": {"task": "tick", "schedule": 0.2, "options": {"expires": 1}}}
keep_heartbeat_file(app, os.environ["PACELINE_HEARTBEAT_FILE"], interval=0.2)
