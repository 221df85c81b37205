"""The tasks: a few lines each. What they are about is in Postgres; retry is decided by exception class."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from typing import Any, TypeVar, cast

from django.db import InterfaceError, OperationalError

from dashboard import alerts, dispatch, failed_jobs, outbox, retention, runs
from dashboard.dispatch import app
from dashboard.page_cache.revisions import combine_stamps

logger = logging.getLogger(__name__)

Act = TypeVar("Act", bound=Callable[..., None])

# What one hour leaves over the next one drops.
PRUNE_BUDGET_SECONDS = 30

# Nobody waits here while somebody else fetches: other repositories would wait too. The sweep asks again.
NO_PATIENCE = 0.0

# Passing troubles. What is given up here is sent again by a later sweep.
PASSING = (OperationalError, InterfaceError, runs.Busy)
RETRIES: dict[str, Any] = {"autoretry_for": PASSING, "retry_backoff": 1, "max_retries": 4}


def count_failures(task: str) -> Callable[[Act], Act]:
    """Let a job pause that failed for a reason nobody foresaw, longer each time; then it is set aside."""

    def wrap(act: Act) -> Act:
        @functools.wraps(act)
        def attempt(*arguments: Any) -> None:
            if not failed_jobs.may_try(task, arguments):
                return
            try:
                act(*arguments)
            except Exception as error:
                if not isinstance(error, PASSING) or failed_jobs.fails_each_time(error):
                    failed_jobs.note_failure(task, arguments, error)
                raise
            failed_jobs.forget_failures(task, arguments)

        return cast(Act, attempt)

    return wrap


def retried_task(task: str) -> Callable[[Act], Act]:
    """A task that is tried again after a passing trouble, and whose other failures are counted."""

    def wrap(act: Act) -> Act:
        register: Any = app.task(name=task, **RETRIES)
        return cast(Act, register(count_failures(task)(act)))

    return wrap


def from_outbox(task: str, *, alone: bool = True) -> Callable[[Act], Act]:
    """Of a task whose messages are kept until it was done: drop those that were there when it began.

    `alone`: nobody asks for it otherwise, so that a second message does nothing once the first was done.
    """

    def wrap(act: Act) -> Act:
        @functools.wraps(act)
        def attempt(*arguments: Any) -> None:
            newest = outbox.take_messages(task, arguments)
            if alone and not newest:
                return
            try:
                act(*arguments)
            except PASSING:
                # It isn't under way any more: the next sweeps send it, where the retries give up.
                outbox.return_messages(task, arguments)
                raise
            outbox.drop_messages(task, arguments, newest)

        return cast(Act, attempt)

    return wrap


@retried_task(dispatch.JUDGE)
def judge_run(run_id: int) -> None:
    # Not above: it imports scipy, for which a measuring worker and each child of it would wait seconds.
    from dashboard import claims, regressions

    regressions.judge_run(run_id)
    claims.run_stored(run_id)


@retried_task(dispatch.RUN_ENDED)
def run_ended(run_id: int) -> None:
    from dashboard import regressions

    regressions.run_ended(run_id)


@retried_task(dispatch.EXPERIMENT_ENDED)
def experiment_ended(experiment_id: int) -> None:
    from dashboard import claims, pull_requests, regressions

    regressions.experiment_ended(experiment_id)
    regressions.explain_checked_case(experiment_id)
    pull_requests.experiment_ended(experiment_id)
    claims.experiment_ended(experiment_id)


@retried_task(dispatch.PROVED_WORSE)
def proved_worse(experiment_id: int) -> None:
    from dashboard import pull_requests, regressions

    regressions.explain_checked_case(experiment_id)
    pull_requests.proved_worse(experiment_id)


@retried_task(dispatch.PROVE)
def prove_regression(regression_id: int) -> None:
    from dashboard import regressions

    regressions.advance_proof(regression_id)


@retried_task(dispatch.HISTORY_REWRITTEN)
@from_outbox(dispatch.HISTORY_REWRITTEN)
def history_rewritten(project_id: int, commits: list[int], branches: list[str]) -> None:
    from dashboard import claims, regressions

    regressions.history_rewritten(project_id, commits, branches)
    claims.history_rewritten(project_id, commits)


@app.task(name=dispatch.RESOLVE, **RETRIES)
def resolve_trigger(trigger_id: int) -> None:
    runs.resolve_trigger(trigger_id, patience=NO_PATIENCE)


@retried_task(dispatch.FILL_BACKLOG)
def fill_backlog(project_id: int) -> None:
    runs.fill_backlog(project_id)


@retried_task(dispatch.PREPARE_CHECK)
def prepare_check(check_id: int) -> None:
    from dashboard import pull_requests

    pull_requests.prepare_check(check_id, patience=NO_PATIENCE)


@retried_task(dispatch.PUBLISH_CHECK)
@from_outbox(dispatch.PUBLISH_CHECK, alone=False)
def publish_check(check_id: int) -> None:
    from dashboard import pull_requests

    pull_requests.publish_check(check_id)


@retried_task(dispatch.COMPLETE_PULL_REQUEST)
@from_outbox(dispatch.COMPLETE_PULL_REQUEST)
def complete_pull_request(project_id: int, number: int) -> None:
    from dashboard import pull_requests

    pull_requests.complete_pull_request(project_id, number)


@retried_task(dispatch.HANDLE_COMMENT)
@from_outbox(dispatch.HANDLE_COMMENT)
def handle_comment(project_id: int, number: int, account: str, name: str, text: str) -> None:
    from dashboard import pull_requests

    pull_requests.handle_comment(project_id, number, account, name, text)


@retried_task(dispatch.DELIVER)
def attempt_delivery(delivery_id: int) -> None:
    alerts.attempt_delivery(delivery_id)


@retried_task(dispatch.POLL)
def poll_project(project_id: int) -> None:
    from dashboard import triggers

    triggers.poll_project(project_id)


@retried_task(dispatch.READ_COMMITS)
@from_outbox(dispatch.READ_COMMITS)
def read_newest_commits(project_id: int, count: int) -> None:
    from dashboard import triggers

    triggers.read_slow_repository(project_id, count, NO_PATIENCE)


@retried_task(dispatch.TEST_REPOSITORY)
def test_repository(test_id: int) -> None:
    from dashboard import project_setup

    project_setup.perform_test(test_id)


@retried_task(dispatch.REMOVE_PROJECT)
def remove_project(project_id: int) -> None:
    from dashboard import project_setup

    project_setup.delete_project(project_id)


@app.task(name=dispatch.SWEEP)
def sweep_everything() -> None:
    from dashboard import (
        claims,
        experiments,
        project_setup,
        pull_requests,
        regressions,
        site_outages,
        triggers,
    )

    each_part(
        site_outages.grant_grace,
        runs.sweep_runs,
        runs.send_backlogs,
        experiments.sweep_experiments,
        regressions.sweep_proofs,
        pull_requests.sweep_checks,
        claims.sweep_claims,
        alerts.queue_digests,
        send_due_deliveries,
        triggers.send_due_polls,
        triggers.send_due_schedules,
        project_setup.send_waiting_tests,
        failed_jobs.send_due_jobs,
        outbox.send_forgotten_messages,
        combine_stamps,
    )


def each_part(*parts: Callable[[], object]) -> list[Exception]:
    """Do all parts of what the schedule asks for, also where one can't go on; what went wrong."""
    errors = []
    for part in parts:
        try:
            part()
        except PASSING:
            raise
        except Exception as error:
            name = getattr(getattr(part, "func", part), "__name__", part)
            logger.exception("%s failed, and is tried again with the next sweep", name)
            errors.append(error)
    return errors


def send_due_deliveries() -> None:
    for delivery_id in alerts.due_deliveries():
        dispatch.send_task(dispatch.DELIVER, delivery_id)


@app.task(name=dispatch.WATCH_MACHINES)
@count_failures(dispatch.WATCH_MACHINES)
def watch_machines() -> None:
    from dashboard import sentinels

    sentinels.watch_machines()


@app.task(name=dispatch.WATCH_CLAIMS)
@count_failures(dispatch.WATCH_CLAIMS)
def watch_claims() -> None:
    from dashboard import claims

    claims.watch_claims()


@app.task(name=dispatch.READ_CLAIMS, **RETRIES)
def read_claims(project_id: int) -> None:
    # What goes wrong is tried again, and reported, by the watch over all projects.
    from dashboard import claims

    claims.read_new_claims(project_id)


@app.task(name=dispatch.PRUNE)
@count_failures(dispatch.PRUNE)
def prune_runs() -> None:
    from dashboard import project_setup

    errors = each_part(
        functools.partial(retention.prune_runs, seconds=PRUNE_BUDGET_SECONDS),
        retention.drop_old_deliveries,
        retention.drop_expired_sessions,
        project_setup.drop_old_tests,
        project_setup.send_removed_projects,
    )
    if errors:
        raise errors[0]


@app.task(name=dispatch.REMIND)
@count_failures(dispatch.REMIND)
def queue_reminders() -> None:
    alerts.queue_reminders()


@app.task(name=dispatch.SCHEDULER_HEARTBEAT)
def keep_scheduler_heartbeat() -> None:
    """Sent by the scheduler, so it proves that the scheduler lives."""
    runs.record_heartbeat("scheduler")
