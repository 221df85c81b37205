"""Messages about regressions, on their way to a project's channels. See docs/alerts.md."""

from dashboard.alerts.delivering import announce, deliver, due
from dashboard.alerts.sentences import size, title

__all__ = ["announce", "deliver", "due", "size", "title"]
