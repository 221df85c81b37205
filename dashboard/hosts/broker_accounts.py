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
from dashboard.models import Machine
from dashboard.secrets.tokens import make_token

logger = logging.getLogger(__name__)

SCHEMES = ("redis", "rediss", "redis+socket")
# Whatever kombu does, with the keys that are the host's own; nothing that tells of others.
COMMANDS = ("-@all", "+@all", "-@admin", "-@dangerous", "-@pubsub", "-scan", "-randomkey", "-dbsize", "+info")


def broker_address(machine: Machine) -> str | None:
    """The broker's address with an account of the machine's own, made anew; None where there can't be one."""
    address: str = settings.PACELINE_HOSTS_BROKER_URL
    if not address:
        return None
    parts = urlsplit(address)
    if parts.scheme not in SCHEMES:
        return None
    user, password = account_name(machine), make_token("bell")
    keys = [f"~{pattern}" for pattern in host_keys(machine.pool.name, machine.name)]
    if not change_broker_accounts(
        "SETUSER", user, "reset", "on", f">{password}", *keys, "resetchannels", *COMMANDS
    ):
        return None
    host = parts.netloc.rpartition("@")[2]
    return str(urlunsplit(parts._replace(netloc=f"{user}:{quote(password)}@{host}")))


def remove_account(machine: Machine) -> None:
    """Before its token goes, whose hash names the account."""
    if machine.token_hash and urlsplit(settings.BROKER_URL).scheme in SCHEMES:
        change_broker_accounts("DELUSER", account_name(machine))


def account_name(machine: Machine) -> str:
    """Of the token: several sites may share a broker."""
    return f"paceline-host-{machine.token_hash[:16]}"


def change_broker_accounts(*words: str) -> bool:
    """Call `ACL WORDS`; False where the broker can't be asked or refuses."""
    try:
        address = settings.BROKER_URL.replace("redis+socket", "unix", 1)
        with redis.Redis.from_url(address, socket_connect_timeout=2, socket_timeout=2) as broker:
            broker.execute_command("ACL", *words)
    except (redis.RedisError, OSError, ValueError) as error:
        logger.warning("A host's account on the broker can't be changed: %s", error)
        return False
    return True
