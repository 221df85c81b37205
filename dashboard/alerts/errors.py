from __future__ import annotations


class DeliveryError(Exception):
    """A message did not get through; the text is one sentence for the delivery log."""


class Refused(DeliveryError):  # noqa: N818 - reads as a fact
    """It never will get through as the channel is: trying again is of no use."""
