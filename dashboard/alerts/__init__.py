"""Messages about regressions, on their way to a project's channels. See docs/alerts.md."""

from dashboard.alerts.channels import ChannelError, add_channel
from dashboard.alerts.delivering import SUSPICIOUS, announce, announce_growth, deliver, due, hand_over
from dashboard.alerts.sentences import size, title

__all__ = [
    "SUSPICIOUS",
    "ChannelError",
    "add_channel",
    "announce",
    "announce_growth",
    "deliver",
    "due",
    "hand_over",
    "size",
    "title",
]
