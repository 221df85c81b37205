"""Why something about rights can't be done, each in one sentence for people."""

from __future__ import annotations


class AccessError(Exception):
    """What was asked for can't be done; the message names the field."""


class TokenRefused(Exception):  # noqa: N818 - reads as a fact
    """The token of a request is good for nothing."""
