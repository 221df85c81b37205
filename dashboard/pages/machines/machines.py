"""The machines that measure, by pool, and the form by which another host joins."""

from __future__ import annotations

import ipaddress
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import validate_slug
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe
from paceline.document import CODES_OF_DISTURBANCE

from dashboard import hosts, runs
from dashboard.access import visitor_of
from dashboard.models import Machine
from dashboard.name_lengths import LONGEST_POOL
from dashboard.pages.paging import requested_page
from dashboard.querysets import machines as machine_queries
from dashboard.querysets.machines import HeldWork, WaitingWork
from dashboard.querysets.visibility import ProjectVisibility
from dashboard.sentences.measurements import machines as sentences

MACHINES = 100
MOST_RETIRED = 100


@dataclass(frozen=True, slots=True)
class MachineRow:
    """A line of the list. Of its newest `measured` runs `disturbed` had a warning about what disturbed them,
    and `tainted` are kept out of judgement; `codes` says which warnings.
    """

    machine: Machine
    status: str
    label: str
    hardware: sentences.Hardware
    work: HeldWork | None
    measured: int
    disturbed: int
    tainted: int
    codes: str


@dataclass(frozen=True, slots=True)
class PoolGroup:
    """The machines of a pool on this page, and what waits for any of them."""

    name: str
    rows: list[MachineRow]
    waiting: WaitingWork | None
    waiting_text: str


@require_safe
def machines_page(request: HttpRequest) -> HttpResponse:
    return render(request, "machines/machines.html", _list_context(request))


def _list_context(request: HttpRequest) -> dict[str, Any]:
    now = timezone.now()
    page = requested_page(
        request, machine_queries.listed_machines(), MACHINES, details=machine_queries.MACHINES_OF_KEYS
    )
    listed = list(page)
    waiting = machine_queries.work_waiting_by_pool(now)
    rows = machine_rows(listed, now, visitor_of(request).project_visibility)
    retired = machine_queries.retired_machines(MOST_RETIRED + 1)
    unserved = waiting.keys() - machine_queries.served_pools()
    return {
        "page": page,
        "groups": [_pool_group(name, rows, waiting) for name in dict.fromkeys(_pool_names(listed))],
        "unserved": [(name, sentences.waiting_work_text(waiting[name])) for name in sorted(unserved)],
        "retired": retired[:MOST_RETIRED],
        "more_retired": len(retired) > MOST_RETIRED,
        "pools": machine_queries.pool_names(),
        "pool": "",
    }


def _pool_names(listed: Iterable[Machine]) -> list[str]:
    return [machine.pool.name for machine in listed]


def _pool_group(name: str, rows: Iterable[MachineRow], waiting: dict[str, WaitingWork]) -> PoolGroup:
    work = waiting.get(name)
    text = sentences.waiting_work_text(work) if work else ""
    return PoolGroup(name, [row for row in rows if row.machine.pool.name == name], work, text)


def machine_rows(listed: list[Any], now: datetime, visibility: ProjectVisibility) -> list[MachineRow]:
    """Of machines that have their `newest_runs`."""
    work = machine_queries.work_by_machine(listed, visibility)
    return [_machine_row(machine, work.get(machine.pk), now) for machine in listed]


def _machine_row(machine: Any, work: HeldWork | None, now: datetime) -> MachineRow:
    status = sentences.machine_status(machine, bool(work), now)
    newest = machine.newest_runs
    disturbed, counts = count_codes(newest, CODES_OF_DISTURBANCE)
    return MachineRow(
        machine=machine,
        status=status,
        label=sentences.STATUS_LABELS[status],
        hardware=sentences.describe_hardware(machine.fingerprint),
        work=work,
        measured=len(newest),
        disturbed=disturbed,
        tainted=sum(row["tainted"] for row in newest),
        codes=sentences.code_counts_text(counts),
    )


def count_codes(newest_runs: Iterable[dict[str, Any]], codes: frozenset[str]) -> tuple[int, dict[str, int]]:
    """(how many runs have any of the codes, how many have each), the most frequent code first."""
    counts: dict[str, int] = {}
    disturbed = 0
    for row in newest_runs:
        found = codes.intersection(row["codes"])
        disturbed += bool(found)
        for code in found:
            counts[code] = counts.get(code, 0) + 1
    return disturbed, dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


@require_POST
@never_cache
def make_join_code(request: HttpRequest) -> HttpResponse:
    """The form's field: `pool`. The answer shows the code, which nothing else keeps: no redirect, then."""
    name = request.POST.get("pool", "").strip()
    if refused := pool_name_refusal(name):
        context = {**_list_context(request), "pool": name[:LONGEST_POOL], "refused": refused}
        return render(request, "machines/machines.html", context, status=400)
    code = hosts.create_join_code(
        runs.pool_named(name), request.user.get_username(), actor=visitor_of(request)
    )
    context = {**_list_context(request), "joining": joining_commands(code), "joining_pool": name}
    return render(request, "machines/machines.html", context)


def pool_name_refusal(name: str) -> str:
    """Why a pool can't be called that, in one sentence; empty where it can."""
    try:
        validate_slug(name)
    except ValidationError:
        return "Name a pool with letters, digits, hyphens and underscores, such as h100."
    return f"A pool's name has at most {LONGEST_POOL} characters." if len(name) > LONGEST_POOL else ""


def joining_commands(code: str) -> dict[str, str | bool]:
    """What to type on the host, in a clone and without make; `local`: no other host reaches that address."""
    site = shlex.quote(settings.PACELINE_URL)
    return {
        "make": f"make host SITE={site} CODE={code}",
        "python": f"python -m workers.host run --site {site} --code {code}",
        "site": settings.PACELINE_URL,
        "local": is_loopback(settings.PACELINE_URL),
    }


def is_loopback(url: str) -> bool:
    """Whether an address means the computer that asks for it."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
