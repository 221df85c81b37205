"""A job of the site that fails, in words."""

from __future__ import annotations

from dashboard import dispatch
from dashboard.models import FailedJob

WHAT = {
    dispatch.JUDGE: "Judging run {0}",
    dispatch.RUN_ENDED: "What follows from the end of run {0}",
    dispatch.EXPERIMENT_ENDED: "What follows from the end of experiment {0}",
    dispatch.PROVED_WORSE: "What experiment {0} has proved while it goes on",
    dispatch.PROVE: "The proof of regression {0}",
    dispatch.HISTORY_REWRITTEN: "What follows from rewritten history of project {0}",
    dispatch.DELIVER: "Delivery {0}",
    dispatch.WATCH_CLAIMS: "The watch over claims",
    dispatch.WATCH_MACHINES: "The watch over machines",
    dispatch.PRUNE: "Dropping what is old",
}


def describe_job(job: FailedJob) -> str:
    """`Judging run 12 failed 3 times, next at 14:05 UTC`, or that it is set aside."""
    what = WHAT.get(job.task, str(job)).format(*job.arguments)
    times = "once" if job.failures == 1 else f"{job.failures} times"
    if job.next_try_at is None:
        return f"{what} failed {times} and is set aside"
    return f"{what} failed {times}, next try at {job.next_try_at:%H:%M:%S} UTC"
