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
from dashboard.alerts.sentences import describe_metric_change, regression_title

__all__ = [
    "ALERTED_STATES",
    "ChannelError",
    "add_channel",
    "announce_growth",
    "announce_regression",
    "attempt_delivery",
    "describe_metric_change",
    "due_deliveries",
    "regression_title",
    "transfer_deliveries",
]
