from __future__ import annotations


class DeliveryError(Exception):
    """A message did not get through; the text is one sentence for the delivery log.

    `retry_after` is for how many seconds the receiver wants to hear nothing, where it said so.
    """

    def __init__(self, sentence: str, retry_after: float | None = None) -> None:
        super().__init__(sentence)
        self.retry_after = retry_after


class PermanentDeliveryError(DeliveryError):
    """The message will never get through as the channel is: trying again is of no use."""


class ChannelError(Exception):
    """The channel can't be kept like that; the message is one sentence for people, on one field."""

    def __init__(self, sentence: str, field: str = "") -> None:
        super().__init__(sentence)
        self.field = field
