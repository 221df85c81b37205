"""The tasks: a few lines each. What they are about is in Postgres; retry is decided by exception class."""

from __future__ import annotations

import logging

from django.db import InterfaceError, OperationalError

from dashboard import alerts, dispatch, runs
from dashboard.dispatch import app
from workers import run_executor

logger = logging.getLogger(__name__)

# Passing troubles. What is given up here is sent again by a later sweep.
PASSING = (OperationalError, InterfaceError, runs.Busy)


@app.task(name=dispatch.MEASURE)
def measure_next(pool: str) -> None:
    """Execute one experiment or run of the pool, then wake a worker for the next where one waits."""
    if runs.experiment_waits(pool):
        # Not above: it imports scipy, for which every measuring child would wait seconds.
        from workers import experiment_executor

        if experiment_executor.execute_next_experiment(pool):
            dispatch.wake_workers(pool)
            return
    if run_executor.execute_next_run(pool):
        dispatch.wake_workers(pool)


@app.task(name=dispatch.JUDGE, autoretry_for=PASSING, retry_backoff=1, max_retries=4)
def judge_run(run_id: int) -> None:
    # Not above: it imports scipy, for which a measuring worker and each child of it would wait seconds.
    from dashboard import regressions

    regressions.judge_run(run_id)


@app.task(name=dispatch.RUN_ENDED, autoretry_for=PASSING, retry_backoff=1, max_retries=4)
def run_ended(run_id: int) -> None:
    from dashboard import regressions

    regressions.run_ended(run_id)


@app.task(name=dispatch.EXPERIMENT_ENDED, autoretry_for=PASSING, retry_backoff=1, max_retries=4)
def experiment_ended(experiment_id: int) -> None:
    from dashboard import regressions

    regressions.experiment_ended(experiment_id)


@app.task(name=dispatch.PROVE, autoretry_for=PASSING, retry_backoff=1, max_retries=4)
def prove_regression(regression_id: int) -> None:
    from dashboard import regressions

    regressions.advance_proof(regression_id)


@app.task(name=dispatch.HISTORY_REWRITTEN, autoretry_for=PASSING, retry_backoff=1, max_retries=4)
def history_rewritten(project_id: int, commits: list[int], branches: list[str]) -> None:
    from dashboard import regressions

    regressions.history_rewritten(project_id, commits, branches)


@app.task(name=dispatch.RESOLVE, autoretry_for=PASSING, retry_backoff=1, max_retries=4)
def resolve_trigger(trigger_id: int) -> None:
    runs.resolve_trigger(trigger_id)


@app.task(name=dispatch.DELIVER, autoretry_for=PASSING, retry_backoff=1, max_retries=4)
def attempt_delivery(delivery_id: int) -> None:
    alerts.attempt_delivery(delivery_id)


@app.task(name=dispatch.SWEEP)
def sweep_everything() -> None:
    from dashboard import experiments, regressions

    for sweep in (
        runs.sweep_runs,
        experiments.sweep_experiments,
        regressions.sweep_proofs,
        send_due_deliveries,
    ):
        try:
            sweep()
        except PASSING:
            raise
        except Exception:
            # One part that can't go on must not keep the others from what they wait for.
            logger.exception("%s failed, and is tried again with the next sweep", sweep.__name__)


def send_due_deliveries() -> None:
    for delivery_id in alerts.due_deliveries():
        dispatch.send_task(dispatch.DELIVER, delivery_id)


@app.task(name=dispatch.WATCH_MACHINES)
def watch_machines() -> None:
    from dashboard import sentinels

    sentinels.watch_machines()


@app.task(name=dispatch.SCHEDULER_HEARTBEAT)
def keep_scheduler_heartbeat() -> None:
    """Sent by the scheduler, so it proves that the scheduler lives."""
    runs.part_seen("scheduler")
