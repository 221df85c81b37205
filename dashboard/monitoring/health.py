"""Whether this process lives, and whether the site can do its work. For monitors: no session, no HTML."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from django.db import Error as DatabaseError
from django.db import connection
from django.db.models import Max
from django.http import HttpRequest, JsonResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from kombu.exceptions import OperationalError

from dashboard.dispatch import app
from dashboard.models import Heartbeat, Machine

# Both beat every 10 seconds; a pause shorter than this is no outage.
MOST_SILENCE = timedelta(seconds=60)
NO_DATABASE = {"status": "down", "detail": "The database doesn't answer."}


class NotReady(Exception):  # noqa: N818 - no error: what the check found
    """The sentence that says what is missing."""


@never_cache
@require_safe
def report_liveness(_request: HttpRequest) -> JsonResponse:
    """200 as long as this process answers."""
    return JsonResponse({"status": "ok"})


@never_cache
@require_safe
def report_readiness(_request: HttpRequest) -> JsonResponse:
    """200 if every part answers, else 503; `parts` has the state of each one."""
    parts: dict[str, dict[str, str]] = {}
    for name, check in CHECKS.items():
        # Each that asks a frozen database waits for it once more.
        is_known = name != "queue" and parts.get("database") == NO_DATABASE
        parts[name] = NO_DATABASE if is_known else _part_state(check)
    ready = all(part["status"] == "ok" for part in parts.values())
    return JsonResponse({"status": "ok" if ready else "down", "parts": parts}, status=200 if ready else 503)


def _part_state(check: Callable[[], str]) -> dict[str, str]:
    try:
        return {"status": "ok", "detail": check()}
    except NotReady as reason:
        return {"status": "down", "detail": str(reason)}
    except DatabaseError:
        # Its text names users and addresses, which are nobody's business here.
        return NO_DATABASE


def _check_database() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return "answers"


def _check_queue() -> str:
    try:
        with app.connection_for_write() as broker:
            broker.ensure_connection(max_retries=1, interval_start=0, timeout=2)
    except (OperationalError, OSError) as error:
        raise NotReady("The queue doesn't answer.") from error
    return "answers"


def _check_worker() -> str:
    seen = Machine.objects.aggregate(newest=Max("seen_at"))["newest"]
    return _check_recency(seen, "measuring worker")


def _check_service_worker() -> str:
    return _check_heartbeat("service worker")


def _check_fetch_worker() -> str:
    return _check_heartbeat("fetch worker")


def _check_scheduler() -> str:
    return _check_heartbeat("scheduler")


def _check_heartbeat(name: str) -> str:
    return _check_recency(Heartbeat.objects.filter(name=name).values_list("seen_at", flat=True).first(), name)


def _check_recency(seen: datetime | None, part: str) -> str:
    if seen is None:
        raise NotReady(f"No {part} has reported yet.")
    silent = timezone.now() - seen
    if silent > MOST_SILENCE:
        raise NotReady(f"The last {part} reported {int(silent.total_seconds())} seconds ago.")
    return f"reported {max(0, int(silent.total_seconds()))} seconds ago"


CHECKS: dict[str, Callable[[], str]] = {
    "database": _check_database,
    "queue": _check_queue,
    "worker": _check_worker,
    "service_worker": _check_service_worker,
    "fetch_worker": _check_fetch_worker,
    "scheduler": _check_scheduler,
}
