"""What can go wrong with a run; each message is one sentence for people."""

from __future__ import annotations


class RunError(Exception):
    """Base of this room's exceptions."""


class WrongState(RunError):  # noqa: N818 - reads as a fact
    """The run is the caller's, but the transition doesn't start from the state that it is in."""


class Busy(RunError):  # noqa: N818 - reads as a fact
    """Somebody else is at it; ask again later. Nothing was changed."""
