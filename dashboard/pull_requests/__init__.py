"""The answer to a pull request: its head against its merge base, by experiments. See docs/checks.md."""

from dashboard.pull_requests.approving import approve_check, mark_intended
from dashboard.pull_requests.ending import experiment_ended, proved_worse, sweep_checks
from dashboard.pull_requests.errors import CheckError
from dashboard.pull_requests.merged import commits_before, merged_checks
from dashboard.pull_requests.preparing import prepare_check
from dashboard.pull_requests.receiving import complete_pull_request, handle_comment
from dashboard.pull_requests.requests import (
    CheckRequest,
    cancel_check,
    follow_pull_request,
    repeat_check,
    request_check,
)
from dashboard.pull_requests.status_and_comment import publish_check

__all__ = [
    "CheckError",
    "CheckRequest",
    "approve_check",
    "cancel_check",
    "commits_before",
    "complete_pull_request",
    "experiment_ended",
    "follow_pull_request",
    "handle_comment",
    "mark_intended",
    "merged_checks",
    "prepare_check",
    "proved_worse",
    "publish_check",
    "repeat_check",
    "request_check",
    "sweep_checks",
]
