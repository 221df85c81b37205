"""The services that Paceline brings along: PostgreSQL, Redis, and what looks after its processes.

The settings ask this package for addresses, so importing it imports no Django and no driver.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from dashboard.services.addresses import last_port, service_addresses
from dashboard.services.errors import ServiceError

__all__ = ["ServiceError", "last_port", "running_services", "service_addresses"]


def running_services(
    settings: Any, join_code: Callable[[], str], print_line: Callable[[str, str], None] | None = None
) -> AbstractContextManager[None]:
    """Inside `with running_services(django.conf.settings, hosts.local_join_code):` all services run.

    See instance.running_services.
    """
    from dashboard.services import instance
    from dashboard.services.processes import Site

    return instance.running_services(Site.from_settings(settings), join_code, print_line)
