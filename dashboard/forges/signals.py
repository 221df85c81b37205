"""The signals of what forges tell, for other rooms. Receivers get `project` and `event`.

They are called within the transaction that keeps the delivery: they write rows and send tasks, nothing that
takes long, and what they raise has the delivery refused as a whole.
"""

from __future__ import annotations

from django.dispatch import Signal

# `event` is a PullRequestEvent, of a webhook or of the poll. The same state may be reported again.
pull_request_received = Signal()
# `event` is a CommentEvent.
comment_received = Signal()
