from __future__ import annotations


class RepositoryError(Exception):
    """The repository can't give what was asked for; the message is one sentence for people."""


class Unreachable(RepositoryError):  # noqa: N818 - reads as a fact
    """Fetching failed, perhaps for a moment only."""


class RepositoryBusy(RepositoryError):  # noqa: N818 - reads as a fact
    """Another process is fetching this repository."""
