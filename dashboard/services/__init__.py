"""The services that Paceline brings along: PostgreSQL, Redis, and what looks after its processes.

The settings ask this package for addresses, so importing it imports no Django and no driver.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from dashboard.services.errors import ServiceError
from dashboard.services.places import Addresses, addresses

__all__ = ["Addresses", "ServiceError", "addresses", "running"]


def running(settings: Any, tell: Callable[[str, str], None] | None = None) -> AbstractContextManager[None]:
    """`with running(django.conf.settings):` all services but the web server run; see instance.running."""
    from dashboard.services import instance
    from dashboard.services.processes import Site

    return instance.running(Site.of(settings), tell)
