"""The answer to a pull request: its head against its merge base, by experiments. See docs/checks.md."""

from dashboard.pull_requests.approving import approve_check, call_intended
from dashboard.pull_requests.asking import (
    cancel_check,
    check_revision,
    follow_pull_request,
    repeat_check,
)
from dashboard.pull_requests.ending import experiment_ended, proved_worse, sweep_checks
from dashboard.pull_requests.errors import CheckError
from dashboard.pull_requests.merged import commits_before, merged_checks
from dashboard.pull_requests.preparing import prepare_check
from dashboard.pull_requests.receiving import complete_pull_request, obey_comment
from dashboard.pull_requests.status_and_comment import tell_check

__all__ = [
    "CheckError",
    "approve_check",
    "call_intended",
    "cancel_check",
    "check_revision",
    "commits_before",
    "complete_pull_request",
    "experiment_ended",
    "follow_pull_request",
    "merged_checks",
    "obey_comment",
    "prepare_check",
    "proved_worse",
    "repeat_check",
    "sweep_checks",
    "tell_check",
]
