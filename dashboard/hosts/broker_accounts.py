"""A host's account on the broker: it may take messages of its own queues, and do nothing else there.

Redis alone has such accounts that the site can make (access control lists, Redis 6). Where none can be had,
a host asks for work instead of being woken.
"""

from __future__ import annotations

import logging
from urllib.parse import quote, urlsplit, urlunsplit

import redis
from django.conf import settings

from dashboard.host_protocol.queues import host_keys
from dashboard.hosts.tokens import make_token
from dashboard.models import Machine

logger = logging.getLogger(__name__)

SCHEMES = ("redis", "rediss", "redis+socket")
# Whatever kombu does, with the keys that are the host's own; nothing that tells of others.
COMMANDS = ("+@all", "-@admin", "-@dangerous", "-@pubsub", "-scan", "-randomkey", "-dbsize", "+info")


def broker_address(machine: Machine) -> str | None:
    """The broker's address with an account of the machine's own, made anew; None where there can't be one."""
    address: str = settings.PACELINE_HOSTS_BROKER_URL
    if not address:
        return None
    parts = urlsplit(address)
    if parts.scheme not in SCHEMES:
        return None
    # Of the token: several sites may share a broker.
    user, password = f"paceline-host-{machine.token_hash[:16]}", make_token("bell")
    keys = [f"~{pattern}" for pattern in host_keys(machine.pool.name, machine.name)]
    try:
        with redis.Redis.from_url(settings.BROKER_URL.replace("redis+socket", "unix", 1)) as broker:
            rules = ["reset", "on", f">{password}", *keys, "resetchannels", "-@all", *COMMANDS]
            broker.execute_command("ACL", "SETUSER", user, *rules)
    except redis.RedisError as error:
        logger.warning("No account for %s could be made on the broker: %s", machine, error)
        return None
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{user}:{quote(password)}@{host}"))
