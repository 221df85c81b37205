"""How a host joins: a code that somebody made on the site, used once and soon, yields its own token."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from dashboard.access import Actor, AuditAction, record_action
from dashboard.hosts import broker_accounts
from dashboard.hosts.errors import JoinRefused
from dashboard.models import JoinCode, Machine, Pool
from dashboard.secrets.tokens import hash_token, make_token

CODE_LIVES = timedelta(minutes=15)
CODE_BYTES = 15
MOST_SLOTS = 64


def create_join_code(pool: Pool, made_by: str, machine_name: str = "", *, actor: Actor | None = None) -> str:
    """A code by which one host may join the pool; with a name, as that machine, be it there or not.

    `actor`: who makes it, for the audit log; the site itself isn't there.
    """
    code = make_token("join", CODE_BYTES)
    with transaction.atomic():
        made = JoinCode.objects.create(
            code_hash=hash_token(code),
            pool=pool,
            machine_name=machine_name,
            made_by=made_by[:150],
            expires_at=timezone.now() + CODE_LIVES,
        )
        if actor is not None:
            about = {"pool": pool.name, "machine": machine_name}
            record_action(actor, AuditAction.JOIN_CODE_MADE, None, made, **about)
    return code


def local_join_code() -> str:
    """For the host that the site starts beside itself: as the machine that the settings name."""
    pool = Pool.objects.get_or_create(name=settings.PACELINE_POOL)[0]
    return create_join_code(pool, "the site itself", settings.PACELINE_MACHINE)


def join_machine(code: str, name: str) -> tuple[Machine, str]:
    """As `join_machines`, of one."""
    return join_machines(code, [name])[0]


def join_machines(code: str, names: Sequence[str]) -> list[tuple[Machine, str]]:
    """The machines of a host that joins, one for each of its slots, each with its new token.

    The tokens are shown nowhere again. JoinRefused says why not; nobody has joined then.
    """
    if not 0 < len(names) <= MOST_SLOTS or len(set(names)) < len(names):
        raise JoinRefused(f"A host joins as 1 to {MOST_SLOTS} machines, each with a name of its own.")
    with transaction.atomic():
        made = _take_code(code)
        joined = [_join_machine(made, name) for name in names]
        JoinCode.objects.filter(pk=made.pk).update(used_at=Now())
    return joined


def _take_code(code: str) -> JoinCode:
    made = JoinCode.objects.select_for_update().filter(code_hash=hash_token(code)).first()
    if made is None:
        raise JoinRefused("This code is none of this site's: make a new one on the page Machines.")
    if made.used_at is not None:
        raise JoinRefused("This code was used already: make a new one on the page Machines.")
    if made.expires_at < timezone.now():
        raise JoinRefused("This code is older than 15 minutes: make a new one on the page Machines.")
    return made


def _join_machine(made: JoinCode, name: str) -> tuple[Machine, str]:
    if not name.isprintable() or not name.strip() or len(name) > 120:
        raise JoinRefused("A machine's name is a printable text of at most 120 characters.")
    if made.machine_name and name != made.machine_name:
        raise JoinRefused(f"This code lets {made.machine_name} join, not {name}.")
    there = Machine.objects.select_for_update().filter(name=name).first()
    if there is not None and not made.machine_name and there.state != Machine.State.RETIRED:
        raise JoinRefused(f"There is a machine {name} already: retire it first, or choose another name.")
    if there is not None:
        broker_accounts.remove_account(there)
    token = make_token("host")
    values = {"pool": made.pool, "token_hash": hash_token(token), "state": Machine.State.ACTIVE}
    machine = Machine.objects.update_or_create(name=name, defaults={**values, "joined_at": Now()})[0]
    machine.refresh_from_db()
    return machine, token
