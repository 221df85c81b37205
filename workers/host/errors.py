"""Why a run could not be carried to its document: one class per kind of failure, each with one sentence."""

from __future__ import annotations

from typing import ClassVar

# A run that is no longer ours (cancelled, given to another worker, or this worker is going down) is none.
from dashboard.repositories import Stopped

__all__ = [
    "BadDocumentError",
    "BuildError",
    "CheckoutError",
    "CrashError",
    "MeasuringError",
    "NoDocumentError",
    "Stopped",
    "TimeLimitError",
]


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
