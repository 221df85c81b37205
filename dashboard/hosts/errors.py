from __future__ import annotations


class JoinRefused(Exception):  # noqa: N818 - reads as a fact
    """The host can't join; one sentence says why."""


class HostRefused(Exception):  # noqa: N818 - reads as a fact
    """The host gets no work; one sentence says why."""
