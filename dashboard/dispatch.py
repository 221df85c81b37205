"""The queue: its messages wake workers, which look into the database: that holds the truth.

A message may be lost, doubled or late and nothing breaks: the sweep sends another one for what waits. So
tasks are named, never imported, and sent only once the rows that they speak of are committed.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextvars import Token
from threading import get_ident
from typing import Any

from celery import Celery
from celery.signals import before_task_publish, task_postrun, task_prerun
from django.conf import settings
from django.db import transaction
from kombu.exceptions import ChannelError, OperationalError

from dashboard.heartbeat_file import keep_heartbeat_file
from dashboard.host_protocol import queues
from dashboard.host_protocol.queues import MEASURE, pool_queue
from dashboard.structured_logs import Ids, current_ids, enter_context, leave_context

logger = logging.getLogger(__name__)

JUDGE = "workers.judge"
PROVE = "workers.prove"
RUN_ENDED = "workers.run_ended"
EXPERIMENT_ENDED = "workers.experiment_ended"
PROVED_WORSE = "workers.proved_worse"
HISTORY_REWRITTEN = "workers.history_rewritten"
RESOLVE = "workers.resolve_trigger"
DELIVER = "workers.deliver"
FILL_BACKLOG = "workers.fill_backlog"
PREPARE_CHECK = "workers.prepare_check"
PUBLISH_CHECK = "workers.publish_check"
COMPLETE_PULL_REQUEST = "workers.complete_pull_request"
HANDLE_COMMENT = "workers.handle_comment"
SWEEP = "workers.sweep"
SCHEDULER_HEARTBEAT = "workers.scheduler_heartbeat"
WATCH_MACHINES = "workers.watch_machines"
WATCH_CLAIMS = "workers.watch_claims"
READ_CLAIMS = "workers.read_claims"
PRUNE = "workers.prune"
REMIND = "workers.remind"
POLL = "workers.poll_project"
READ_COMMITS = "workers.read_newest_commits"
TEST_REPOSITORY = "workers.test_repository"
REMOVE_PROJECT = "workers.remove_project"

# What the id is of that a task's first argument is: its log lines have it under this name.
SUBJECTS = {
    JUDGE: "run",
    RUN_ENDED: "run",
    EXPERIMENT_ENDED: "experiment",
    PROVED_WORSE: "experiment",
    PROVE: "regression",
    HISTORY_REWRITTEN: "project",
    POLL: "project",
    READ_COMMITS: "project",
    FILL_BACKLOG: "project",
    REMOVE_PROJECT: "project",
    READ_CLAIMS: "project",
    RESOLVE: "trigger",
    DELIVER: "delivery",
    PREPARE_CHECK: "check",
    PUBLISH_CHECK: "check",
    COMPLETE_PULL_REQUEST: "project",
    HANDLE_COMMENT: "project",
}
# Of a message: the web request that it was sent for.
REQUEST_HEADER = "paceline_request"

SERVICE = "service"
# What waits for repositories and forges of other people, apart from judgements and alerts.
FETCHES = "fetches"
FETCHING = frozenset(
    {
        *(RESOLVE, POLL, READ_COMMITS, FILL_BACKLOG, TEST_REPOSITORY),
        *(PREPARE_CHECK, PUBLISH_CHECK, COMPLETE_PULL_REQUEST, HANDLE_COMMENT),
    }
)
# A sweep waits for no slow mail server or long judgement.
SWEEPS = "sweeps"
EVERY_SECONDS = 10
WATCH_SECONDS = 900
PRUNE_SECONDS = 3600
REMIND_SECONDS = 900
MOST_WAKE_MESSAGES = 100

CONFIGURATION: dict[str, Any] = {
    **queues.CONFIGURATION,
    "task_default_queue": SERVICE,
    "broker_transport_options": queues.REDIS_OPTIONS,
    "beat_schedule": {
        name: {
            "task": task,
            "schedule": seconds,
            # While no worker runs they pile up: only the newest is worth doing.
            "options": {"queue": queue, "expires": seconds},
        }
        for name, task, seconds, queue in (
            ("sweep", SWEEP, EVERY_SECONDS, SWEEPS),
            ("heartbeat", SCHEDULER_HEARTBEAT, EVERY_SECONDS, SWEEPS),
            ("watch", WATCH_MACHINES, WATCH_SECONDS, SERVICE),
            ("claims", WATCH_CLAIMS, WATCH_SECONDS, SERVICE),
            ("prune", PRUNE, PRUNE_SECONDS, SERVICE),
            ("remind", REMIND, REMIND_SECONDS, SERVICE),
        )
    },
}


def make_app(broker: str) -> Celery:
    celery = Celery("paceline", broker=broker, set_as_current=False)
    celery.conf.update(CONFIGURATION)
    return celery


app = make_app(settings.BROKER_URL)
app.set_default()
keep_heartbeat_file(app, settings.PACELINE_HEARTBEAT_FILE)
# Thread and id of a task that runs -> what its log context is left with. The thread, since a task that is
# tried again at once, or delivered twice, begins in one thread before it has ended in another.
_task_contexts: dict[tuple[int, str], Token[Ids]] = {}


def send_task(name: str, *args: Any) -> None:
    """Send a task once the current transaction is committed; at once where there is none."""
    queue = FETCHES if name in FETCHING else SERVICE
    transaction.on_commit(lambda: _publish_messages(name, args, queue, 1))


def wake_workers(pool: str, times: int = 1) -> None:
    """Wake up to `times` workers of a pool, once the current transaction is committed."""
    count = min(times, MOST_WAKE_MESSAGES)
    transaction.on_commit(lambda: _publish_messages(MEASURE, (pool,), pool_queue(pool), count))


def count_waiting_messages(pool: str) -> int | None:
    """How many messages of the pool no worker has taken yet; None where the queue can't be asked."""
    connection: Any = app.connection_for_write()
    try:
        with connection:
            # Kombu's channels have no common type.
            channel: Any = connection.default_channel
            return int(channel.queue_declare(pool_queue(pool), passive=True).message_count)
    except ChannelError:
        return 0  # The queue doesn't exist before its first message.
    except (OperationalError, *connection.connection_errors) as error:
        logger.warning("The queue can't be asked for its length: %s", error)
        return None


def _publish_messages(name: str, args: tuple[Any, ...], queue: str, times: int) -> None:
    """Never raises: the rows are committed, and what isn't sent now the sweep sends later."""
    try:
        with app.producer_or_acquire() as producer:
            for _ in range(times):
                # One retry, since the pooled connection may be of a broker that has restarted since.
                app.send_task(
                    name,
                    args=list(args),
                    queue=queue,
                    producer=producer,
                    retry=True,
                    retry_policy={"max_retries": 1, "interval_start": 0, "interval_step": 0},
                )
    except OperationalError as error:
        logger.warning("The queue can't be reached, %s is sent by the next sweep: %s", name, error)


@before_task_publish.connect
def name_request(headers: dict[str, Any], **_: Any) -> None:
    """A task's log lines have the id of the request that it was sent for."""
    if request := current_ids().get("request"):
        headers[REQUEST_HEADER] = request


@task_prerun.connect
def enter_task_context(task_id: str, task: Any, args: Sequence[Any], **_: Any) -> None:
    ids: dict[str, str | int] = {"task": task_id}
    if request := task.request.get(REQUEST_HEADER):
        ids["request"] = request
    if args and task.name in SUBJECTS:
        ids[SUBJECTS[task.name]] = args[0]
    _task_contexts[get_ident(), task_id] = enter_context(**ids)


@task_postrun.connect
def leave_task_context(task_id: str, **_: Any) -> None:
    if token := _task_contexts.pop((get_ident(), task_id), None):
        leave_context(token)
