"""Messages about regressions, on their way to a project's channels. See docs/alerts.md."""

from dashboard.alerts.announcing import (
    ALERTED_STATES,
    announce_again,
    announce_changes,
    announce_growth,
    announce_regression,
    transfer_deliveries,
)
from dashboard.alerts.channel_tests import request_test
from dashboard.alerts.channels import add_channel
from dashboard.alerts.claims import announce_claim
from dashboard.alerts.delivering import attempt_delivery, due_deliveries
from dashboard.alerts.errors import ChannelError
from dashboard.alerts.reminders import end_snooze, queue_digests, queue_reminders, schedule_digests
from dashboard.alerts.snoozing import snooze_regression

__all__ = [
    "ALERTED_STATES",
    "ChannelError",
    "add_channel",
    "announce_again",
    "announce_changes",
    "announce_claim",
    "announce_growth",
    "announce_regression",
    "attempt_delivery",
    "due_deliveries",
    "end_snooze",
    "queue_digests",
    "queue_reminders",
    "request_test",
    "schedule_digests",
    "snooze_regression",
    "transfer_deliveries",
]
