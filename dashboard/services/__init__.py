"""The services that Paceline brings along: PostgreSQL, Redis, and what looks after its processes.

Imports nothing of Django and no driver, since the settings ask it for addresses.
"""

from dashboard.services.errors import ServiceError
from dashboard.services.places import Addresses, addresses

__all__ = ["Addresses", "ServiceError", "addresses"]
