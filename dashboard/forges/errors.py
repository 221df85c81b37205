from __future__ import annotations

from datetime import datetime


class ForgeError(Exception):
    """A delivery is refused: with an HTTP status and one sentence for people."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


class ForgeAnswerError(Exception):
    """A forge didn't do what it was asked for; the text is one sentence for people, without secrets."""


class ForgeBusy(ForgeAnswerError):  # noqa: N818 - reads as a fact
    """The forge wants to be left alone until then."""

    def __init__(self, sentence: str, until: datetime) -> None:
        super().__init__(sentence)
        self.until = until


class ForgeAway(ForgeAnswerError):  # noqa: N818 - reads as a fact
    """No answer, or none that can be read: try again later."""


class ForgeRefused(ForgeAnswerError):  # noqa: N818 - reads as a fact
    """The forge said no, and would say so again: the rights, the address or the request are wrong."""

    def __init__(self, sentence: str, status: int = 0) -> None:
        super().__init__(sentence)
        self.status = status


class UnknownSender(ForgeError):  # noqa: N818 - reads as a fact
    """A delivery isn't signed with the secret."""
