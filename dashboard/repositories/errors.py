from __future__ import annotations


class RepositoryError(Exception):
    """The repository can't give what was asked for: one sentence for people, without passwords."""


class GitError(RepositoryError):
    """git ran and said no, with this exit status."""

    def __init__(self, sentence: str, status: int) -> None:
        super().__init__(sentence)
        self.status = status


class GitTimeout(RepositoryError):  # noqa: N818 - reads as a fact
    """git was ended: it had taken longer than it might."""


class Unreachable(RepositoryError):  # noqa: N818 - reads as a fact
    """Fetching failed, perhaps for a moment only."""


class FetchTimeout(Unreachable):
    """Fetching took longer than whoever asked could wait."""


class RepositoryBusy(RepositoryError):  # noqa: N818 - reads as a fact
    """Another process is fetching this repository."""


class Stopped(Exception):  # noqa: N818 - no error of the repository
    """Whoever asked wanted it no more: what had been started was ended."""
