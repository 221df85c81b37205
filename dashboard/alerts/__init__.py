"""Messages about regressions, on their way to a project's channels. See docs/alerts.md."""

from dashboard.alerts.channels import ChannelError, add_channel
from dashboard.alerts.delivering import (
    ALERTED_STATES,
    announce_growth,
    announce_regression,
    attempt_delivery,
    due_deliveries,
    transfer_deliveries,
)

__all__ = [
    "ALERTED_STATES",
    "ChannelError",
    "add_channel",
    "announce_growth",
    "announce_regression",
    "attempt_delivery",
    "due_deliveries",
    "transfer_deliveries",
]
