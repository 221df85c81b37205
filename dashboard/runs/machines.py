"""Who is there to measure, and which other parts of the site live."""

from __future__ import annotations

from typing import Any

from django.db.models.functions import Now

from dashboard.models import Heartbeat, Machine, Pool


def pool_named(name: str) -> Pool:
    return Pool.objects.get_or_create(name=name)[0]


def record_machine(name: str, pool: str, fingerprint: dict[str, Any] | None = None) -> None:
    """A worker on machine `name` lives and measures for `pool`; `fingerprint` is the hardware and system."""
    values: dict[str, Any] = {"pool": pool_named(pool), "seen_at": Now()}
    if fingerprint is not None:
        values["fingerprint"] = fingerprint
    Machine.objects.update_or_create(name=name, defaults=values)


def record_heartbeat(name: str) -> None:
    """A part of the site that is no machine lives: `scheduler`, `service worker`, `fetch worker`."""
    Heartbeat.objects.update_or_create(name=name, defaults={"seen_at": Now()})
