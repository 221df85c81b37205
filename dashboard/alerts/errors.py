from __future__ import annotations


class DeliveryError(Exception):
    """A message did not get through; the text is one sentence for the delivery log."""


class PermanentDeliveryError(DeliveryError):
    """The message will never get through as the channel is: trying again is of no use."""
