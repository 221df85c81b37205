"""What asks for measurements: page, git hook, forge, poll, command. Each becomes a row and a message."""

from dashboard.triggers.command import create_command_trigger
from dashboard.triggers.polling import poll_project, send_due_polls
from dashboard.triggers.reading_commits import read_slow_repository
from dashboard.triggers.receiving import TriggerError, parse_revisions
from dashboard.triggers.schedule import send_due_schedules
from dashboard.triggers.web import create_web_trigger

__all__ = [
    "TriggerError",
    "create_command_trigger",
    "create_web_trigger",
    "parse_revisions",
    "poll_project",
    "read_slow_repository",
    "send_due_polls",
    "send_due_schedules",
]
