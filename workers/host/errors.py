"""What can go wrong on a host. A MeasuringError is why a run failed, a class per kind, in one sentence."""

from __future__ import annotations

from typing import ClassVar

# A run that is no longer ours (cancelled, given to another worker, or this worker is going down) is none.
from dashboard.repositories import Stopped

__all__ = [
    "BadDocumentError",
    "BuildError",
    "CheckoutError",
    "CrashError",
    "HostOutdated",
    "JoinRefused",
    "LeaseLost",
    "MeasuringError",
    "NoDocumentError",
    "SiteAway",
    "SiteBroken",
    "Stopped",
    "TimeLimitError",
    "TokenRefused",
]


class SiteAway(Exception):  # noqa: N818 - reads as a fact
    """The site can't be reached or can't answer now; it may later."""


class SiteBroken(SiteAway):
    """The site answers that it failed at this very call: it may go on to do so."""


class LeaseLost(Exception):  # noqa: N818 - reads as a fact
    """What is measured is no longer ours: it was cancelled, or given up for lost and requested again."""


class TokenRefused(Exception):  # noqa: N818 - reads as a fact
    """The site no longer takes this host's token."""


class JoinRefused(Exception):  # noqa: N818 - reads as a fact
    """The host can't join; one sentence says why."""


class HostOutdated(Exception):  # noqa: N818 - reads as a fact
    """The site can't work with an agent of this version; one sentence says which must be updated."""


class MeasuringError(Exception):
    """A run failed; its text is the sentence that people read."""

    kind: ClassVar[str]


class CheckoutError(MeasuringError):
    kind = "checkout"


class BuildError(MeasuringError):
    kind = "environment"


class TimeLimitError(MeasuringError):
    kind = "timeout"


class CrashError(MeasuringError):
    kind = "crash"


class NoDocumentError(MeasuringError):
    kind = "no document"


class BadDocumentError(MeasuringError):
    kind = "bad document"
